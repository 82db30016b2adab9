import { asArray, asBytes, asNumber } from '../store/replies.js'
import { run } from '../store/run.js'
import { count, get, type CountReply, type MessageReply } from '../store/reliable-scripts.js'
import { scriptTime } from '../options.js'
import { clean } from '../text.js'
import { dueKeys, type ReliableContext, type ReliableIdentity } from './context.js'

/** What becomes of a message next. */
export type MessageState = 'visible' | 'delayed' | 'inFlight'

const PAGE = 100

/** A message as it lies in Redis. */
export interface Found extends MessageReply {
  readonly id: Buffer
  readonly state: MessageState
}

/** Looks at a queue without changing anything. */
export class Inspection {
  readonly #context: ReliableContext
  readonly #identity: ReliableIdentity<unknown>

  constructor(context: ReliableContext, identity: ReliableIdentity<unknown>) {
    this.#context = context
    this.#identity = identity
  }

  /** One per id; `null` where there is no such message. */
  async find(ids: readonly Buffer[]): Promise<(Found | null)[]> {
    const { keys } = this.#identity
    const { messages, deliveries, failures, inFlight } = keys
    const found: (Found | null)[] = []
    while (found.length < ids.length) {
      const page = ids.slice(found.length, found.length + PAGE)
      const reply = await run(
        this.#context.queues.commands,
        get,
        { ...dueKeys(keys), messages, deliveries, failures, inFlight },
        { nowMs: this.#now, ids: page },
        { idempotent: true },
      )
      reply.messages.forEach((message, at) => {
        const id = page[at]
        found.push(message === null || id === undefined ? null : { ...message, id, state: stateOf(message, reply.now) })
      })
    }
    return found
  }

  async count(): Promise<CountReply> {
    const { keys, dead } = this.#identity
    const { messages, config, inFlight } = keys
    return run(
      this.#context.queues.commands,
      count,
      { ...dueKeys(keys), messages, config, inFlight, deadMessages: dead.messages },
      { nowMs: this.#now },
      { idempotent: true },
    )
  }

  /**
   * Walks the messages of one state, or all: by priority from the highest on, by time within one, those in flight last. While
   * others add and take, messages can be missed or seen twice.
   */
  async *walk(state: MessageState | undefined, pageSize: number): AsyncGenerator<Found, void> {
    const { due, inFlight } = this.#identity.keys
    const { now } = await this.count()
    const [least, most] = state === 'delayed' ? [`(${now}`, '+inf'] : ['-inf', state === 'visible' ? `${now}` : '+inf']
    const schedules = state === 'inFlight' ? [inFlight] : [...due.toReversed(), inFlight]
    for (const schedule of schedules) {
      for (let from = 0; ; from += pageSize) {
        const range = [schedule, least, most, 'LIMIT', String(from), String(pageSize)]
        const reply = await this.#context.queues.commands.call('ZRANGEBYSCORE', range, { idempotent: true })
        const members = asArray(reply).map(asBytes)
        const ids = schedule === inFlight ? members.map((member) => member.subarray(1)) : members
        for (const found of await this.find(ids)) {
          if (found !== null && (state === undefined || found.state === state)) yield found
        }
        if (members.length < pageSize) break
      }
    }
  }

  /** How long the first visible message has been waiting, in milliseconds; 0 when none is. */
  static waitOf({ firstVisibleAt, now }: CountReply): number {
    return firstVisibleAt === null ? 0 : Math.max(0, now - Math.max(0, firstVisibleAt))
  }

  get #now(): number {
    return scriptTime(this.#context.queues.settings)
  }
}

/** What a consumer had longer than it may is visible again, even if no consumer has polled since. */
function stateOf({ inFlight, visibleAt }: MessageReply, now: number): MessageState {
  if (visibleAt <= now) return 'visible'
  return inFlight ? 'inFlight' : 'delayed'
}

/** One line of a message's history. */
export interface FailedAttempt {
  readonly attempt: number
  readonly at: Date
  readonly reason: string
}

/** The scripts keep 8,192 bytes of a history, and none of their lines is shorter than 17. */
const MOST_LINES = 500

/** JSON of a text; whatever else was written there is shown as it is. */
function textIn(json: string): string {
  try {
    const text: unknown = JSON.parse(json)
    return typeof text === 'string' ? text : json
  } catch {
    return json
  }
}

/** The last lines of `<attempt> <epoch ms> <JSON text>`; what cannot be read is left out. */
export function readFailures(lines: string): FailedAttempt[] {
  const last = lines.split('\n').slice(-MOST_LINES)
  return last.flatMap((line) => {
    const [, attempt, at, json = ''] = /^(\d{1,15}) (\d{1,15}) (.*)$/s.exec(line) ?? []
    if (attempt === undefined || at === undefined) return []
    return [{ attempt: Number(attempt), at: new Date(asNumber(at)), reason: clean(textIn(json)) }]
  })
}
