// `npm run soak`: fleets that live for long, and one random fault after the other, with a report.
//
//   npm run soak -- --minutes 60     default 10
//   npm run soak -- --seed 7         the same faults in the same order
//   npm run soak -- --out soak       the report's path without its ending; default benchmarks/results/<date>-soak
import { spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { cpus } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './ensure-installed.mjs'
import { findServerBin } from './redis.js'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    out: { type: 'string', default: `benchmarks/results/${new Date().toISOString().slice(0, 10)}-soak` },
  },
})
const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error('--minutes takes a number above 0, and --seed a whole number')
  process.exit(2)
}
const server = findServerBin()
if (server === undefined) {
  console.error('A soak needs redis-server or valkey-server on PATH.')
  process.exit(2)
}
const version = /v=([\d.]+)/.exec(spawnSync(server, ['--version'], { encoding: 'utf8' }).stdout)?.[1] ?? 'unknown'
const versions = `Node ${process.versions.node}, Redis ${version}, ${cpus().length} x ${cpus()[0]?.model ?? 'processor'}.`
const settings = JSON.stringify({ minutes, seed, out: resolve(values.out), versions })
const child = spawn(process.execPath, ['--import', 'tsx', 'test/faults/soak.ts', settings], {
  cwd: root,
  stdio: 'inherit',
})
child.once('exit', (code) => (process.exitCode = code ?? 1))
