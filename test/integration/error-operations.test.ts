import { expect } from 'chai'
import { types } from 'node:util'
import {
  RedelayedError,
  codecs,
  createClient,
  type AddManyError,
  type OfferAllError,
  type RedelayedClient,
} from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup, rejection, rawKeys } from './fixtures.js'

/** Values of the wrong type, as JavaScript callers pass them. */
const as = (value: unknown): never => value as never
const LATER = 600_000

/** The internal methods that other parts of the library call, and the operation that each carries out. */
const INTERNAL: Readonly<Record<string, string>> = {
  offerEncoded: 'offer',
  offerAllEncoded: 'offerAll',
  addPrepared: 'addMany',
  pollFor: 'poll',
  queueOf: 'poll',
  complete: 'acknowledge',
  resultOf: 'acknowledge',
  begin: 'extend',
  extendSome: 'extend',
  lastTickOf: 'upsertSchedule',
  continueSchedule: 'upsertSchedule',
}

/** A call that fails, and which queue its error names. */
type Fails = readonly [call: () => unknown, queue: string | undefined]
type Failing = Readonly<Record<string, Fails>>

/** Runs each call; the error must name the operation that the key says, up to a comment in brackets. */
async function expectOperations(failing: Failing): Promise<void> {
  for (const [what, [call, queue]] of Object.entries(failing)) {
    const error = await rejection(Promise.resolve().then(call)).catch(() => expect.fail(`${what} did not fail`))
    expect(error, what).to.include({ operation: what.replace(/ \(.*/, ''), queue })
    if (queue !== undefined) expect(error.message, what).to.include(JSON.stringify(queue))
  }
}

/** Calls each method of an object without arguments; those of the package's errors that came of it. */
async function failuresOf(object: object): Promise<Map<string, RedelayedError>> {
  const failed = new Map<string, RedelayedError>()
  for (let type = object; type !== Object.prototype; type = Object.getPrototypeOf(type) as object) {
    for (const [method, { value }] of Object.entries(Object.getOwnPropertyDescriptors(type))) {
      if (typeof value !== 'function' || method === 'constructor') continue
      const call = async (): Promise<unknown> => {
        const result: unknown = Reflect.apply(value as () => unknown, object, [])
        return types.isGeneratorObject(result) ? result.next() : result
      }
      const thrown: unknown = await call().then(
        () => undefined,
        (error: unknown) => error,
      )
      if (thrown instanceof RedelayedError) failed.set(method, thrown)
    }
  }
  return failed
}

describe('The operation and the queue of an error', () => {
  let client: RedelayedClient
  let name: string
  beforeEach(() => {
    client = makeClient({ codec: codecs.string(), warnings: false })
    name = uniqueName()
  })
  afterEach(cleanUp)

  it('of each item of a call with several', async () => {
    const delayed = client.getDelayedQueue(client.getQueue<string>(name))
    const sharded = client.getShardedDelayedQueue<string>(name, { shards: 2 })
    const reliable = client.getReliableQueue<string>(name)
    await reliable.setConfig({ maxSize: 1 })
    onCleanup(() => reliable.setConfig({ maxSize: null }))
    onCleanup(() => reliable.clear())
    const wrong = [{ value: 'a', delay: -1 }]
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      offerAll: () => delayed.offerAll(wrong),
      'offerAll (sharded)': () => sharded.offerAll(wrong),
      addMany: () => reliable.addMany([{ payload: 'a' }, { payload: 'b' }]),
    }
    for (const [what, call] of Object.entries(calls)) {
      const { failures } = (await rejection(call())) as AddManyError | OfferAllError
      expect(failures, what).to.have.lengthOf.at.least(1)
      const operation = what.replace(/ \(.*/, '')
      for (const { error } of failures) expect(error, what).to.include({ operation, queue: name })
    }
  })

  it('of a queue and a deque', async () => {
    const queue = client.getQueue<string>(name)
    const deque = client.getDeque<string>(name)
    await expectOperations({
      add: [() => queue.add(as(null)), name],
      addAll: [() => queue.addAll(['a', as(null)]), name],
      element: [() => queue.element(), name],
      remove: [() => queue.remove(), name],
      drainTo: [() => queue.drainTo(-1), name],
      poll: [() => queue.poll(-1), name],
      iterate: [() => queue.iterate({ pageSize: 0 }).next(), name],
      move: [() => queue.move({ to: '' }), name],
      rename: [() => queue.rename('other'), name],
      expire: [() => queue.expire(-1), name],
      readQuarantine: [() => queue.readQuarantine(0), name],
      addFirst: [() => deque.addFirst(as(null)), name],
      push: [() => deque.push(as(undefined)), name],
      removeLast: [() => deque.removeLast(), name],
      descendingIterator: [() => deque.descendingIterator({ pageSize: 0 }).next(), name],
    })
  })

  it('of a blocking queue and a blocking deque', async () => {
    const queue = client.getBlockingQueue<string>(name)
    const deque = client.getBlockingDeque<string>(name)
    await rawClient().set(name, 'not a list')
    onCleanup(() => rawClient().unlink(name))
    await expectOperations({
      put: [() => queue.put('a'), name],
      take: [() => queue.take(), name],
      poll: [() => queue.poll(10, 'weeks' as never), name],
      takeMany: [() => queue.takeMany(0), name],
      elements: [() => queue.elements().next(), name],
      'elements (for await)': [() => queue[Symbol.asyncIterator]().next(), name],
      pollFromAny: [() => queue.pollFromAny(0, undefined), name],
      subscribeOnElements: [() => queue.subscribeOnElements(as(1)), name],
      takeLast: [() => deque.takeLast(), name],
      putFirst: [() => deque.putFirst('a'), name],
    })
  })

  it('of a delayed queue', async () => {
    const delayed = client.getDelayedQueue(client.getBlockingQueue<string>(name))
    await expectOperations({
      offer: [() => delayed.offer('a', -1), name],
      'offer (with options)': [() => delayed.offer('a', 1, { durability: as('much') }), name],
      offerAt: [() => delayed.offerAt('a', as('tomorrow')), name],
      offerAll: [() => delayed.offerAll([{ value: 'a', delay: -1 }]), name],
      add: [() => delayed.add(), name],
      cancel: [() => delayed.cancel('no ticket'), name],
      reschedule: [() => delayed.reschedule('no ticket', 1), name],
      element: [() => delayed.element(), name],
      poll: [() => delayed.poll(-1), name],
      schedule: [() => delayed.schedule({ limit: 0 }), name],
      iterate: [() => delayed.iterate({ pageSize: 0 }).next(), name],
      rename: [() => delayed.rename('other'), name],
    })
    const { timeouts } = rawKeys(name)
    await rawClient().set(timeouts, 'not a schedule')
    onCleanup(() => rawClient().unlink(timeouts))
    await expectOperations({
      'offer (refused by the script)': [() => delayed.offer('a', LATER), name],
      'offerAll (refused by the script)': [() => delayed.offerAll([{ value: 'a', delay: LATER }]), name],
      stats: [() => delayed.stats(), name],
    })
    await delayed.destroy()
    await expectOperations({ peek: [() => delayed.peek(), name] })
  })

  it('of a reliable queue and its messages', async () => {
    const queue = client.getReliableQueue<string>(name)
    onCleanup(() => queue.clear())
    await queue.add('a')
    const message = await queue.poll()
    await expectOperations({
      add: [() => queue.add(as(null)), name],
      addMany: [() => queue.addMany([{ payload: as(null) }]), name],
      addTask: [() => queue.addTask(as(''), as('a')), name],
      poll: [() => queue.poll({ timeout: -1 }), name],
      pollMany: [() => queue.pollMany({ count: 0 }), name],
      acknowledge: [() => queue.acknowledge('no receipt'), name],
      'acknowledge (of a message)': [() => message?.acknowledge(as({ result: 1, other: 2 })), name],
      negativeAcknowledge: [() => queue.negativeAcknowledge([], as({ delay: -1 })), name],
      'negativeAcknowledge (of a message)': [() => message?.negativeAcknowledge({ delay: -1 }), name],
      extend: [() => queue.extend(['no receipt']), name],
      'extend (of a message)': [() => message?.extend(-1), name],
      progress: [() => queue.progress('no receipt', 'half'), name],
      'progress (of a message)': [() => message?.progress('x'.repeat(5_000)), name],
      cancel: [() => queue.cancel(''), name],
      reschedule: [() => queue.reschedule('id', -1), name],
      redrive: [() => queue.redrive(0), name],
      get: [() => queue.get(''), name],
      listAll: [() => queue.listAll(as({ pageSize: 0 })).next(), name],
      listAllRaw: [() => queue.listAllRaw({ pageSize: 0 }).next(), name],
      listCompleted: [() => queue.listCompleted({ pageSize: 0 }).next(), name],
      waitUntilFinished: [() => queue.waitUntilFinished(''), name],
      setConfig: [() => queue.setConfig({ deliveryLimit: -1 }), name],
      disableOperation: [() => queue.disableOperation(as('size')), name],
      changes: [() => queue.changes().next(), name],
      readChanges: [() => queue.readChanges(as({ count: 0 })), name],
    })
    await queue.setConfig({ maxSize: 1 })
    onCleanup(() => queue.setConfig({ maxSize: null }))
    await expectOperations({
      'add (to a full queue)': [() => queue.add('b'), name],
      'addMany (to a full queue)': [() => queue.addMany([{ payload: 'b' }]), name],
    })
  })

  it('of schedules', async () => {
    const queue = client.getReliableQueue<string>(name)
    await expectOperations({
      upsertSchedule: [() => queue.upsertSchedule('daily', 'a', { cron: 'at nine' }), name],
      removeSchedule: [() => queue.removeSchedule(''), name],
    })
    const key = reliableKeys(name).repeats
    await rawClient().set(key, 'not a hash')
    onCleanup(() => rawClient().unlink(key))
    await expectOperations({ listSchedules: [() => queue.listSchedules(), name] })
  })

  it('of groups', async () => {
    const queue = client.getReliableQueue<string>(name)
    await expectOperations({
      'add (with a group)': [() => queue.add('a', { group: '' }), name],
      pauseGroup: [() => queue.pauseGroup(''), name],
      resumeGroup: [() => queue.resumeGroup(''), name],
      pauseTask: [() => queue.pauseTask(''), name],
      resumeTask: [() => queue.resumeTask('ö'.repeat(128)), name],
      countsOfGroup: [() => queue.countsOfGroup(''), name],
      listGroups: [() => queue.listGroups({ pageSize: 0 }).next(), name],
    })
  })

  it('of batches', async () => {
    const queue = client.getReliableQueue<string>(name)
    const batch = queue.batch('import')
    await expectOperations({
      batch: [() => queue.batch(''), name],
      'batch.close': [() => batch.close({ last: { payload: 'x'.repeat(10_000) } }), name],
      'batch.waitUntilFinished': [() => batch.waitUntilFinished({ timeout: 0 }), name],
    })
    await client.shutdown()
    await expectOperations({ 'batch.counts': [() => batch.counts(), name] })
  })

  it('of sharded queues: the queue is the shard, or the sharded queue where an argument is wrong', async () => {
    const delayed = client.getShardedDelayedQueue<string>(name, { shards: 2 })
    const reliable = client.getShardedReliableQueue<string>(name, { shards: 2 })
    await expectOperations({
      offer: [() => delayed.offer('a', -1), name],
      offerAll: [() => delayed.offerAll([{ value: 'a', delay: -1 }]), name],
      'cancel (delayed)': [() => delayed.cancel('no ticket'), name],
      takeMany: [() => delayed.takeMany(0), name],
      add: [() => reliable.add(as(null)), name],
      poll: [() => reliable.poll({ timeout: -1 }), name],
      acknowledge: [() => reliable.acknowledge('no receipt'), name],
      cancel: [() => reliable.cancel(''), name],
      shardsOf: [() => reliable.shardsOf(''), name],
      setConfig: [() => reliable.setConfig({ deliveryLimit: -1 }), reliable.names[0]],
      listAll: [() => reliable.listAll(as({ pageSize: 0 })).next(), reliable.names[0]],
    })
    const key = rawKeys(delayed.names[1] as string).timeouts
    await rawClient().set(key, 'not a schedule')
    onCleanup(() => rawClient().unlink(key))
    await expectOperations({ sizes: [() => delayed.sizes(), delayed.names[1]] })
  })

  it('of a worker', async () => {
    const queue = client.getReliableQueue<string>(name)
    await expectOperations({
      createWorker: [() => client.createWorker(queue, () => {}, { concurrency: 0 }), undefined],
    })
    const key = reliableKeys(name).inFlight
    await rawClient().set(key, 'no schedule')
    onCleanup(() => rawClient().unlink(key))
    const worker = client.createWorker(queue, () => {}, { shutdownTimeout: 0 })
    onCleanup(() => worker.close())
    const error = await new Promise<RedelayedError>((resolve) => worker.on('error', resolve))
    expect(error).to.include({ code: 'ERR_WRONG_TYPE', operation: 'poll', queue: name })
  })

  it('of a client', async () => {
    const other = createClient({ url: redisUrl() })
    await other.shutdown()
    const queue = client.getQueue(name)
    await expectOperations({
      getQueue: [() => client.getQueue(''), undefined],
      getDelayedQueue: [() => client.getDelayedQueue(as({})), undefined],
      getReliableQueue: [() => client.getReliableQueue(name, as({ shards: 3 })), undefined],
      'getDelayedQueue (after the shutdown)': [() => other.getDelayedQueue(queue), undefined],
      ping: [() => other.ping(), undefined],
    })
  })

  it('is that of each method: none is left out', async () => {
    const queue = client.getBlockingQueue<string>(name)
    const reliable = client.getReliableQueue<string>(name)
    const objects: Readonly<Record<string, [object: object, atLeast: number]>> = {
      queue: [client.getQueue(name), 30],
      deque: [client.getDeque(name), 45],
      'blocking queue': [queue, 35],
      'blocking deque': [client.getBlockingDeque(name), 60],
      'delayed queue': [client.getDelayedQueue(queue), 30],
      'sharded delayed queue': [client.getShardedDelayedQueue(name, { shards: 2 }), 10],
      'reliable queue': [reliable, 45],
      'sharded reliable queue': [client.getShardedReliableQueue(name, { shards: 2 }), 40],
      batch: [reliable.batch('import'), 3],
      client: [client, 5],
    }
    await client.shutdown()
    for (const [kind, [object, atLeast]] of Object.entries(objects)) {
      const failed = await failuresOf(object)
      for (const [method, error] of failed) {
        const operation = kind === 'batch' ? `batch.${method}` : (INTERNAL[method] ?? method)
        expect(error, `${kind}.${method}`).to.include({ operation })
        if (kind !== 'client') expect(error.queue, `${kind}.${method}`).to.include(name)
      }
      expect(failed.size, kind).to.be.at.least(atLeast)
    }
  })

  it('are without an operation in an error event of work that no call waits for', async () => {
    const queue = client.getBlockingQueue<string>(name)
    const delayed = client.getDelayedQueue(queue)
    await rawClient().set(rawKeys(name).destination, 'not a list')
    onCleanup(() => rawClient().unlink(name))
    const failed = new Promise<RedelayedError>((resolve) => client.once('error', resolve))
    await delayed.offer('a', 0)
    expect(await failed).to.include({ operation: undefined, queue: name })
    await delayed.clear()
  })
})
