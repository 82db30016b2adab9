// `npm run test:schema`: schemathesis against the built service, with a journal in SQLite and the legacy routes: what the OpenAPI document
// says is what the service does. Makes a Python environment with a fixed version in `.cache`, finds or starts a Redis as `npm test` does, and
// ends with the line `N passed, N failed`: a failure for each difference. docs/testing.md says which checks are off, and why.
//
//   npm run test:schema -- --seed 7 --examples 50
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureServerBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { describe, findRedis } from './redis.js'
import { startServiceProcess } from './service-process.js'

const VERSION = '4.32.5'
/** So long all examples together may take. */
const LIMIT_MS = 480_000
const { values } = parseArgs({
  options: { seed: { type: 'string', default: '17' }, examples: { type: 'string', default: '8' } },
})

ensureInstalled(root, { workspaces: true })
const program = schemathesis()
ensureServerBuilt()
const redis = await findRedis()
console.log(describe(redis))
const dir = mkdtempSync(join(tmpdir(), 'redelayed-schema-'))
const preload = pathToFileURL(join(root, 'test/schema/only-this-machine.mjs')).href
const flags = ['--journal', `sqlite:${join(dir, 'journal.db')}`, '--legacy-routes', '--max-wait', '20ms']
const service = await startServiceProcess(redis.url, flags, ['--import', preload])
let failed: number
let passed: number
try {
  const { output, status } = run()
  console.log(output)
  const [, cases = '0'] = /(\d+) generated/.exec(output) ?? []
  const [, failures = '0'] = /=+ (\d+) failures?/.exec(output) ?? []
  failed = status === 0 ? 0 : Math.max(1, Number(failures))
  passed = Math.max(0, Number(cases) - failed)
  if (passed < 1_000) {
    console.log(`*** Only ${cases} cases were generated.`)
    failed++
  }
} finally {
  await service.stop()
  await redis.stop()
  rmSync(dir, { recursive: true, force: true })
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)

function run(): { output: string; status: number | null } {
  const folder = join(root, 'test/schema')
  const { seed, examples } = values
  const options = ['--seed', seed, '-n', examples, '--no-color', '--report-dir', dir]
  const args = ['--config-file', join(folder, 'schemathesis.toml'), 'run', `${service.url}/openapi.json`, ...options]
  console.log(`schemathesis ${VERSION}, seed ${seed}, ${examples} examples of each operation and phase`)
  const { stdout, stderr, status } = spawnSync(program, [...args, '-H', `Authorization: Bearer ${service.key}`], {
    cwd: dir,
    env: { ...process.env, SCHEMATHESIS_HOOKS: join(folder, 'hooks.py'), PYTHONDONTWRITEBYTECODE: '1' },
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  return { output: stdout + stderr, status }
}

/** The program, in an environment of its own; made when it is not there, or not whole. */
function schemathesis(): string {
  const at = join(root, '.cache', `schemathesis-${VERSION}`)
  const whole = join(at, 'whole')
  if (!existsSync(whole)) {
    rmSync(at, { recursive: true, force: true })
    must('python3', ['-m', 'venv', at])
    must(join(at, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', `schemathesis==${VERSION}`])
    writeFileSync(whole, '')
  }
  return join(at, 'bin/schemathesis')
}

function must(command: string, args: string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status === 0) return
  console.log(`${command} ${args.join(' ')} failed${error === undefined ? '' : `: ${error.message}`}`)
  console.log('0 passed, 1 failed')
  process.exit(1)
}
