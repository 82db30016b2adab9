import { createHash } from 'node:crypto'
import { AgendaCounts, spanOf, type CountCommands } from './agenda-counts.js'
import type { Agenda } from './agenda.js'
import type { LibraryCommand } from './library-command.js'
import { Recent } from './recent.js'
import { delayedScheduleOf, dueKeysOf } from './reliable-keys.js'
import { shownLook, type ShownLook } from './shown-look.js'

/** The counts of a library's queue; `null` for counts that its kind does not have or that could not be read. */
export interface Queue {
  readonly name: string
  readonly kind: 'delayed' | 'reliable'
  /** The number of shards that have keys; `null` for an ordinary queue. */
  readonly shards: number | null
  readonly pending: number | null
  readonly ready: number | null
  readonly inFlight: number | null
  readonly dead: number | null
  readonly quarantined: number | null
  readonly nextDueAt: number | null
  readonly overdueMs: number | null
  /** The number of clients that deliver a delayed queue. */
  readonly subscribers: number | null
  readonly paused: readonly string[]
  /** The number of repeats whose tick has come and was not prepared. */
  readonly stuckRepeats: number | null
  /** Why the queue cannot be read. */
  readonly error: string | null
}

export interface QueueList {
  readonly queues: readonly Queue[]
  readonly at: number
}

/** A queue as `redelayed stats --json` prints it. */
interface Printed {
  readonly queue: string
  readonly kind: 'delayed' | 'reliable'
  readonly shards: readonly { readonly queue: string }[] | null
  readonly error?: { readonly message: string }
  readonly pending?: number
  readonly overdue?: number
  readonly oldestOverdueMs?: number
  readonly nextDue?: number | null
  readonly delivered?: number
  readonly quarantined?: number
  readonly subscribers?: number
  readonly visible?: number
  readonly delayed?: number
  readonly inFlight?: number
  readonly dead?: number
  readonly oldestMs?: number
  readonly nextAt?: number | null
  readonly addPaused?: boolean
  readonly pollPaused?: boolean
  readonly repeats?: { readonly stuck: number }
}

/** The commands of an ioredis client that this class sends. */
interface ReadCommands extends CountCommands {
  time(): Promise<(number | string)[]>
}

const LIST_FRESH_MS = 5_000
const LOOK_FRESH_MS = 1_000
/** How long the list of a queue's shards is reused. */
const KEYS_FRESH_MS = 30_000

/** The queues of a Redis that only libraries use, also those in Java, read with the library's command line, which writes nothing. */
export class Queues {
  readonly #command: Pick<LibraryCommand, 'run'>
  readonly #redis: ReadCommands
  readonly #lists = new Recent<QueueList>({ freshMs: LIST_FRESH_MS, most: 1 })
  readonly #looks = new Recent<ShownLook>({ freshMs: LOOK_FRESH_MS, most: 50 })
  readonly #keys = new Recent<readonly (readonly string[])[]>({ freshMs: KEYS_FRESH_MS, most: 200 })

  constructor(command: Pick<LibraryCommand, 'run'>, redis: ReadCommands) {
    this.#command = command
    this.#redis = redis
  }

  /** All queues, sorted by name. @throws CommandFailed */
  list(): Promise<QueueList> {
    return this.#lists.get('', async () => {
      const found = (await this.#command.run('stats')) as readonly Printed[]
      return {
        queues: found.map(shown).sort((one, other) => compared(placeOf(one), placeOf(other))),
        at: await this.#now(),
      }
    })
  }

  /** The output of `redelayed peek --json`, in bounded texts. @throws CommandFailed */
  look(name: string, { limit, codec }: { readonly limit: number; readonly codec: string }): Promise<ShownLook> {
    const options = ['--limit', String(limit), '--codec', codec]
    return this.#looks.get(JSON.stringify([name, limit, codec]), async () => {
      return shownLook(await this.#command.run('peek', options, [name]))
    })
  }

  /** When how many messages of a queue are due. @throws CommandFailed */
  async agenda(name: string, from: number | undefined, to: number | undefined, buckets: number): Promise<Agenda> {
    const schedules = await this.#keys.get(name, async () => {
      const found = (await this.#command.run('stats', [], [name])) as readonly Printed[]
      return found.flatMap(({ queue, kind, shards }) =>
        (shards ?? [{ queue }]).map((one) =>
          kind === 'delayed' ? [delayedScheduleOf(one.queue)] : dueKeysOf(one.queue),
        ),
      )
    })
    const at = await this.#now()
    const begin = from ?? at
    const span = spanOf(begin, Math.max(begin + 1, to ?? begin + 3_600_000), buckets)
    const counts = new AgendaCounts(this.#redis, at, span)
    for (const keys of schedules) {
      if (!(await counts.add(keys))) break
    }
    return { at, from: span.from, to: span.to, bucketMs: span.bucketMs, ...counts.result() }
  }

  /** Rejects if Redis does not answer. */
  async ping(): Promise<void> {
    await this.#now()
  }

  async #now(): Promise<number> {
    const [seconds, micros] = (await this.#redis.time()).map(Number)
    return (seconds ?? 0) * 1_000 + Math.floor((micros ?? 0) / 1_000)
  }
}

/** The place of a queue in the list. */
export type Place = readonly [start: string, rest: string]

/** The most characters of a name in a place, which goes into a cursor: the hash orders names with the same beginning. */
const MOST_START = 400

export function placeOf({ name, kind }: Pick<Queue, 'name' | 'kind'>): Place {
  const hash = name.length > MOST_START ? createHash('sha256').update(name).digest('hex') : ''
  return [name.slice(0, MOST_START).toWellFormed(), `${hash} ${kind}`]
}

/** Negative if `one` is before `other`. */
export function compared(one: Place, other: Place): number {
  const at = one[0] === other[0] ? 1 : 0
  return one[at] < other[at] ? -1 : one[at] > other[at] ? 1 : 0
}

function shown({ queue: name, kind, shards, error, ...of }: Printed): Queue {
  const about = { name, kind, shards: shards?.length ?? null, error: error?.message ?? null }
  const isDelayed = kind === 'delayed'
  return {
    ...about,
    pending: (isDelayed ? of.pending : of.delayed) ?? null,
    ready: (isDelayed ? of.delivered : of.visible) ?? null,
    inFlight: of.inFlight ?? null,
    dead: of.dead ?? null,
    quarantined: of.quarantined ?? null,
    nextDueAt: (isDelayed ? of.nextDue : of.nextAt) ?? null,
    overdueMs: (isDelayed ? of.oldestOverdueMs : of.oldestMs) ?? null,
    subscribers: of.subscribers ?? null,
    paused: [...(of.addPaused === true ? ['add'] : []), ...(of.pollPaused === true ? ['poll'] : [])],
    stuckRepeats: of.repeats?.stuck ?? null,
  }
}
