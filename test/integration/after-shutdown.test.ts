import { expect } from 'chai'
import {
  ShutdownError,
  codecs,
  createClient,
  type BlockingQueue,
  type DelayedQueue,
  type Queue,
} from '../../src/index.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, expectError, makePair } from './fixtures.js'

const string = { codec: codecs.string() }
const LATER = 600_000

type Calls = Record<string, () => unknown>

const queueCalls = (queue: Queue<string> | BlockingQueue<string>): Calls => ({
  offer: () => queue.offer('x'),
  add: () => queue.add('x'),
  addAll: () => queue.addAll(['x']),
  peek: () => queue.peek(),
  size: () => queue.size(),
  isEmpty: () => queue.isEmpty(),
  contains: () => queue.contains('x'),
  remove: () => queue.remove(),
  'remove(value)': () => queue.remove('x'),
  drainTo: () => queue.drainTo(),
  readAll: () => queue.readAll(),
  iterate: () => queue.iterate().next(),
  clear: () => queue.clear(),
  delete: () => queue.delete(),
  poll: () => queue.poll(),
  readQuarantine: () => queue.readQuarantine(),
  clearQuarantine: () => queue.clearQuarantine(),
})
const blockingCalls = (queue: BlockingQueue<string>): Calls => ({
  put: () => queue.put('x'),
  take: () => queue.take(),
  'poll(timeout)': () => queue.poll(1_000),
  'poll(0)': () => queue.poll(0),
  takeMany: () => queue.takeMany(2),
  elements: () => queue.elements().next(),
  iterator: () => queue[Symbol.asyncIterator]().next(),
})
const delayedCalls = (delayed: DelayedQueue<string>, ticket: () => string): Calls => ({
  offer: () => delayed.offer('x', 5),
  offerAt: () => delayed.offerAt('x', new Date()),
  offerAll: () => delayed.offerAll([{ value: 'x', delay: 5 }]),
  cancel: () => delayed.cancel(ticket()),
  reschedule: () => delayed.reschedule(ticket(), 5),
  size: () => delayed.size(),
  isEmpty: () => delayed.isEmpty(),
  peek: () => delayed.peek(),
  poll: () => delayed.poll(),
  'poll(limit)': () => delayed.poll(2),
  readAll: () => delayed.readAll(),
  iterate: () => delayed.iterate().next(),
  contains: () => delayed.contains('x'),
  remove: () => delayed.remove(),
  'remove(value)': () => delayed.remove('x'),
  clear: () => delayed.clear(),
  delete: () => delayed.delete(),
})

async function expectShutdown(run: () => unknown, queue: string): Promise<void> {
  await expectError([ShutdownError, { code: 'ERR_SHUTDOWN', queue }], run)
}

describe('after shutdown and destroy', () => {
  afterEach(cleanUp)

  describe('afterwards every call rejects with a ShutdownError', () => {
    const client = createClient({ url: redisUrl() })
    const name = uniqueName()
    const queue = client.getQueue<string>(name, string)
    const blocking = client.getBlockingQueue<string>(name, string)
    const delayed = client.getDelayedQueue(blocking)
    let ticket = ''
    before(async () => {
      ticket = await delayed.offer('x', LATER)
      await client.shutdown()
    })

    const groups: [what: string, calls: Calls][] = [
      ['Queue', queueCalls(queue)],
      ['BlockingQueue', { ...queueCalls(blocking), ...blockingCalls(blocking) }],
      ['DelayedQueue', delayedCalls(delayed, () => ticket)],
    ]
    for (const [what, calls] of groups) {
      for (const [call, run] of Object.entries(calls)) {
        it(`${what}.${call}`, () => expectShutdown(run, name))
      }
    }
    it('Client.getQueue, getBlockingQueue, getDelayedQueue', async () => {
      for (const call of [
        () => client.getQueue('x'),
        () => client.getBlockingQueue('x'),
        () => client.getDelayedQueue(queue),
      ]) {
        await expectError([ShutdownError, { code: 'ERR_SHUTDOWN' }], call)
      }
    })
    it('subscribeOnElements ends by itself', () => {
      expect(blocking.subscribeOnElements(() => {})).to.be.a('number')
    })
  })

  describe('after destroy every call of that object rejects, and of no other', () => {
    for (const call of Object.keys(delayedCalls(undefined as unknown as DelayedQueue<string>, () => ''))) {
      it(`DelayedQueue.${call}`, async () => {
        const { delayed, client, queue, name } = makePair()
        const other = client.getDelayedQueue(queue)
        const ticket = await other.offer('x', LATER)
        await delayed.destroy()
        await delayed.destroy()
        await expectShutdown(delayedCalls(delayed, () => ticket)[call]!, name)
        expect(await other.readAll()).to.deep.equal(['x'])
      })
    }
  })
})
