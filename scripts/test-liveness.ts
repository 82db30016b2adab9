// `npm run test:liveness`: old sockets never heal and new ones work, at every stage of opening and for every role of a connection,
// on one server, Sentinel, Cluster, and with clients of the user's. Ends with the line `N passed, N failed`.
//
//   npm run test:liveness -- --seed 7                  as before; without it a new seed each time
//   npm run test:liveness -- --only "cluster: blocking"   the cells whose names contain this
//   npm run test:liveness -- --parallel 4              how many cells at the same time; 12 by default
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { root } from './ensure-installed.mjs'
import { findServerBin } from './redis.js'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    only: { type: 'string', default: '' },
    parallel: { type: 'string', default: '12' },
  },
})
for (const name of ['seed', 'parallel'] as const) {
  if (/^\d{1,10}$/.test(values[name])) continue
  console.error(`--${name} takes a whole number, not ${JSON.stringify(values[name])}`)
  process.exit(2)
}
if (!findServerBin()) {
  console.error('\n*** SKIPPED: the matrix needs redis-server or valkey-server on PATH.\n*** No cell was tried.\n')
  console.log(process.env.CI ? '0 passed, 1 failed' : '0 passed, 0 failed, all skipped')
  process.exit(process.env.CI ? 1 : 0)
}

const { seed, only, parallel } = values
console.log(`Liveness, seed ${seed}`)
const args = ['--import', 'tsx', 'test/liveness/main.ts', '--seed', seed, '--only', only, '--parallel', parallel]
const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
// Ctrl-C reaches the child, too
process.on('SIGINT', () => {})
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.once('exit', (code) => process.exit(code ?? 1))
