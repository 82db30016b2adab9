/** RExpirable: on a queue its list expires; on a delayed queue its pending messages do, and never the destination. */
import { expect } from 'chai'
import { InvalidArgumentError, codecs } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, expectError, makeClient, rawKeys, redisNow } from './fixtures.js'

const HOUR = 3_600_000
const raw = rawClient

for (const kind of ['queue', 'delayed queue'] as const) {
  describe(`expiry of a ${kind}`, () => {
    afterEach(cleanUp)

    /** The object, its keys, and a key beside them that must not expire. */
    function setUp() {
      const name = uniqueName()
      const client = makeClient()
      const queue = client.getBlockingDeque<string>(name, { codec: codecs.string() })
      const delayed = client.getDelayedQueue(queue, { deliver: false })
      const { destination, timeouts, order } = rawKeys(name)
      const fill = async () => {
        await queue.offer('x')
        await delayed.offer('y', HOUR)
      }
      if (kind === 'queue') return { name, object: queue, keys: [destination], beside: [timeouts, order], fill }
      return { name, object: delayed, keys: [timeouts, order], beside: [destination], fill }
    }
    const ttls = (keys: string[]) => Promise.all(keys.map((key) => raw().pttl(key)))

    it('expire takes milliseconds, a unit or a date', async () => {
      const { object, keys, beside, fill } = setUp()
      expect(await object.expire(1_000)).to.equal(false)
      expect([await object.remainTimeToLive(), await object.getExpireTime()]).to.deep.equal([-2, -2])
      await fill()
      expect([await object.remainTimeToLive(), await object.getExpireTime()]).to.deep.equal([-1, -1])
      const date = new Date(Math.floor(await redisNow()) + 3 * HOUR)
      for (const [expire, expected] of [
        [() => object.expire(HOUR), HOUR],
        [() => object.expire(2, 'hours'), 2 * HOUR],
        [() => object.expire(date), 3 * HOUR],
      ] as const) {
        expect(await expire()).to.equal(true)
        for (const ttl of await ttls(keys)) expect(ttl).to.be.within(expected - 10_000, expected)
        expect(await object.remainTimeToLive()).to.be.within(expected - 10_000, expected)
      }
      expect(await object.getExpireTime()).to.be.within(date.getTime() - 2, date.getTime() + 2)
      expect(await ttls(beside)).to.deep.equal(beside.map(() => -1))
    })

    it('only expired data are gone', async () => {
      const { object, keys, beside, fill } = setUp()
      await fill()
      await object.expire(40)
      await eventually(async () => expect(await object.isExists()).to.equal(false))
      expect([await raw().exists(...keys), await raw().exists(...beside)]).to.deep.equal([0, beside.length])
    })

    it('a date that has passed deletes at once', async () => {
      const { object, keys, fill } = setUp()
      await fill()
      expect(await object.expire(new Date(1_000))).to.equal(true)
      expect(await raw().exists(...keys)).to.equal(0)
    })

    it('clearExpire ends it', async () => {
      const { object, keys, fill } = setUp()
      await fill()
      expect(await object.clearExpire()).to.equal(false)
      await object.expire(HOUR)
      expect([await object.clearExpire(), await object.clearExpire()]).to.deep.equal([true, false])
      expect(await ttls(keys)).to.deep.equal(keys.map(() => -1))
    })

    it('the conditional forms', async () => {
      const { object, fill } = setUp()
      await fill()
      expect(await object.expireIfSet(HOUR)).to.equal(false)
      expect(await object.expireIfGreater(HOUR)).to.equal(false)
      expect(await object.expireIfNotSet(2, 'hours')).to.equal(true)
      expect(await object.expireIfNotSet(HOUR)).to.equal(false)
      expect(await object.expireIfGreater(HOUR)).to.equal(false)
      expect(await object.expireIfLess(new Date((await redisNow()) + HOUR))).to.equal(true)
      expect(await object.expireIfLess(2, 'hours')).to.equal(false)
      expect(await object.expireIfGreater(3, 'hours')).to.equal(true)
      expect(await object.expireIfSet(HOUR)).to.equal(true)
      expect(await object.remainTimeToLive()).to.be.within(HOUR - 10_000, HOUR)
      await object.clearExpire()
      expect(await object.expireIfLess(HOUR)).to.equal(true)
    })

    it('refuses values that are neither durations nor dates', async () => {
      const { object, name } = setUp()
      const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name }
      for (const when of [-1, 1.5, NaN, '5' as unknown as number, new Date(NaN), new Date(-1)]) {
        await expectError([InvalidArgumentError, wanted], () => object.expire(when))
      }
      await expectError([InvalidArgumentError, wanted], () => object.expire(1, 'weeks' as 'days'))
    })
  })
}
