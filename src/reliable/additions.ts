import {
  ConnectionError,
  DurabilityError,
  InternalError,
  InvalidArgumentError,
  OperationDisabledError,
  PayloadTooLargeError,
  QueueFullError,
  RedelayedError,
  toError,
  inWords,
} from '../errors.js'
import { shortfall } from '../redis/durable/waited-for.js'
import { waitedFor, type WaitedFor } from '../store/waited-for.js'
import { run, runMany } from '../store/run.js'
import { add, type AddReply } from '../store/reliable-scripts.js'
import type { ArgsOf, KeysOf } from '../store/script.js'
import { scriptTime } from '../options.js'
import type { How, PendingMessage } from './add-options.js'
import type { Wait } from '../redis/durable/durability.js'
import { dueKeys, type ReliableContext, type ReliableIdentity } from './context.js'

/** What became of a message that was added. */
export interface Added {
  readonly id: string
  /**
   * `'kept'`: one of this id is there and stays as it is; `'duplicate'`: it was deduplicated. In both cases the new payload is
   * not in the queue.
   */
  readonly outcome: 'added' | 'replaced' | 'postponed' | 'kept' | 'duplicate'
}

const OUTCOMES = new Map<number, Added['outcome']>([
  [1, 'added'],
  [2, 'replaced'],
  [3, 'postponed'],
  [0, 'kept'],
  [-1, 'duplicate'],
])

const durableAdd = waitedFor(add)

type AddKeys = KeysOf<(typeof add)['source']>
type AddArgs = ArgsOf<(typeof add)['source']>

/** Bounds of what is sent together; a script with so many takes about two milliseconds. */
const CHUNK_ITEMS = 250
const CHUNK_BYTES = 1024 * 1024
const CHUNKS_IN_FLIGHT = 4
/** How often what may have been carried out is sent again. */
const MAX_ATTEMPTS = 5

/** Adds messages, each at most once however often it is sent: its id distinguishes a repeated attempt from another message. */
export class Adder {
  readonly #context: ReliableContext
  readonly #identity: ReliableIdentity<unknown>
  readonly #keys: AddKeys

  constructor(context: ReliableContext, identity: ReliableIdentity<unknown>) {
    this.#context = context
    this.#identity = identity
    const { keys } = identity
    const { messages, deliveries, failures, config, once, inFlight, ticks } = keys
    this.#keys = { ...dueKeys(keys), messages, deliveries, failures, config, once, inFlight, ticks }
  }

