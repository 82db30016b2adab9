/** Nothing says how large elements are before they are read, so no script may read or move many of them at once. */
import { expect } from 'chai'
import { codecs, createClient, type BlockingQueue, type DelayedQueue, type RedelayedClient } from '../../src/index.js'
import { ORDERS } from '../integration/fixtures.js'
import { commandCalls, useRedis } from './support.js'

const LARGE = 'x'.repeat(200 * 1024)
const HOUR = 3_600_000

describe('large elements', function () {
  this.timeout(60_000)
  const rig = useRedis([])
  let client: RedelayedClient
  let queue: BlockingQueue<string>
  const delayed = {} as Record<(typeof ORDERS)[number], DelayedQueue<string>>

  before(async () => {
    const { port } = rig.redis.options
    client = createClient({ url: `redis://127.0.0.1:${port}` })
    queue = client.getBlockingQueue('elements', { codec: codecs.string() })
    await rig.redis.rpush('elements', ...Array.from({ length: 100 }, (_, n) => `${n}${LARGE}`))
    for (const order of ORDERS) {
      const destination = client.getBlockingQueue(`pending ${order}`, { codec: codecs.string() })
      delayed[order] = client.getDelayedQueue(destination, { order })
      for (let n = 0; n < 100; n++) await delayed[order].offer(`${n}${LARGE}`, HOUR)
    }
  })
  after(() => client.shutdown())

  /** The calls, each with what it gives; those that change nothing first. */
  const calls: Record<string, [action: () => Promise<unknown>, expected: unknown]> = {
    contains: [() => queue.contains('absent'), false],
    containsAll: [() => queue.containsAll(['absent']), false],
    drainTo: [async () => (await queue.drainTo(90)).map((value) => parseInt(value, 10)), Array.from(Array(90).keys())],
    'drainTo of all': [
      async () => (await queue.drainTo()).map((value) => parseInt(value, 10)),
      [90, 91, 92, 93, 94, 95, 96, 97, 98, 99],
    ],
  }
  for (const order of ORDERS) {
    Object.assign(calls, {
      [`contains of pending ones, order '${order}'`]: [() => delayed[order].contains('absent'), false],
      [`containsAll of pending ones, order '${order}'`]: [() => delayed[order].containsAll(['absent']), false],
      [`remove of pending ones, order '${order}'`]: [() => delayed[order].remove('absent'), false],
      [`removeAll of pending ones, order '${order}'`]: [() => delayed[order].removeAll(['absent']), false],
      [`poll of pending ones, order '${order}'`]: [async () => (await delayed[order].poll(100)).length, 100],
    })
  }
  for (const [name, [action, result]] of Object.entries(calls)) {
    it(`are read by many scripts of about a mebibyte: ${name}`, async () => {
      let got: unknown
      const { evalsha = 0, eval: evals = 0 } = await commandCalls(rig.redis, async () => (got = await action()))
      expect(got).to.deep.equal(result)
      // 20 MB of elements, or the 2 MB that are left
      expect(evalsha + evals).to.be.at.least(name === 'drainTo of all' ? 2 : 15)
    })
  }
})
