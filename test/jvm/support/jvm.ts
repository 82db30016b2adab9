import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { redisUrl } from '../../support/redis.js'
import type { Build } from './builds.js'
import type { FleetEvent } from './fleet-job.js'
import type { Typed } from './values.js'

/** A codec of Redisson: the name of its class without "Codec", and what its constructor takes. See Codecs.java. */
export interface JavaCodec {
  readonly name: string
  readonly inner?: JavaCodec
  readonly type?: string
  readonly allowed?: readonly string[]
  readonly references?: boolean
}

export const STRING: JavaCodec = { name: 'String' }

interface Reply {
  readonly id: number
  readonly result?: unknown
  readonly error?: string
}

interface Waiting {
  resolve(result: unknown): void
  reject(error: Error): void
}

// A test JVM lives for seconds: a fast start is worth more than fast code.
const JVM_FLAGS = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto', '-Xmx512m']
const LOGGING = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-Dfile.encoding=UTF-8']
const KEPT_LOG = 8_000

/** A process of the Java side. Requests may be under way side by side. */
export class Jvm {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #waiting = new Map<number, Waiting>()
  readonly #onEvent: (event: FleetEvent) => void
  readonly #exited: Promise<void>
  #lastId = 0
  #log = ''

  private constructor(build: Build, onEvent: (event: FleetEvent) => void) {
    this.#onEvent = onEvent
    this.#child = spawn('java', [...JVM_FLAGS, ...LOGGING, '-cp', build.classpath, 'dev.redelayed.jvm.Main'])
    this.#child.stdin.on('error', () => {}) // it has ended, which rejects the requests
    this.#child.stderr.on('data', (bytes: Buffer) => (this.#log = (this.#log + bytes.toString()).slice(-KEPT_LOG)))
    const lines = createInterface({ input: this.#child.stdout })
    lines.on('line', (line) => this.#receive(line))
    // "close" comes when everything it wrote has been read
    this.#exited = Promise.all([once(lines, 'close'), once(this.#child, 'close')]).then(() => {
      for (const waiting of this.#waiting.values()) waiting.reject(new Error(`the JVM has ended\n${this.#log}`))
      this.#waiting.clear()
    })
  }

  static async start(build: Build, onEvent: (event: FleetEvent) => void = () => {}): Promise<Jvm> {
    const jvm = new Jvm(build, onEvent)
    await jvm.request('ping')
    return jvm
  }

  /** What Redisson has logged lately. */
  get log(): string {
    return this.#log
  }

  async request<T = unknown>(op: string, args: object = {}): Promise<T> {
    const id = ++this.#lastId
    const reply = new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve, reject })
    })
    this.#child.stdin.write(`${JSON.stringify({ id, op, ...args })}\n`)
    return reply
  }

  /** A Redisson client; `prefix` is what its name mapper puts in front of names. */
  async open({ client = 'main', prefix }: { client?: string; prefix?: string } = {}): Promise<void> {
    await this.request('open', { client, url: redisUrl(), prefix })
  }

  async close(client = 'main'): Promise<void> {
    await this.request('close', { client })
  }

  queue(name: string, codec: JavaCodec = STRING, client = 'main'): JavaQueue {
    return new JavaQueue(this, { client, queue: name, codec })
  }

  /** Ends it in order. */
  async stop(): Promise<void> {
    this.#child.stdin.end()
    await this.#exited
  }

  /** Resolves when all that it reported before its death has been read. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  #receive(line: string): void {
    const message = JSON.parse(line) as Reply | FleetEvent
    if ('event' in message) return this.#onEvent(message)
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if (message.error === undefined) waiting?.resolve(message.result)
    else waiting?.reject(new Error(`Java: ${message.error}`))
  }
}

/** When Java called offer, by its own clock; the due time is between these plus the delay. */
export interface OfferTimes {
  readonly before: number
  readonly after: number
}

/** Redisson's RBlockingQueue and, after `hold`, the RDelayedQueue on it. */
export class JavaQueue {
  readonly #jvm: Jvm
  readonly #target: object
  #held = false

  constructor(jvm: Jvm, target: { client: string; queue: string; codec: JavaCodec }) {
    this.#jvm = jvm
    this.#target = target
  }

  /** Gets an RDelayedQueue, with which this JVM begins to deliver. */
  async hold(): Promise<void> {
    if (this.#held) return
    await this.#call('hold')
    this.#held = true
  }

  async destroy(): Promise<void> {
    if (!this.#held) return
    this.#held = false
    await this.#call('destroy')
  }

  /** One call to Java that gets a delayed queue, offers and gives it up, so that another client must deliver. */
  async offerAndLeave(value: Typed, delay: number): Promise<OfferTimes> {
    await this.hold()
    const times = await this.offer(value, delay)
    await this.destroy()
    return times
  }

  offer = (value: Typed, delay: number): Promise<OfferTimes> => this.#call('offer', { value, delay })
  add = (value: Typed): Promise<boolean> => this.#call('add', { value })
  take = (): Promise<Typed> => this.#call('take')
  /** Redisson waits for whole seconds, at least one. */
  poll = (timeout: number): Promise<Typed> => this.#call('poll', { timeout })
  drain = (): Promise<Typed[]> => this.#call('drain')
  list = (): Promise<Typed[]> => this.#call('list')
  size = (): Promise<number> => this.#call('delayedSize')
  readAll = (): Promise<Typed[]> => this.#call('delayedReadAll')
  contains = (value: Typed): Promise<boolean> => this.#call('delayedContains', { value })
  peek = (): Promise<Typed> => this.#call('delayedPeek')
  pollPending = (): Promise<Typed> => this.#call('delayedPoll')
  remove = (value: Typed): Promise<boolean> => this.#call('delayedRemove', { value })

  #call<T>(op: string, args: object = {}): Promise<T> {
    return this.#jvm.request<T>(op, { ...this.#target, ...args })
  }
}