  /** One result or error per message, in order; of each script all of them or none. */
  async many(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    const results = new Array<Added | RedelayedError>(pending.length)
    const chunks = chunksOf(pending)
    const one = async ([from, to]: readonly [number, number]): Promise<void> => {
      const part = pending.slice(from, to)
      const answer = await this.#send(part, how).catch((thrown: unknown) => toRedelayed(thrown))
      part.forEach((message, at) => {
        results[from + at] = answer instanceof Error ? answer : settled(message, at, answer, how.wait)
      })
    }
    const first = chunks.shift()
    if (first !== undefined) await one(first) // alone, so that the script is known before several are under way
    const worker = async (): Promise<void> => {
      for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) await one(chunk)
    }
    await Promise.all(Array.from({ length: CHUNKS_IN_FLIGHT }, worker))
    this.#emit(pending, results)
    return results
  }

  #emit(pending: readonly PendingMessage[], results: readonly (Added | RedelayedError)[]): void {
    const { hub } = this.#context.queues
    const { name } = this.#identity
    if (!hub.isHeard('added', name) && !hub.isHeard('full', name)) return
    const idsOf = (fits: (result: Added | RedelayedError) => boolean): string[] =>
      results.flatMap((result, at) => (fits(result) ? [pending[at]?.id ?? ''] : []))
    const isNew = (result: Added | RedelayedError): boolean => {
      const added = result instanceof DurabilityError ? result.added : result
      return added !== undefined && 'outcome' in added && (added.outcome === 'added' || added.outcome === 'replaced')
    }
    hub.messages('added', name, idsOf(isNew))
    hub.messages(
      'full',
      name,
      idsOf((result) => result instanceof QueueFullError),
    )
  }

  async #send(part: readonly PendingMessage[], { existing, wait }: How): Promise<Answer> {
    const { commands } = this.#context.queues
    const items = part.flatMap(itemArgs)
    let unknown: ConnectionError | undefined
    const startedAt = performance.now()
    const waitMs = wait?.timeoutMs ?? 0
    for (let attempt = 1; ; attempt++) {
      try {
        const args = this.#args({ existing, resent: unknown !== undefined, items, durable: wait !== undefined })
        if (wait !== undefined) return await this.#sendDurable(args, wait)
        return { reply: await run(commands, add, this.#keys, args) }
      } catch (error) {
        if (!(error instanceof ConnectionError)) {
          if (unknown === undefined) throw error
          // this attempt was refused, but an earlier one may have been carried out
          throw new ConnectionError(toError(error).message, 'unknown', { cause: error })
        }
        if (error.outcome === 'unknown') unknown ??= error
        // once the outcome of an attempt is unknown, it stays unknown when a later attempt was never sent
        if (
          error.outcome === 'not-applied' ||
          existing === 'postpone' ||
          attempt >= MAX_ATTEMPTS ||
          !commands.isInTime(startedAt, waitMs)
        )
          throw unknown ?? error
        if (!(await commands.maySendAgain(this.#identity.keys.messages, startedAt, waitMs).catch(() => false)))
          throw unknown ?? error
      }
    }
  }

  async #sendDurable(args: AddArgs, wait: Wait): Promise<Answer> {
    const { durable } = this.#context.queues
    const [answer] = await runMany(durable.sender(this.#keys.messages, wait), durableAdd, this.#keys, [args])
    if (answer === undefined || answer instanceof Error) throw answer ?? new InternalError('add-reply', 'there is none')
    return answer
  }

  #args(given: Omit<AddArgs, 'channel' | 'nowMs'>): AddArgs {
    return { channel: this.#identity.keys.channel, nowMs: scriptTime(this.#context.queues.settings), ...given }
  }
}

/** What the script answers, and what was reached where it was waited for. */
type Answer = Partial<WaitedFor<AddReply>> & Pick<WaitedFor<AddReply>, 'reply'>

/** As few arguments as can be: the layers below take more time for each than all else does. */
function itemArgs(message: PendingMessage): (Buffer | string)[] {
  const { visible } = message
  const when = visible === undefined ? '' : 'atMs' in visible ? `@${visible.atMs}` : String(visible.delayMs)
  const { id, priority, timeToLive, deliveryLimit, headers, payload, mark, markMs } = message
  return [
    id,
    `${priority},${when},${timeToLive},${deliveryLimit},${headers.length},${markMs},${mark}`,
    headers.length === 0 ? payload : Buffer.concat([headers, payload]),
  ]
}

/** What became of the message at that place; an error also when it is not as safe as asked. */
function settled(message: PendingMessage, at: number, answer: Answer, wait: Wait | undefined): Added | RedelayedError {
  const result = resultOf(message, answer.reply.outcomes[at] ?? NaN)
  if (wait === undefined || result instanceof RedelayedError) return result
  return shortfall(result, wait, answer as WaitedFor<AddReply>) ?? result
}

function resultOf({ id, isDrawn, payload }: PendingMessage, outcome: number): Added | RedelayedError {
  // no other caller has a drawn id: the message there is this one, which the layer below has sent twice
  if (isDrawn && outcome >= 0) return { id, outcome: 'added' }
  const known = OUTCOMES.get(outcome)
  if (known !== undefined) return { id, outcome: known }
  if (outcome === -2) return new QueueFullError()
  if (outcome === -4) return new OperationDisabledError('add')
  if (outcome === -5) return new PayloadTooLargeError(payload.length, 'what the queue allows')
  return new InvalidArgumentError('delay and timeToLive', 'a time of at most 2^53-1 ms', inWords('a later one'))
}

export function toRedelayed(thrown: unknown): RedelayedError {
  if (thrown instanceof RedelayedError) return thrown
  return new RedelayedError('ERR_INTERNAL', toError(thrown).message, { cause: thrown })
}

/** The first and the end of each part. */
function chunksOf(pending: readonly PendingMessage[]): (readonly [number, number])[] {
  const chunks: (readonly [number, number])[] = []
  let from = 0
  let bytes = 0
  pending.forEach(({ payload, headers }, at) => {
    const size = payload.length + headers.length
    if (at > from && (at - from >= CHUNK_ITEMS || bytes + size > CHUNK_BYTES)) {
      chunks.push([from, at])
      ;[from, bytes] = [at, 0]
    }
    bytes += size
  })
  if (from < pending.length) chunks.push([from, pending.length])
  return chunks
}
