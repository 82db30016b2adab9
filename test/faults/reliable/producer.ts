import {
  AddManyError,
  ConnectionError,
  DurabilityError,
  NotCompletedError,
  RedelayedError,
  type AddItem,
  type Added,
  type ReliableQueue,
} from '../../../src/index.js'
import { codeOf, type Ledger } from '../bench/ledger.js'
import {
  CROWD,
  EVERY_MS,
  LIMIT,
  POISON_LIMIT,
  scheduleName,
  type Entry,
  type Job,
  type Payload,
  type Waited,
} from './job.js'
import type { BenchQueue } from './queue.js'

const PRIORITIES = 10
/** Of all messages so many have a handler that always throws, or takes long, and so many are due long after everything is over. */
const POISON_SHARE = 0.05
const LONG_SHARE = 0.05
const FAR_SHARE = 0.02
/** Of the others so many are cancelled, and as many put off, at any moment of their delay and some time beyond. */
const CHANGED_SHARE = 0.1
const BEYOND = 1.3
/** So many are asked for by their ids, a moment after they were added. */
const ASKED_SHARE = 0.1
/** So often several are added with one call, and so many. */
const MANY_SHARE = 0.2
const MANY = 3
/** A message of which it is not known whether it was added, or is as safe as asked, is added again under its id, so often at most. */
const ATTEMPTS = 5
const AGAIN_MS = 200
/** So often a batch is added instead. */
const BATCH_SHARE = 0.15
/** Of the messages so many are of the group that has most. */
const CROWD_SHARE = 0.7
/** A wait that takes so long is late: nothing here takes longer than a drain. */
const LATE_MS = 15_000
const WAITS = 3

type Outcome = Added['outcome']

interface Item extends AddItem<Payload> {
  readonly id: string
  readonly delay: number
}

/** Adds messages of all kinds, and changes some. */
export class Producer {
  readonly #queue: BenchQueue
  readonly #ledger: Ledger<Entry>
  readonly #job: Job
  readonly #underWay = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #next: number

  constructor(job: Job, queue: BenchQueue, ledger: Ledger<Entry>) {
    this.#job = job
    this.#queue = queue
    this.#ledger = ledger
    this.#next = job.load.from
  }

  async produce(on: boolean): Promise<void> {
    clearInterval(this.#timer)
    if (on) {
      this.#timer = setInterval(() => this.#follow(this.#messages()), this.#job.load.everyMs)
      this.#follow(this.#eachSchedule((name) => this.#begins(name)))
      return
    }
    // what was under way can begin more, such as the wait for a message that was just added
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    await this.#eachSchedule((name) => this.#queue.removeSchedule(name))
  }

  /** As at each start of a program: what is there already stays as it is. */
  #begins(name: string): Promise<unknown> {
    const options = { every: EVERY_MS, missed: 'all', deliveryLimit: LIMIT } as const
    return this.#queue.upsertSchedule(name, { poison: false, long: false }, options)
  }

