/** Starts, kills and restarts the members of the mixed fleet, and keeps the books. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { redisUrl } from '../../support/redis.js'
import type { Build } from './builds.js'
import type { FleetEvent, FleetJob } from './fleet-job.js'
import { Jvm, STRING } from './jvm.js'

interface Running {
  /** Resolves when all is offered; never after a kill. */
  readonly done: Promise<void>
  kill(): Promise<void>
  stop(): Promise<void>
}

type Start = (job: FleetJob, report: (event: FleetEvent) => void) => Promise<Running>

export const javaMember =
  (build: Build): Start =>
  async (job, report) => {
    const jvm = await Jvm.start(build, report)
    const target = { client: 'main', codec: STRING }
    try {
      await jvm.open()
      await jvm.request('hold', { ...target, queue: job.queue })
    } catch (error) {
      await jvm.kill()
      throw error
    }
    const done = new Promise<void>((resolve) => {
      jvm.request('produce', { ...target, ...job }).then(
        () => resolve(),
        () => {},
      ) // killed
    })
    return { done, kill: () => jvm.kill(), stop: () => jvm.stop() }
  }

export const nodeMember =
  (options: { layout: 'redisson' | 'compact'; entryFormat?: string | undefined }): Start =>
  async (job, report) => {
    const script = new URL('fleet-member.ts', import.meta.url).pathname
    const args = ['--import', 'tsx', script, JSON.stringify({ ...job, url: redisUrl(), ...options })]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface({ input: child.stdout })
    const ended = Promise.all([once(lines, 'close'), once(child, 'close')])
    const first = once(lines, 'line')
    const done = new Promise<void>((resolve) => {
      lines.on('line', (line) => {
        const message = JSON.parse(line) as FleetEvent | { done: true }
        if ('event' in message) report(message)
        else resolve()
      })
    })
    await Promise.race([first, ended])
    return {
      done,
      kill: async () => {
        child.kill('SIGKILL')
        await ended
      },
      stop: async () => {
        child.stdin.end()
        await ended
      },
    }
  }

/** A member and its successors: each goes on after the last message that was begun. */
export class Member {
  readonly #start: Start
  readonly #job: FleetJob
  readonly #books: Books
  #running: Running | undefined
  finished = false
  kills = 0

  constructor(start: Start, job: FleetJob, books: Books) {
    this.#start = start
    this.#job = job
    this.#books = books
  }

  get name(): string {
    return this.#job.name
  }

  async start(): Promise<void> {
    const job = { ...this.#job, from: this.#books.next(this.#job.name) }
    const begin = (): Promise<Running> => this.#start(job, (event) => this.#books.add(event))
    // Redisson gives up subscribing after some seconds, which a busy machine may need
    this.#running = await begin().catch(begin)
    void this.#running.done.then(() => (this.finished = true))
  }

  async kill(): Promise<void> {
    this.kills++
    await this.#running?.kill()
    this.#running = undefined
  }

  async killAndRestart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  async stop(): Promise<void> {
    await this.#running?.stop()
    this.#running = undefined
  }
}

/** All that was offered and taken, and when. */
export class Books {
  readonly #offers = new Map<string, { due: number; acknowledged: boolean }>()
  readonly #taken = new Map<string, number[]>()
  readonly #next = new Map<string, number>()
  acknowledged = 0
  taken = 0

  add(event: FleetEvent): void {
    if (event.event === 'taken') return this.take(event.value, event.at)
    const { name, i } = event
    const key = `${name}:${i}`
    if (event.event === 'offering') {
      this.#offers.set(key, { due: event.due, acknowledged: false })
      this.#next.set(name, i + 1)
    } else if (event.event === 'offered') {
      const offer = this.#offers.get(key)!
      this.#offers.set(key, { due: event.due ?? offer.due, acknowledged: true })
      this.acknowledged++
    }
  }

  take(value: string, at: number): void {
    this.taken++
    this.#taken.set(value, [...(this.#taken.get(value) ?? []), at])
  }

  next(name: string): number {
    return this.#next.get(name) ?? 0
  }

  /** Offers whose answer was not heard: they may have been accepted or not. */
  get open(): number {
    return this.#offers.size - this.acknowledged
  }

  /** Everything that is wrong; nothing when all is right. */
  problems(): string[] {
    const problems: string[] = []
    for (const [key, { due, acknowledged }] of this.#offers) {
      const times = this.#taken.get(key) ?? []
      if (acknowledged && times.length === 0) problems.push(`${key} is lost`)
      if (times.length > 1) problems.push(`${key} came ${times.length} times`)
      for (const at of times) if (at < due) problems.push(`${key} came ${due - at} ms early`)
    }
    for (const key of this.#taken.keys()) if (!this.#offers.has(key)) problems.push(`${key} was never offered`)
    return problems
  }

  /** How late messages came, in ms: the median and the latest. */
  lateness(): { median: number; max: number } {
    const all: number[] = []
    for (const [key, { due }] of this.#offers) for (const at of this.#taken.get(key) ?? []) all.push(at - due)
    all.sort((a, b) => a - b)
    return { median: all[Math.floor(all.length / 2)] ?? 0, max: all.at(-1) ?? 0 }
  }
}
