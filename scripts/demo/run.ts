// Runs the demo on a given Redis: starts the processes, shows what they report, waits for the end, cleans up.
import { randomBytes } from 'node:crypto'
import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Settings } from './child.js'
import { Display } from './display.js'
import { expectationOf, readEvents } from './expectation.js'
import { createClient } from './library.js'
import { summarize, type Outcome } from './summary.js'
import { Tally, type Report } from './tally.js'

const REFRESH_MS = 100
/** After everything was taken: time for a second delivery to show up. */
const QUIET_MS = 500
const GIVE_UP_MS = 10_000
const STOP_MS = 3_000

interface Connection {
  url: string
  protocol?: 2 | undefined
}

export interface Options {
  file: string
  expectFile: string
  layout: 'redisson' | 'compact'
  minuteMs: number
  signal: AbortSignal
}

export async function runDemo(
  redis: Connection,
  { file, expectFile, layout, minuteMs, signal }: Options,
): Promise<Outcome> {
  const events = readEvents(file)
  const expected = expectationOf(expectFile === file ? events : readEvents(expectFile))
  const scale = minuteMs / 60_000
  const name = `redelayed:demo:${process.pid}:${randomBytes(4).toString('hex')}`
  const client = createClient({
    url: redis.url,
    connectTimeout: 3_000,
    ...(redis.protocol && { ioredis: { protocol: redis.protocol } }),
  })
  client.on('error', () => {}) // the calls reject with what matters here
  const queue = client.getQueue(name)
  const unpaid = client.getDelayedQueue(queue, { layout, deliver: false })
  const tally = new Tally()
  const crew = new Crew(tally, signal)
  try {
    const settings = { url: redis.url, protocol: redis.protocol, queue: name, layout, file, minuteMs }
    await Promise.all([
      crew.start('producer.ts', { ...settings, number: 0 }),
      crew.start('consumer.ts', { ...settings, number: 1 }),
      crew.start('consumer.ts', { ...settings, number: 2 }),
    ])
    crew.send('start')

    const display = new Display()
    const startedAt = performance.now()
    const giveUpAt = startedAt + expected.end * scale + GIVE_UP_MS
    let quietSince = Infinity
    for (;;) {
      const { pending, overdue, delivered, quarantined } = await unpaid.stats()
      const now = performance.now()
      const over = tally.behindMs !== undefined && pending + delivered === 0
      quietSince = over ? Math.min(quietSince, now) : Infinity
      const ended = now - quietSince >= QUIET_MS || now >= giveUpAt
      const recordedMs = Math.min((now - startedAt) / scale, expected.end)
      display.show({ tally, pending, overdue, recordedMs, endMs: expected.end }, { last: ended })
      if (ended) {
        await crew.stop()
        const { text, outcome } = summarize({ tally, expected, events, quarantined, left: pending + delivered, scale })
        console.log(text)
        return outcome
      }
      await sleep(REFRESH_MS, undefined, { signal: crew.signal })
    }
  } catch (error) {
    throw crew.signal.aborted ? crew.signal.reason : error
  } finally {
    await crew.stop()
    // where this fails there is no server any more, and what led to it is being thrown already
    await Promise.allSettled([unpaid.delete(), queue.delete(), queue.clearQuarantine()])
    await client.shutdown()
  }
}

function toError(reason: unknown) {
  return reason instanceof Error ? reason : new Error(String(reason))
}

/** The child processes: what one of them reports goes to the tally, and when one of them fails the run is over. */
class Crew {
  #children = new Set<ChildProcess>()
  #tally: Tally
  #failed = new AbortController()
  #stopping = false
  /** Aborted when the user or a child ends the run. */
  readonly signal: AbortSignal

  constructor(tally: Tally, signal: AbortSignal) {
    this.#tally = tally
    this.signal = AbortSignal.any([signal, this.#failed.signal])
  }

  /** Resolves when the child is ready. */
  start(script: string, settings: Settings): Promise<void> {
    this.signal.throwIfAborted()
    const child = fork(fileURLToPath(new URL(script, import.meta.url)), [JSON.stringify(settings)], {
      execArgv: ['--import', 'tsx'],
    })
    this.#children.add(child)
    child.once('exit', (code, signal) => {
      this.#children.delete(child)
      const [why] = this.#tally.problems
      const text = `${script} ended with ${signal ?? `code ${code}`}${why ? `: ${why}` : ''}`
      if (!this.#stopping) this.#failed.abort(new Error(text))
    })
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(toError(this.signal.reason))
      this.signal.addEventListener('abort', onAbort, { once: true })
      child.on('message', (message) => {
        const report = message as Report
        this.#tally.add(report)
        if (report.type !== 'ready') return
        this.signal.removeEventListener('abort', onAbort)
        resolve()
      })
    })
  }

  send(message: 'start' | 'stop') {
    for (const child of this.#children) if (child.connected) child.send(message, () => {})
  }

  /** Lets the children finish what they hold; one that does not is killed. */
  async stop() {
    this.#stopping = true
    this.send('stop')
    const ends = [...this.#children].map((child) => new Promise((resolve) => child.once('exit', resolve)))
    const lastResort = setTimeout(() => this.#children.forEach((child) => child.kill('SIGKILL')), STOP_MS)
    await Promise.all(ends)
    clearTimeout(lastResort)
  }
}