  async #eachSchedule(action: (name: string) => Promise<unknown>): Promise<void> {
    const names = Array.from({ length: this.#job.load.schedules ?? 0 }, (_, index) => scheduleName(index))
    await Promise.all(names.map((name) => this.#untilDone(() => action(name))))
  }

  /** Again and again, as an application does it that must not go on without. */
  async #untilDone(action: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await action()
        return
      } catch (error) {
        if (!(error instanceof RedelayedError)) throw error
        this.#ledger.count(codeOf(error))
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  async burst(count: number, delay: number): Promise<void> {
    const { tenants } = this.#job.load
    const group = tenants === true ? CROWD : undefined
    const item = { delay, deliveryLimit: LIMIT, payload: { poison: false, long: false }, group }
    await this.#add(Array.from({ length: count }, () => this.#begin(item)))
  }

  async stop(): Promise<void> {
    await this.produce(false)
  }

  async #messages(): Promise<void> {
    if (this.#job.load.batchOf !== undefined && Math.random() < BATCH_SHARE) return this.#batch(this.#job.load.batchOf)
    const count = Math.random() < MANY_SHARE ? MANY : 1
    const items = Array.from({ length: count }, () => this.#begin(this.#draw()))
    const added = await this.#add(items)
    const { asks, amend, waits, farMs } = this.#job.load
    if (waits === true) for (const { id, delay } of added) if (delay < farMs) this.#follow(this.#waitFor(id))
    if (asks === true) await Promise.all(added.filter(() => Math.random() < ASKED_SHARE).map(({ id }) => this.#ask(id)))
    if (!amend) return
    await Promise.all(
      added.map(async ({ id, delay }) => {
        const change = Math.random()
        if (delay < this.#job.load.farMs && change < 2 * CHANGED_SHARE)
          await this.#change(id, delay, change < CHANGED_SHARE)
      }),
    )
  }

  /** A whole batch, from its first message until it has finished. */
  async #batch(size: number): Promise<void> {
    const name = `batch ${this.#next}`
    const delay = (): number => Math.floor(Math.random() * this.#job.load.maxDelay)
    const items = Array.from({ length: size }, () => this.#begin({ ...this.#draw(), delay: delay() }))
    this.#ledger.note(['batch', name, 'opened', items.map(({ id }) => id)])
    for (let from = 0; from < size; from += MANY) await this.#add(items.slice(from, from + MANY), name)
    const batch = (this.#queue as ReliableQueue<Payload>).batch(name)
    const last = { payload: { poison: false, long: false, last: name } }
    for (let late = 0; late < WAITS;) {
      try {
        // once more after each failure: closing again changes nothing
        await batch.close({ last })
        this.#ledger.note(['batch', name, 'closed'])
        const counts = await batch.waitUntilFinished({ timeout: LATE_MS })
        this.#ledger.note(['batch', name, 'finished', counts])
        return
      } catch (error) {
        if (error instanceof NotCompletedError) {
          this.#ledger.note(['batch', name, 'late'])
          late++
        }
        await this.#failed(error)
      }
    }
  }

  /** Until it has ended, whatever becomes of the connection. */
  async #waitFor(id: string): Promise<void> {
    this.#ledger.note(['waiting', id])
    for (let late = 0; late < WAITS;) {
      const note = (how: Waited, result?: unknown): void => this.#ledger.note(['waited', id, how, result])
      try {
        note('completed', await this.#queue.waitUntilFinished(id, { timeout: LATE_MS }))
        return
      } catch (error) {
        if (error instanceof NotCompletedError) {
          if (error.reason !== 'timeout') return note(error.reason)
          note('late')
          late++
        }
        await this.#failed(error)
      }
    }
  }

  async #failed(error: unknown): Promise<void> {
    if (!(error instanceof RedelayedError)) throw error
    this.#ledger.count(codeOf(error))
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
  }

  #draw(): Omit<Item, 'id'> {
    const { load } = this.#job
    const dice = Math.random()
    const poison = dice < POISON_SHARE
    return {
      payload: { poison, long: Math.random() < LONG_SHARE },
      delay: dice > 1 - FAR_SHARE ? load.farMs : Math.floor(Math.random() * load.maxDelay),
      ...this.#drawGroup(),
      deliveryLimit: poison ? POISON_LIMIT : LIMIT,
    }
  }

  #drawGroup(): Pick<Item, 'group' | 'priority'> {
    const { groups, tenants } = this.#job.load
    if (tenants === true) return { group: Math.random() < CROWD_SHARE ? CROWD : `tenant ${this.#next}` }
    if (groups !== undefined) return { group: `group ${Math.floor(Math.random() * groups)}` }
    return { priority: Math.floor(Math.random() * PRIORITIES) }
  }

  /** Gives it its number and notes it. */
  #begin(item: Omit<Item, 'id'>): Item {
    const id = String(this.#next++)
    const { delay, deliveryLimit: limit = LIMIT, payload, group } = item
    this.#ledger.note(['try', id, { at: Date.now(), delay, limit, poison: payload.poison, group }])
    return { ...item, id }
  }

  /** As an application does it that must not lose anything; gives those that were added, as safely as asked. */
  async #add(items: readonly Item[], batch?: string): Promise<Item[]> {
    const added: Item[] = []
    let open = items
    for (let attempt = 1; ; attempt++) {
      const answers = await this.#send(open, batch)
      const again: Item[] = []
      open.forEach((item, at) => {
        const outcome = this.#conclude(item, answers[at], attempt)
        if (outcome === 'added') added.push(item)
        if (outcome === 'unknown') again.push(item)
      })
      open = again
      if (open.length === 0 || attempt === ATTEMPTS) return added
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }

  /** An answer or an error for each. */
  async #send(items: readonly Item[], batch: string | undefined): Promise<(Outcome | RedelayedError)[]> {
    const { durability } = this.#job.load
    const [first] = items
    try {
      if (first === undefined || items.length > 1)
        return (await this.#queue.addMany(items, { durability, batch })).map(({ outcome }) => outcome)
      const { payload, ...options } = first
      return [(await this.#queue.add(payload, { ...options, durability, batch })).outcome]
    } catch (error) {
      if (!(error instanceof RedelayedError)) throw error
      if (!(error instanceof AddManyError)) return items.map(() => error)
      const failed = new Map(error.failures.map((failure) => [failure.index, failure.error]))
      return error.results.map((result, at) => failed.get(at) ?? (result?.outcome as Outcome))
    }
  }

  #conclude(
    { id }: Item,
    answer: Outcome | RedelayedError | undefined,
    attempt: number,
  ): 'added' | 'refused' | 'unknown' {
    if (answer instanceof RedelayedError) {
      this.#ledger.count(codeOf(answer))
      if (attempt > 1 || isUnknown(answer)) return 'unknown'
      this.#ledger.note(['no', id, answer.code])
      return 'refused'
    }
    if (answer === 'added' || (answer === 'kept' && attempt > 1)) {
      this.#ledger.note(['ok', id, Date.now()])
      return 'added'
    }
    this.#ledger.note(['no', id, String(answer)])
    return 'refused'
  }

  async #change(id: string, delay: number, cancel: boolean): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * delay * BEYOND))
    const later = Math.floor(Math.random() * this.#job.load.maxDelay)
    this.#ledger.note(['changing', id, cancel ? 'cancel' : 'move', later, Date.now()])
    try {
      const done = cancel ? await this.#queue.cancel(id) : await this.#queue.reschedule(id, later)
      this.#ledger.note(['changed', id, done, Date.now()])
    } catch (error) {
      this.#ledger.count(codeOf(error)) // what it did stays unknown
    }
  }

  async #ask(id: string): Promise<void> {
    this.#ledger.note(['asking', id, Date.now()])
    try {
      const found = await this.#queue.get(id)
      this.#ledger.note(['asked', id, found?.id === id, Date.now()])
    } catch (error) {
      this.#ledger.count(codeOf(error))
    }
  }

  #follow(promise: Promise<void>): void {
    const followed = promise.finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }
}

/** It may be there, or it is there and not as safe as asked. */
function isUnknown(error: RedelayedError): boolean {
  return error instanceof DurabilityError || (error instanceof ConnectionError && error.outcome === 'unknown')
}
