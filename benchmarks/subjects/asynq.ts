import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { which } from '../../scripts/redis.js'
import { ExternalSession } from './external.js'
import { bulksOf, type Subject } from './subject.js'

const SOURCE = fileURLToPath(new URL('../asynq', import.meta.url))
const CACHE = fileURLToPath(new URL('../../.cache/asynq-bench', import.meta.url))

/** It has no call for many: so many calls are under way, and its pool has as many connections. */
const IN_FLIGHT = 64

/** asynq in Go, in a process of its own. By default it checks every 5 s for what is due, and it keeps due times
 * in whole seconds, cut off, so it is early; 10 ms is as good as it gets. */
export const asynq: Subject = {
  name: 'asynq, checking every 10 ms',
  promise: 'at least once',
  bulks: bulksOf([1], [16, 64, 256]),
  isExternal: true,
  notInQuickRuns: true,
  missing: () => (which('go') === undefined ? 'it needs go on PATH' : undefined),
  open: async (options) => ExternalSession.open([program()], options, IN_FLIGHT),
}

let built: string | undefined

/** Built once by Go, which fetches what it needs, then kept. */
function program(): string {
  if (built !== undefined) return built
  const file = `${CACHE}/${asynqVersion()}`
  mkdirSync(CACHE, { recursive: true })
  if (!existsSync(file)) {
    const { status, stderr } = spawnSync('go', ['build', '-o', file, '.'], { cwd: SOURCE, encoding: 'utf8' })
    if (status !== 0) throw new Error(`asynq could not be built:\n${stderr}`)
  }
  return (built = file)
}

export function asynqVersion(): string {
  return /asynq v([\d.]+)/.exec(readFileSync(`${SOURCE}/go.mod`, 'utf8'))?.[1] ?? 'unknown'
}
