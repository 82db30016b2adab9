// `npm run demo`: closes unpaid orders. Works from a fresh clone with only Node: installs, builds, finds or starts a Redis
// (an emulator in this process when there is none), replays the recorded orders of scripts/demo/orders.ndjson, and checks
// that exactly the unpaid ones were closed; on a busy machine, once more at half the speed. Exit code 0 when they were, 1 when not, 2 for wrong options.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Options } from './demo/run.js'
import { ensureBuilt } from './ensure-built.js'
import { describe, findRedis, type FoundRedis } from './redis.js'

const USAGE = `npm run demo -- [options]
  --url <url>         the Redis to use (or REDIS_URL); else a server on PATH, else an emulator, else Docker
  --layout redisson|compact   the layout of the delayed queue (default redisson)
  --minute <ms>       how long a recorded minute takes (default 180)
  --orders <file>     replay these events (default scripts/demo/orders.ndjson)
  --expect <file>     check against these events instead`

/** A replay says nothing on a machine that is too busy for its speed. */
const ATTEMPTS = 3

const options = readOptions()
if (process.env.REDELAYED_DEMO_LIBRARY === undefined) ensureBuilt()
const { runDemo } = await import('./demo/run.js') // imports what was built

const interrupted = new AbortController()
let interruptedBy = 0
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const) {
  process.on(signal, () => {
    interruptedBy ||= number
    interrupted.abort(new Error('interrupted'))
  })
}

process.exit(await main())

async function main() {
  let redis: FoundRedis | undefined
  try {
    redis = await findRedis({ allowEmulator: true, ...(options.url !== undefined && { url: options.url }) })
    // the emulator has said what it is
    if (redis.kind !== 'emulator') console.log(describe(redis))
    let outcome: Awaited<ReturnType<typeof runDemo>> = 'too slow'
    let { minuteMs } = options
    for (let attempt = 1; outcome === 'too slow' && attempt <= ATTEMPTS; attempt++, minuteMs *= 2) {
      if (attempt > 1) console.log(`Once more, at half the speed: a recorded minute takes ${minuteMs} ms.\n`)
      outcome = await runDemo(redis, { ...options, minuteMs, signal: interrupted.signal })
    }
    return outcome === 'as in the file' ? 0 : 1
  } catch (error) {
    if (interruptedBy > 0) return 128 + interruptedBy
    console.error(error instanceof Error ? error.message : error)
    return 1
  } finally {
    await redis?.stop()
  }
}

function readOptions(): Omit<Options, 'signal'> & { url: string | undefined } {
  try {
    const { values } = parseArgs({
      options: {
        url: { type: 'string' },
        layout: { type: 'string', default: 'redisson' },
        minute: { type: 'string', default: '180' },
        orders: { type: 'string', default: fileURLToPath(new URL('demo/orders.ndjson', import.meta.url)) },
        expect: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) {
      console.log(USAGE)
      process.exit(0)
    }
    const { layout } = values
    const minuteMs = Number(values.minute)
    if (layout !== 'redisson' && layout !== 'compact')
      throw new Error(`--layout takes redisson or compact, not "${layout}"`)
    if (!(minuteMs >= 1 && minuteMs <= 60_000)) throw new Error(`--minute takes 1 to 60000, not "${values.minute}"`)
    return {
      url: values.url,
      layout,
      minuteMs,
      file: values.orders,
      expectFile: values.expect ?? values.orders,
    }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`)
    process.exit(2)
  }
}
