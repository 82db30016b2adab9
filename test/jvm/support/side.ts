/** What every scenario starts with: a queue of strings seen from Node and from Java. */
import { expect } from 'chai'
import {
  codecs,
  type BlockingQueue,
  type ClientOptions,
  type Codec,
  type DelayedQueue,
  type RedelayedClient,
} from '../../../src/index.js'
import { makeClient, onCleanup } from '../../integration/fixtures.js'
import { rawClient, uniqueName } from '../../support/redis.js'
import { writesOldEntries, type Build } from './builds.js'
import { STRING, type JavaCodec, type JavaQueue, type Jvm } from './jvm.js'
import { cell } from './results.js'
import { java, type Typed } from './values.js'

/** One Redisson version under test; its JVM exists while tests run, not while they are defined. */
export interface Side {
  readonly build: Build
  readonly old: boolean
  jvm(): Jvm
}

export const NO_SWEEP = { sweepInterval: 3_600_000 }
/** Long enough that nothing of it becomes due in a test. */
export const LATER = 600_000
/** How late a message may be on a machine that does other things too: less than any other reason to look would need. */
const LATE_MS = 5_000

const NEEDS_NEW = "it gets stuck on entries of 3.21.1 and later, which layout: 'compact' needs"

/** Defines a test that is one row of the scenario table. */
export function scenario(
  { build, old }: Side,
  row: string,
  test: () => Promise<void>,
  { needsNewEntries = false, timeout = 20_000 }: { needsNewEntries?: boolean; timeout?: number } = {},
): void {
  const absent = needsNewEntries && old ? NEEDS_NEW : undefined
  cell({ table: 'scenarios', row, version: build.version }, { absent, timeout }, test)
}

export interface Both<T> {
  readonly name: string
  readonly client: RedelayedClient
  /** Does not deliver by itself. */
  readonly queue: BlockingQueue<T>
  /** Holds nothing yet. */
  readonly java: JavaQueue
  /** A delayed queue of Node; it delivers by default. */
  readonly delayed: (options?: { layout?: 'redisson' | 'compact'; deliver?: boolean }) => DelayedQueue<T>
  /** How often Node has delivered something. */
  readonly transferred: () => number
}

export interface BothOptions<T> {
  readonly name?: string
  readonly codec?: Codec<T>
  readonly javaCodec?: JavaCodec
  readonly javaClient?: string
  readonly options?: ClientOptions
}

export function both(side: Side, options?: BothOptions<string>): Both<string>
export function both<T>(side: Side, options: BothOptions<T> & { codec: Codec<T>; javaCodec: JavaCodec }): Both<T>
export function both<T>(
  side: Side,
  { name = uniqueName('jvm'), codec, javaCodec = STRING, javaClient, options = {} }: BothOptions<T> = {},
): Both<T> {
  const client = makeClient({ ...NO_SWEEP, consumersDeliver: false, ...formatFor(side), ...options })
  const queue = client.getBlockingQueue<T>(name, { codec: codec ?? (codecs.string() as unknown as Codec<T>) })
  const javaQueue = side.jvm().queue(name, javaCodec, javaClient)
  onCleanup(() => javaQueue.destroy())
  let transferred = 0
  client.on('transferred', () => transferred++)
  return {
    name,
    client,
    queue,
    java: javaQueue,
    delayed: (delayedOptions) => client.getDelayedQueue(queue, delayedOptions),
    transferred: () => transferred,
  }
}

/** For tests with entries that an old Redisson does not meet. */
export const NEW_ENTRIES = { entryFormat: 'Bc0Lc0' } as const

/** What Node writes so that this Redisson understands it. */
export function formatFor({ old }: Side): ClientOptions {
  return old ? { entryFormat: 'dLc0' } : {}
}

export const s = java.string

export function strings(values: readonly string[]): Typed[] {
  return values.map((value) => java.string(value))
}

/** Not before it was due, and not so late that something else must have delivered it. */
export function expectOnTime(dueMs: number, now = Date.now()): void {
  expect(now, 'too early').to.be.at.least(dueMs)
  expect(now - dueMs, 'too late, in ms').to.be.lessThan(LATE_MS)
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** The schedule and the order list hold the same entries, as every method of Redisson takes for granted. */
export async function expectConsistent(name: string): Promise<void> {
  const braced = name.includes('{') ? name : `{${name}}`
  const scheduled = await rawClient().zrangeBuffer(`redisson_delay_queue_timeout:${braced}`, '0', '-1')
  const ordered = await rawClient().lrangeBuffer(`redisson_delay_queue:${braced}`, 0, -1)
  const hex = (entries: Buffer[]): string[] => entries.map((entry) => entry.toString('hex')).sort()
  expect(hex(ordered)).to.deep.equal(hex(scheduled))
}

export function makeSide(build: Build, jvm: () => Jvm): Side {
  return { build, old: writesOldEntries(build), jvm }
}
