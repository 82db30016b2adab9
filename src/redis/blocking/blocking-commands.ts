import type { Redis } from 'ioredis'
import { InternalError, UnsupportedServerError } from '../../errors.js'
import { asArray, asBytes, asBytesArray, asBytesOrNull } from '../../store/replies.js'
import type { End } from '../../store/list-store.js'
import type { Sender } from '../../store/sender.js'
import { translateError } from '../replies/server-errors.js'

export type Popped = readonly [key: string, elements: Buffer[]]

/** The commands of one kind of blocking connection. A key is a text that the command can wait for. */
export interface BlockingCommand {
  /** Waits until one of the keys gives at least one and at most `count` elements; `null` when the time is over. */
  wait(redis: Redis, keys: readonly string[], count: number, seconds: number): Promise<Popped | null>
  /** Takes more elements of a key without waiting, if `wait` cannot take several. */
  more(key: string, count: number): Promise<Buffer[]>
  /** Rejects if a key is invalid, such as of another type. */
  probe(key: string): Promise<void>
}

/** Takes up to `count` elements of a list without waiting. */
export type Drain = (key: string, end: End, count: number) => Promise<Buffer[]>

/** Takes elements at one end of several lists: BLMPOP, or BLPOP and BRPOP before Redis 7. */
export class BlockingPop implements BlockingCommand {
  readonly #sender: Sender
  readonly #drain: Drain
  readonly #end: End
  #multiPop = true

  constructor(sender: Sender, drain: Drain, end: End) {
    this.#sender = sender
    this.#drain = drain
    this.#end = end
  }

  async wait(redis: Redis, keys: readonly string[], count: number, seconds: number): Promise<Popped | null> {
    if (this.#multiPop) {
      try {
        const end = this.#end === 'left' ? 'LEFT' : 'RIGHT'
        const reply = await redis.callBuffer('BLMPOP', seconds, keys.length, ...keys, end, 'COUNT', count)
        if (reply === null) return null
        const [key, elements] = asArray(reply)
        return popped(keys, key, asBytesArray(elements))
      } catch (thrown) {
        if (!(translateError(thrown) instanceof UnsupportedServerError)) throw thrown
        this.#multiPop = false
      }
    }
    const reply = await redis.callBuffer(this.#end === 'left' ? 'BLPOP' : 'BRPOP', ...keys, seconds)
    if (reply === null) return null
    const [key, ...elements] = asBytesArray(reply)
    return popped(keys, key, elements)
  }

  async more(key: string, count: number): Promise<Buffer[]> {
    return this.#multiPop ? [] : this.#drain(key, this.#end, count)
  }

  async probe(key: string): Promise<void> {
    await this.#sender.call('LLEN', [key])
  }
}

/** The popped elements. A reply without elements, or from a list that was not asked for, is not a reply to this command. */
function popped(keys: readonly string[], key: unknown, elements: Buffer[]): Popped {
  const name = asBytes(key).toString()
  if (elements.length > 0 && keys.includes(name)) return [name, elements]
  throw new InternalError('unexpected-reply', 'expected elements of a list that was asked for')
}

/** A move from one end of a list to one end of another, in one step at the server. */
export interface ListMove {
  readonly source: string
  readonly target: string
  readonly from: End
  readonly to: End
}

/** Moves one element from list to list: BLMOVE, or BRPOPLPUSH before Redis 6.2. Its keys are `moveKey`s, one at a time. */
export class BlockingMove implements BlockingCommand {
  readonly #sender: Sender

  constructor(sender: Sender) {
    this.#sender = sender
  }

  async wait(redis: Redis, [key = '']: readonly string[], _count: number, seconds: number): Promise<Popped | null> {
    const move = parseMoveKey(key)
    const reply = await moveWith(move, (command, args) => redis.callBuffer(`B${command}`, ...args, seconds))
    const element = asBytesOrNull(reply)
    return element === null ? null : [key, [element]]
  }

  async more(): Promise<Buffer[]> {
    return []
  }

  async probe(key: string): Promise<void> {
    const { source, target } = parseMoveKey(key)
    await this.#sender.call('LLEN', [source])
    await this.#sender.call('LLEN', [target])
  }
}

/** A move as a text, so that equal moves share a command. */
export function moveKey({ source, target, from, to }: ListMove): string {
  return JSON.stringify([source, target, from, to])
}

/** The move that `moveKey` made into this text. */
export function parseMoveKey(key: string): ListMove {
  const [source, target, from, to] = JSON.parse(key) as [string, string, End, End]
  return { source, target, from, to }
}

/**
 * Sends LMOVE or BLMOVE by `call`. On a server before 6.2 it falls back to `RPOPLPUSH`, the only move of such a server.
 *
 * @throws UnsupportedServerError `ERR_UNSUPPORTED_SERVER`: for the other moves
 */
export async function moveWith(
  { source, target, from, to }: ListMove,
  call: (command: 'LMOVE' | 'RPOPLPUSH', args: string[]) => Promise<unknown>,
): Promise<unknown> {
  try {
    return await call('LMOVE', [source, target, from.toUpperCase(), to.toUpperCase()])
  } catch (thrown) {
    const error = translateError(thrown)
    if (!(error instanceof UnsupportedServerError) || from !== 'right' || to !== 'left') throw error
  }
  return call('RPOPLPUSH', [source, target])
}
