/** Adds, polls and acknowledges messages of reliable queues, each alone, several queues in turns. */
import { Redis } from 'ioredis'
import type { createClient as CreateClient, ChangesConfig, ReliableMessage, ReliableQueue } from '../../dist/index.js'
import { countWork } from './server-work.js'

/** How the calls are made. */
export interface Way {
  readonly clients: number
  /** Callers of each client, one call at a time each. */
  readonly callers: number
  /** Messages of each call; with one, those of `add`, `poll` and `message.acknowledge`. */
  readonly batch: number
  /** Messages of each queue in one piece of the work, before it is another queue's turn. */
  readonly piece: number
  readonly pieces: number
}

export const WAYS = {
  clients: { clients: 16, callers: 1, batch: 1, piece: 1_000, pieces: 12 },
  callers: { clients: 1, callers: 64, batch: 1, piece: 4_000, pieces: 6 },
  batches: { clients: 1, callers: 4, batch: 100, piece: 20_000, pieces: 6 },
} as const satisfies Readonly<Record<string, Way>>

export const OPERATIONS = ['add', 'poll', 'acknowledge'] as const
export type Operation = (typeof OPERATIONS)[number]

/** Of one operation on one queue: seconds and the server's CPU seconds for all its messages. */
export interface Spent {
  seconds: number
  cpuSeconds: number
}

interface Load {
  readonly connect: typeof CreateClient
  readonly url: string
  readonly way: Way
  /** The queues by name with their settings; `undefined` leaves the settings alone, for a version without the change stream. */
  readonly queues: Readonly<Record<string, ChangesConfig | false | undefined>>
}

const PAYLOAD = 'x'.repeat(100)

/** Each queue by name: what each operation took. Pieces of all queues alternate, so that all meet the same machine. */
export async function spentOn({ connect, url, way, queues }: Load): Promise<Record<string, Record<Operation, Spent>>> {
  const raw = new Redis(url)
  const clients = Array.from({ length: way.clients }, () => connect({ url }))
  const subjects = await Promise.all(
    Object.entries(queues).map(async ([name, changes]) => {
      const each = clients.map((client) => client.getReliableQueue<string>(name.replaceAll(/\W/g, '-')))
      if (changes !== undefined) await each[0]?.setConfig({ changes })
      return { name, callers: callersOf(each, way) }
    }),
  )
  const spent = Object.fromEntries(subjects.map(({ name }) => [name, nothing()]))
  const run = async (operation: Operation, piece: number, isMeasured: boolean): Promise<void> => {
    const first = piece % subjects.length
    for (const { name, callers } of [...subjects.slice(first), ...subjects.slice(0, first)]) {
      const worked = await countWork(raw)
      const startedAt = performance.now()
      let left = way.piece / way.batch
      await Promise.all(
        callers.map(async (caller) => {
          while (left-- > 0) await caller[operation]()
        }),
      )
      const seconds = (performance.now() - startedAt) / 1_000
      const { cpuMs } = await worked()
      const sum = spent[name]?.[operation]
      if (!isMeasured || sum === undefined) continue
      sum.seconds += seconds
      sum.cpuSeconds += cpuMs / 1_000
    }
  }
  for (const [pieces, isMeasured] of [
    [2, false],
    [way.pieces, true],
  ] as const) {
    for (const operation of OPERATIONS)
      for (let piece = 0; piece < pieces; piece++) await run(operation, piece, isMeasured)
  }
  await Promise.all(clients.map((client) => client.shutdown()))
  raw.disconnect()
  return spent
}

function nothing(): Record<Operation, Spent> {
  const [add, poll, acknowledge] = OPERATIONS.map(() => ({ seconds: 0, cpuSeconds: 0 }))
  return { add, poll, acknowledge } as Record<Operation, Spent>
}

type Caller = Readonly<Record<Operation, () => Promise<unknown>>>

function callersOf(queues: readonly ReliableQueue<string>[], { callers, batch }: Way): Caller[] {
  const polled: ReliableMessage<string>[][] = []
  return queues.flatMap((queue) =>
    Array.from({ length: callers }, () => ({
      add: () =>
        batch === 1 ? queue.add(PAYLOAD) : queue.addMany(Array.from({ length: batch }, () => ({ payload: PAYLOAD }))),
      poll: async () => polled.push(await queue.pollMany({ count: batch })),
      acknowledge: async () => {
        const messages = polled.pop() ?? []
        if (messages.length !== batch) throw new Error(`${messages.length} messages instead of ${batch}`)
        const [first] = messages
        const done = batch === 1 && first ? [await first.acknowledge()] : await queue.acknowledge(...messages)
        if (done.includes(false)) throw new Error('a message was not acknowledged')
      },
    })),
  )
}
