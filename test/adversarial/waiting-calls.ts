import {
  codecs,
  type BlockingDeque,
  type BlockingQueue,
  type DelayedQueue,
  type MessageBatch,
  type RedelayedClient,
  type ReliableQueue,
  type ShardedDelayedQueue,
  type ShardedReliableQueue,
  type TimeUnit,
  type Worker,
} from '../../src/index.js'

/** The objects of one client that an application waits with. */
export interface Objects {
  readonly client: RedelayedClient
  readonly queue: BlockingQueue<string>
  readonly deque: BlockingDeque<string>
  readonly delayed: DelayedQueue<string>
  readonly sharded: ShardedDelayedQueue<string>
  readonly reliable: ReliableQueue<string>
  readonly batch: MessageBatch<string>
  readonly shardedReliable: ShardedReliableQueue<string>
  readonly worker: Worker
}

export function objectsOf(client: RedelayedClient, name: string): Objects {
  const codec = codecs.string()
  const reliable = client.getReliableQueue<string>(`{${name}}:reliable`, { codec })
  const worker = client.createWorker(reliable, () => undefined, { visibilityTimeout: 1_000 })
  worker.on('error', () => {}) // it goes on by itself
  const deque = client.getBlockingDeque<string>(`{${name}}:deque`, { codec })
  return {
    client,
    deque,
    queue: client.getBlockingQueue<string>(`{${name}}:queue`, { codec }),
    delayed: client.getDelayedQueue(deque),
    sharded: client.getShardedDelayedQueue<string>(`${name}:sharded`, { codec, shards: SHARDS }),
    reliable,
    batch: reliable.batch('import'),
    shardedReliable: client.getShardedReliableQueue<string>(`${name}:sharded`, { codec, shards: SHARDS }),
    worker,
  }
}

/** The ends of a wait: both, one or none. */
export interface Ends {
  readonly timeout?: number
  readonly signal?: AbortSignal
}

export interface WaitingCall {
  /** Which of them it takes; one with a timeout rejects at its end, and so does a plain call at the end of `connectTimeout`. */
  readonly takes: readonly (keyof Ends)[]
  readonly call: (objects: Objects, ends: Ends) => Promise<unknown>
  /** How many servers, one after the other, it may wait for. */
  readonly steps?: number
}

const MS: TimeUnit = 'milliseconds'
const SHARDS = 2
const LONG_MS = 60_000
const DURABILITY = { replicas: 1, timeoutMs: 200 }

const time = ({ timeout = LONG_MS }: Ends): number => timeout
const signalOf = ({ signal }: Ends): { signal?: AbortSignal } => (signal === undefined ? {} : { signal })
const by = (...takes: (keyof Ends)[]) => ({
  calling: (call: WaitingCall['call']): WaitingCall => ({ takes, call }),
})
const plain = by()
const signalled = by('signal')
const both = by('timeout', 'signal')

