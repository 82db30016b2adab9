import type { Redis } from 'ioredis'
import { breakOff } from '../connections/break-off.js'
import { endWithFirstError } from '../connections/first-error.js'
import { ignoreBytes } from './progress.js'
import { ProtocolError, ReplyScanner, TYPE } from './reply-scanner.js'

/** The longest line of Redis: the error of a script quotes at most a part of its arguments. */
const MAX_LINE = 64 * 1024
/**
 * The most bytes of pushes without a subscription since the last reply or message: endless ones would keep the process busy and defeat the
 * checks for silence.
 */
const MAX_STRAY = 1024 * 1024

interface Sent {
  readonly name: string
  readonly args: readonly unknown[]
}

/** The internals of an ioredis client that the guard reads. */
interface Internals {
  readonly commandQueue: {
    readonly length: number
    peekAt(index: number): { readonly command: Sent } | undefined
  }
  readonly condition: { readonly protocol?: number; readonly subscriber?: unknown }
  readonly connector?: { connectToSentinel?: (...args: unknown[]) => Redis }
}

type Decode = (chunk: Buffer) => void

/** The guarded clients: a copy of a guarded node is guarded before it becomes a connection of this package. */
const guarded = new WeakSet<Redis>()

/**
 * Checks the bytes that an ioredis client receives before ioredis decodes them: ioredis trusts every byte, so a wrong one can cause an
 * endless loop or an uncaught exception. Bytes that are not a reply, or not a TLS record, end the connection, and calls in flight reject.
 * Call it before the client connects.
 */
export function guardReplies(redis: Redis): Redis {
  if (guarded.has(redis)) return redis
  guarded.add(redis)
  redis.on('connect', () => {
    const { stream } = redis
    endWithFirstError(redis)
    // ioredis's decoder is the first listener, so the other listeners run after the bytes were decoded
    const decode = stream.listeners('data')[0] as Decode | undefined
    if (decode === undefined) return
    const guard = new ReplyGuard(redis, decode)
    stream.prependListener('data', (chunk: Buffer) => guard.write(chunk))
    stream.removeListener('data', decode)
  })
  // the client with which ioredis asks a sentinel
  const { connector } = redis as unknown as Internals
  const connectToSentinel = connector?.connectToSentinel?.bind(connector)
  if (connector !== undefined && connectToSentinel !== undefined) {
    connector.connectToSentinel = (...args) => guardReplies(connectToSentinel(...args))
  }
  return redis
}

/** The guard of one connection. */
class ReplyGuard {
  readonly #redis: Redis
  readonly #internals: Internals
  readonly #decode: Decode
  readonly #scanner = new ReplyScanner()
  /** The beginning of a line whose end has not arrived. */
  #held: Buffer | undefined
  /** The bytes of the frame in earlier chunks, without `#held`. */
  #begun = 0
  /** The bytes of pushes of an unknown kind since the last reply or message. */
  #stray = 0
  #broken = false
  /** The last command that subscribes, and how many of its channels were acknowledged. */
  #subscribing: Sent | undefined
  #acknowledged = 0

  constructor(redis: Redis, decode: Decode) {
    this.#redis = redis
    this.#internals = redis as unknown as Internals
    this.#decode = decode
  }

