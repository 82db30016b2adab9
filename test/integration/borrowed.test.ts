import { expect } from 'chai'
import { Redis } from 'ioredis'
import { ConnectionError, InvalidArgumentError } from '../../src/index.js'
import { redisUrl } from '../support/redis.js'
import { cleanUp, expectError, expectRoundTrip, forgetReliable, makeClient, makePair, onCleanup } from './fixtures.js'

describe('on a client of the user', () => {
  afterEach(cleanUp)

  function listeners(redis: Redis): Record<string, number> {
    return Object.fromEntries(redis.eventNames().map((name) => [String(name), redis.listenerCount(name)]))
  }

  for (const protocol of [2, 3] as const) {
    it(`works, and leaves it open and as it was (RESP${protocol})`, async () => {
      const redis = new Redis(redisUrl(), { protocol })
      onCleanup(() => redis.disconnect())
      await redis.ping()
      const before = listeners(redis)
      const pair = makePair('redisson', { redis })
      await expectRoundTrip(pair)
      await pair.client.shutdown()
      expect(listeners(redis)).to.deep.equal(before)
      expect(await redis.ping()).to.equal('PONG')
      expect(redis.status).to.equal('ready')
    })
  }

  it('works where ioredis gives numbers as texts', async () => {
    const redis = new Redis(redisUrl(), { stringNumbers: true })
    onCleanup(() => redis.disconnect())
    const pair = makePair('redisson', { redis })
    const ticket = await pair.delayed.offer('later', 60_000)
    expect(await pair.delayed.size()).to.equal(1)
    expect(await pair.delayed.cancel(ticket)).to.equal(true)
    await expectRoundTrip(pair)
    const jobs = pair.client.getReliableQueue<string>(pair.name)
    forgetReliable(pair.name)
    await jobs.add('a job')
    const message = await jobs.poll({ timeout: 5_000 })
    expect(await message?.acknowledge()).to.equal(true)
  })

  it('connects one that was lazy, and waits for one that connects', async () => {
    const lazy = new Redis(redisUrl(), { lazyConnect: true, enableOfflineQueue: false })
    const connecting = new Redis(redisUrl())
    for (const redis of [lazy, connecting]) {
      onCleanup(() => redis.disconnect())
      const pair = makePair('compact', { redis })
      // more calls than listeners that Node takes for a leak
      const sizes = await Promise.all(Array.from({ length: 30 }, () => pair.queue.size()))
      expect(new Set(sizes)).to.deep.equal(new Set([0]))
      await expectRoundTrip(pair)
      await pair.client.shutdown()
      expect(['ready', 'error', 'end'].map((event) => redis.listenerCount(event))).to.deep.equal([0, 0, 0])
    }
  })

  it('one that has ended: a ConnectionError, and a shutdown that ends', async () => {
    const redis = new Redis(redisUrl())
    await redis.quit()
    const pair = makePair('redisson', { redis, connectTimeout: 200 })
    pair.client.on('error', () => {})
    const wanted = { code: 'ERR_CONNECTION', queue: pair.name }
    await expectError([ConnectionError, wanted], () => pair.delayed.offer('x', 5))
    await pair.client.shutdown()
  })

  it('refuses a client with a keyPrefix, and names the option to use instead', async () => {
    const wanted = { code: 'ERR_INVALID_ARGUMENT', says: ['keyPrefix', 'nameMapper', 'a string of 4 characters'] }
    const redis = new Redis({ keyPrefix: 'app:', lazyConnect: true })
    await expectError([InvalidArgumentError, wanted], () => makeClient({ redis }))
    await expectError([InvalidArgumentError, wanted], () => makeClient({ host: 'h', ioredis: { keyPrefix: 'app:' } }))
  })
})