/** Every public call that can wait for longer than an answer takes, by its class and name. */
export const WAITING: Readonly<Record<string, WaitingCall>> = {
  'RedelayedClient.ping': plain.calling(({ client }) => client.ping()),

  'BlockingQueue.take': signalled.calling(({ queue }, ends) => queue.take(signalOf(ends))),
  'BlockingQueue.poll': both.calling(({ queue }, ends) => queue.poll(time(ends), signalOf(ends))),
  'BlockingQueue.takeMany': both.calling(({ queue }, ends) =>
    queue.takeMany(5, { timeout: time(ends), ...signalOf(ends) }),
  ),
  'BlockingQueue.elements': signalled.calling(({ queue }, ends) => queue.elements(signalOf(ends)).next()),
  'BlockingQueue.Symbol(Symbol.asyncIterator)': plain.calling(({ queue }) => queue[Symbol.asyncIterator]().next()),
  'BlockingQueue.pollFromAny': both.calling(({ queue, deque }, ends) =>
    queue.pollFromAny(time(ends), MS, [deque.name], signalOf(ends)),
  ),
  'BlockingQueue.pollFromAnyWithName': both.calling(({ queue, deque }, ends) =>
    queue.pollFromAnyWithName(time(ends), MS, [deque.name], signalOf(ends)),
  ),
  'BlockingQueue.pollLastFromAnyWithName': both.calling(({ queue, deque }, ends) =>
    queue.pollLastFromAnyWithName(time(ends), MS, [deque.name], signalOf(ends)),
  ),
  'BlockingQueue.pollFirstFromAny': both.calling(({ queue, deque }, ends) =>
    queue.pollFirstFromAny(time(ends), MS, 2, [deque.name], signalOf(ends)),
  ),
  'BlockingQueue.pollLastFromAny': both.calling(({ queue, deque }, ends) =>
    queue.pollLastFromAny(time(ends), MS, 2, [deque.name], signalOf(ends)),
  ),
  'BlockingQueue.pollLastAndOfferFirstTo': both.calling(({ queue, deque }, ends) =>
    queue.pollLastAndOfferFirstTo(deque.name, time(ends), MS, signalOf(ends)),
  ),
  'BlockingQueue.takeLastAndOfferFirstTo': signalled.calling(({ queue, deque }, ends) =>
    queue.takeLastAndOfferFirstTo(deque.name, signalOf(ends)),
  ),
  'BlockingQueue.put': plain.calling(({ queue }) => queue.put('x')),

  'BlockingDeque.takeFirst': signalled.calling(({ deque }, ends) => deque.takeFirst(signalOf(ends))),
  'BlockingDeque.takeLast': signalled.calling(({ deque }, ends) => deque.takeLast(signalOf(ends))),
  'BlockingDeque.pollFirst': both.calling(({ deque }, ends) => deque.pollFirst(time(ends), signalOf(ends))),
  'BlockingDeque.pollLast': both.calling(({ deque }, ends) => deque.pollLast(time(ends), signalOf(ends))),
  'BlockingDeque.pollFirstFromAny': both.calling(({ queue, deque }, ends) =>
    deque.pollFirstFromAny(time(ends), MS, [queue.name], signalOf(ends)),
  ),
  'BlockingDeque.pollLastFromAny': both.calling(({ queue, deque }, ends) =>
    deque.pollLastFromAny(time(ends), MS, [queue.name], signalOf(ends)),
  ),
  'BlockingDeque.move': both.calling(({ queue, deque }, ends) =>
    deque.move(time(ends), MS, { from: 'first', to: queue.name, at: 'last' }, signalOf(ends)),
  ),
  'BlockingDeque.putFirst': plain.calling(({ deque }) => deque.putFirst('x')),
  'BlockingDeque.putLast': plain.calling(({ deque }) => deque.putLast('x')),

  'DelayedQueue.offer': plain.calling(({ delayed }) => delayed.offer('x', 10)),
  'DelayedQueue.offer, durable': plain.calling(({ delayed }) => delayed.offer('x', 10, { durability: DURABILITY })),
  'DelayedQueue.offerAt': plain.calling(({ delayed }) => delayed.offerAt('x', new Date(), { durability: DURABILITY })),
  'DelayedQueue.offerAll': plain.calling(({ delayed }) => delayed.offerAll([{ value: 'x', delay: 10 }])),
  'DelayedQueue.offerAll, durable': plain.calling(({ delayed }) =>
    delayed.offerAll([{ value: 'x', delay: 10 }], { durability: DURABILITY }),
  ),

  'ShardedDelayedQueue.take': signalled.calling(({ sharded }, ends) => sharded.take(signalOf(ends))),
  'ShardedDelayedQueue.poll': both.calling(({ sharded }, ends) => sharded.poll(time(ends), signalOf(ends))),
  'ShardedDelayedQueue.takeMany': both.calling(({ sharded }, ends) =>
    sharded.takeMany(5, { timeout: time(ends), ...signalOf(ends) }),
  ),
  'ShardedDelayedQueue.elements': signalled.calling(({ sharded }, ends) => sharded.elements(signalOf(ends)).next()),
  'ShardedDelayedQueue.Symbol(Symbol.asyncIterator)': plain.calling(({ sharded }) =>
    sharded[Symbol.asyncIterator]().next(),
  ),
  'ShardedDelayedQueue.drainTo': { ...plain.calling(({ sharded }) => sharded.drainTo()), steps: SHARDS },
  'ShardedDelayedQueue.offer': plain.calling(({ sharded }) => sharded.offer('x', 10, { durability: DURABILITY })),
  'ShardedDelayedQueue.offerAt': plain.calling(({ sharded }) => sharded.offerAt('x', new Date())),
  'ShardedDelayedQueue.offerAll': plain.calling(({ sharded }) => sharded.offerAll([{ value: 'x', delay: 10 }])),

  'ReliableQueue.poll': both.calling(({ reliable }, ends) => reliable.poll({ timeout: time(ends), ...signalOf(ends) })),
  'ReliableQueue.poll, without waiting': plain.calling(({ reliable }) => reliable.poll()),
  'ReliableQueue.pollMany': both.calling(({ reliable }, ends) =>
    reliable.pollMany({ count: 5, timeout: time(ends), ...signalOf(ends) }),
  ),
  'ReliableQueue.add': plain.calling(({ reliable }) => reliable.add('x')),
  'ReliableQueue.addMany': plain.calling(({ reliable }) => reliable.addMany([{ payload: 'x' }])),
  'ReliableQueue.size': plain.calling(({ reliable }) => reliable.size()),
  'ReliableQueue.waitUntilFinished': both.calling(({ reliable }, ends) =>
    reliable.waitUntilFinished('x', { timeout: ends.timeout ?? Infinity, ...signalOf(ends) }),
  ),
  'ReliableQueue.getCompleted': plain.calling(({ reliable }) => reliable.getCompleted('x')),
  'ReliableQueue.changes': signalled.calling(({ reliable }, ends) => reliable.changes(signalOf(ends)).next()),

  'MessageBatch.waitUntilFinished': both.calling(({ batch }, ends) =>
    batch.waitUntilFinished({ timeout: ends.timeout ?? Infinity, ...signalOf(ends) }),
  ),
  'MessageBatch.counts': plain.calling(({ batch }) => batch.counts()),
  'MessageBatch.close': plain.calling(({ batch }) => batch.close()),

  'ShardedReliableQueue.poll': both.calling(({ shardedReliable }, ends) =>
    shardedReliable.poll({ timeout: time(ends), ...signalOf(ends) }),
  ),
  'ShardedReliableQueue.poll, without waiting': {
    ...plain.calling(({ shardedReliable }) => shardedReliable.poll()),
    steps: SHARDS,
  },
  'ShardedReliableQueue.pollMany': both.calling(({ shardedReliable }, ends) =>
    shardedReliable.pollMany({ count: 5, timeout: time(ends), ...signalOf(ends) }),
  ),
  'ShardedReliableQueue.add': plain.calling(({ shardedReliable }) => shardedReliable.add('x')),
  'ShardedReliableQueue.addMany': plain.calling(({ shardedReliable }) => shardedReliable.addMany([{ payload: 'x' }])),
  'ShardedReliableQueue.waitUntilFinished': both.calling(({ shardedReliable }, ends) =>
    shardedReliable.waitUntilFinished('x', { timeout: ends.timeout ?? Infinity, ...signalOf(ends) }),
  ),
  'ShardedReliableQueue.changes': signalled.calling(({ shardedReliable }, ends) =>
    shardedReliable.changes(signalOf(ends)).next(),
  ),
  'ShardedReliableQueue.size': plain.calling(({ shardedReliable }) => shardedReliable.size()),
  'ShardedReliableQueue.redrive': {
    ...plain.calling(({ shardedReliable }) => shardedReliable.redrive()),
    steps: SHARDS,
  },
}