  write(chunk: Buffer): void {
    if (this.#broken) return
    const data = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = undefined
    const scanner = this.#scanner
    const { commandQueue, condition } = this.#internals
    scanner.tracksArrays = condition.protocol !== 3
    let decoded = 0
    let at = 0
    let replies = 0 // since the last byte that was decoded
    try {
      for (;;) {
        scanner.isSubscribed = Boolean(condition.subscriber)
        scanner.isList = LISTS.has(commandQueue.peekAt(replies)?.command.name ?? '')
        const end = scanner.next(data, at)
        if (end === -1) break
        const bytes = this.#begun + end - at
        this.#begun = 0
        if (this.#isReply(replies)) {
          replies++
          this.#stray = 0
          at = end
          continue
        }
        // the check needs the queue of commands after ioredis has decoded all earlier bytes
        this.#pass(data, decoded, at)
        decoded = at
        replies = 0
        if (this.#isReply(0) || this.#isKnown()) this.#stray = 0
        else this.#ignore(bytes)
        this.#pass(data, at, end)
        decoded = at = end
      }
      const { safe } = scanner
      this.#begun += safe - at
      this.#pass(data, decoded, safe)
      if (safe === data.length) return
      if (data.length - safe > MAX_LINE) throw new ProtocolError('a line is too long')
      this.#held = data.subarray(safe)
    } catch (thrown) {
      if (!(thrown instanceof ProtocolError)) throw thrown
      if (at > decoded) this.#pass(data, decoded, at) // complete frames
      this.#broken = true
      breakOff(this.#redis, thrown)
    }
  }

  #ignore(bytes: number): void {
    ignoreBytes(this.#redis, bytes)
    this.#stray += bytes
    if (this.#stray > MAX_STRAY) throw new ProtocolError('too many pushes without a subscription')
  }

  #pass(data: Buffer, from: number, to: number): void {
    if (to > from) this.#decode(to - from === data.length ? data : data.subarray(from, to))
  }

  /** Whether the frame is an ordinary reply to the command at that position of the queue, which needs no further check. */
  #isReply(index: number): boolean {
    const { commandQueue, condition } = this.#internals
    const { type } = this.#scanner
    if (type === TYPE.push || (condition.protocol !== 3 && condition.subscriber)) return false
    const name = commandQueue.peekAt(index)?.command.name
    if (name === undefined) throw new ProtocolError('a reply to no command')
    if (SUBSCRIPTIONS.has(name)) return false
    // ioredis reads fields of this reply
    if (name === 'info' && type !== TYPE.bulk && type !== TYPE.verbatim && !isError(type)) {
      throw new ProtocolError('a reply that its command does not have')
    }
    return true
  }

  /**
   * Checks a push, a message with RESP2, or the reply to a command that subscribes, whose elements ioredis reads without checks. False for
   * pushes of an unknown kind, which ioredis ignores.
   */
  #isKnown(): boolean {
    const { commandQueue, condition } = this.#internals
    const { type, kind, count, shape } = this.#scanner
    const name = commandQueue.peekAt(0)?.command.name
    const isArray = type === TYPE.array && condition.protocol !== 3
    if (type === TYPE.push ? condition.protocol === 3 : isArray) {
      const forms = FORMS.get(kind)
      if (forms !== undefined) {
        if (!forms.includes(shape) || count !== lengthOf(shape)) throw new ProtocolError('a message without its parts')
        if (!SUBSCRIPTIONS.has(kind)) {
          if (!condition.subscriber) throw new ProtocolError('a message without a subscription')
        } else if (kind !== name || !this.#wasAsked()) throw new ProtocolError('a subscription that was not asked for')
        return true
      }
      if (count < 2 || kind === '') throw new ProtocolError('a message without a kind')
      if (type === TYPE.push) return false
    } else if (type === TYPE.push || type === TYPE.set || type === TYPE.map) {
      throw new ProtocolError('a reply that its command does not have')
    }
    if (name === undefined) throw new ProtocolError('a reply to no command')
    if (SUBSCRIPTIONS.has(name) && !isError(type)) throw new ProtocolError('a reply that its command does not have')
    return true
  }

  /** Whether the acknowledged channel is the next one of the command, which it is not after a wrong byte in the request. */
  #wasAsked(): boolean {
    const command = this.#internals.commandQueue.peekAt(0)?.command
    if (command !== this.#subscribing) this.#acknowledged = 0
    this.#subscribing = command
    const asked = command?.args[this.#acknowledged++]
    const { channel } = this.#scanner
    if (asked === undefined || channel === undefined) return true // all channels end, or the name is long
    return Buffer.from(typeof asked === 'number' ? String(asked) : (asked as string | Buffer)).equals(
      Buffer.from(channel, 'latin1'),
    )
  }
}

function isError(type: number): boolean {
  return type === TYPE.error || type === TYPE.bulkError
}

/** The commands whose reply is a whole list, by their names as sent. */
const LISTS = new Set(['LRANGE', 'ZRANGE', 'HKEYS'])

const SUBSCRIBES = ['subscribe', 'psubscribe', 'ssubscribe']
const UNSUBSCRIBES = ['unsubscribe', 'punsubscribe', 'sunsubscribe']
const SUBSCRIPTIONS = new Set([...SUBSCRIBES, ...UNSUBSCRIBES])

const { bulk, integer, nil } = TYPE
const MESSAGE = shapeOf(bulk, bulk, bulk)
const SUBSCRIBED = shapeOf(bulk, bulk, integer)
const UNSUBSCRIBED = shapeOf(bulk, nil, integer)

/** The elements of the frames that ioredis knows. */
const FORMS = new Map<string, readonly number[]>([
  ['message', [MESSAGE]],
  ['smessage', [MESSAGE]],
  ['pmessage', [shapeOf(bulk, bulk, bulk, bulk)]],
  ...SUBSCRIBES.map((kind) => [kind, [SUBSCRIBED]] as const),
  ...UNSUBSCRIBES.map((kind) => [kind, [SUBSCRIBED, UNSUBSCRIBED]] as const),
])

function shapeOf(...types: readonly number[]): number {
  return types.reduce((shape, type, at) => shape | (type << (7 * at)), 0)
}

function lengthOf(shape: number): number {
  return shape < 2 ** 21 ? 3 : 4
}