/** The ways to end a call, each tried separately. */
export const ENDING: readonly string[] = [
  'Worker.close',
  'Worker.Symbol(nodejs.asyncDispose)',
  'RedelayedClient.shutdown',
  'RedelayedClient.Symbol(nodejs.asyncDispose)',
  'DelayedQueue.destroy',
  'DelayedQueue.Symbol(nodejs.asyncDispose)',
  'ShardedDelayedQueue.destroy',
  'ShardedDelayedQueue.Symbol(nodejs.asyncDispose)',
]

/** Methods that wait for nothing but the answer to what they send, or for nothing at all; and those that are not public. */
export const OTHERS: ReadonlySet<string> = new Set(
  `remainingCapacity subscribeOnElements unsubscribe subscribe anyOne anyMany sibling takeAt pollAt waitHere waitAmong waitAny
  waitAndMove millis offer add addAll peek size isEmpty element contains indexOf containsAll removeAll retainAll remove drainTo move
  readAll toArray iterate keysOf channelOf pollNow takeNow assertUsable getName getCodec isExists delete unlink clear touch
  sizeInMemory expire expireIfSet expireIfNotSet expireIfGreater expireIfLess clearExpire remainTimeToLive getExpireTime rename
  renamenx copy copyAndReplace readQuarantine clearQuarantine encodeDistinct decodeAll accept setAside pages encode required decode
  send read script whole checked named attribute subscribeOnFirstElements subscribeOnLastElements addFirst addLast addFirstIfExists
  addLastIfExists offerFirst offerLast push pop removeFirst removeLast peekFirst peekLast getFirst getLast removeFirstOccurrence
  removeLastOccurrence descendingIterator offerEncoded offerAllEncoded on once off cancel reschedule poll pollLastAndOfferFirstTo
  stats addTask schedule filter find attributed sizes readySize endTakes acknowledge negativeAcknowledge extend progress redrive redriveFree upsertSchedule removeSchedule
  listSchedules updatePayload moveTo removeIds get getAll containsMany listAll counts countDelayedMessages
  countUnacknowledgedMessages setConfig setConfigIfAbsent getConfig disableOperation enableOperation configure operation info pause
  resume getQueue getBlockingQueue getDeque getBlockingDeque getDelayedQueue getShardedDelayedQueue getReliableQueue getShardedReliableQueue
  restoreMany getAllRaw listAllRaw now shardsOf acknowledgeChanges readChanges releaseChanges
  removeChangeGroup changeStatus allEvents createWorker pollFor begin extendSome addPrepared queueOf health
  complete resultOf lastTickOf continueSchedule getCompleted listCompleted pauseGroup resumeGroup pausedGroups pauseTask resumeTask pausedTasks countsOfGroup totals listGroups batch`.split(
    /\s+/,
  ),
)
