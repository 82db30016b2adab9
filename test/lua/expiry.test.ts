/** expire.lua, persist.lua and expire-time.lua, on the two keys of a delayed queue. */
import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { expire, expireTime, persist } from '../../src/store/scripts.js'
import { ordered, useRedis, type Fixture, type Rig } from './support.js'

const HOUR = 3_600_000
const entry = ordered('a', 'A')

function suite(rig: Rig): void {
  const both = () => rig.queue({ timeouts: [[entry, 1]], order: [entry], destination: ['stays'] })
  const keysOf = ({ keys }: Fixture) => ({ first: keys.timeouts, second: keys.order })
  const ttls = async ({ keys }: Fixture): Promise<number[]> =>
    Promise.all([keys.timeouts, keys.order, keys.destination].map((key) => rig.redis.pttl(key)))
  const redisNow = async () => Number((await rig.redis.time())[0]) * 1000

  const cases: [condition: string, before: number | null, millis: number, set: boolean][] = [
    ['always', null, HOUR, true],
    ['always', 2 * HOUR, HOUR, true],
    ['unset', null, HOUR, true],
    ['unset', 2 * HOUR, HOUR, false],
    ['set', null, HOUR, false],
    ['set', 2 * HOUR, HOUR, true],
    ['greater', null, HOUR, false],
    ['greater', 2 * HOUR, HOUR, false],
    ['greater', HOUR, 2 * HOUR, true],
    ['less', null, HOUR, true],
    ['less', 2 * HOUR, HOUR, true],
    ['less', HOUR, 2 * HOUR, false],
  ]
  for (const absolute of [false, true]) {
    for (const [condition, before, millis, set] of cases) {
      const what = `${condition}, ${before === null ? 'none set' : `${before / HOUR} h set`}, ${millis / HOUR} h wanted`
      it(`${what}${absolute ? ', as a date' : ''}: ${set ? 'set on both keys' : 'nothing changed'}`, async () => {
        const queue = await both()
        if (before !== null) {
          await rig.redis.pexpire(queue.keys.timeouts, before)
          await rig.redis.pexpire(queue.keys.order, before)
        }
        const args = { millis: absolute ? (await redisNow()) + millis : millis, absolute, condition }
        expect(await run(rig.sender, expire, keysOf(queue), args)).to.equal(set)
        const [first = 0, second = 0, destination] = await ttls(queue)
        for (const ttl of [first, second]) {
          if (set) expect(ttl).to.be.within(millis - 10_000, millis)
          else if (before === null) expect(ttl).to.equal(-1)
          else expect(ttl).to.be.within(before - 10_000, before)
        }
        expect(destination).to.equal(-1)
      })
    }
  }

  it('one key that exists is enough, and decides', async () => {
    const queue = await rig.queue({ order: [entry] })
    const set = (condition: string) =>
      run(rig.sender, expire, keysOf(queue), { millis: HOUR, absolute: false, condition })
    expect(await set('set')).to.equal(false)
    expect(await set('unset')).to.equal(true)
    expect((await ttls(queue))[1]).to.be.within(HOUR - 10_000, HOUR)
  })

  it('the first key decides for both', async () => {
    const queue = await both()
    await rig.redis.pexpire(queue.keys.timeouts, 2 * HOUR)
    const args = { millis: HOUR, absolute: false, condition: 'unset' }
    expect(await run(rig.sender, expire, keysOf(queue), args)).to.equal(false)
    expect((await ttls(queue))[1]).to.equal(-1)
  })

  it('an object with one key is named twice', async () => {
    const queue = await both()
    const keys = { first: queue.keys.destination, second: queue.keys.destination }
    const set = (condition: string, millis: number) =>
      run(rig.sender, expire, keys, { millis, absolute: false, condition })
    expect(await set('unset', HOUR)).to.equal(true)
    expect(await set('greater', HOUR / 2)).to.equal(false)
    expect(await run(rig.sender, persist, keys, {})).to.equal(true)
    expect(await run(rig.sender, persist, keys, {})).to.equal(false)
    expect(await ttls(queue)).to.deep.equal([-1, -1, -1])
  })

  it('nothing there: nothing set', async () => {
    const queue = await rig.queue()
    const args = { millis: HOUR, absolute: false, condition: 'always' }
    expect(await run(rig.sender, expire, keysOf(queue), args)).to.equal(false)
    expect(await run(rig.sender, persist, keysOf(queue), {})).to.equal(false)
  })

  it('a time that has passed deletes both', async () => {
    const queue = await both()
    expect(
      await run(rig.sender, expire, keysOf(queue), { millis: 1_000, absolute: true, condition: 'always' }),
    ).to.equal(true)
    expect(await rig.redis.exists(queue.keys.timeouts, queue.keys.order)).to.equal(0)
  })

  it('persist ends the expiry of both', async () => {
    const queue = await both()
    await rig.redis.pexpire(queue.keys.order, HOUR)
    expect(await run(rig.sender, persist, keysOf(queue), {})).to.equal(true)
    expect(await ttls(queue)).to.deep.equal([-1, -1, -1])
  })

  it('expire-time returns when the key expires, that it does not, or that it is missing', async () => {
    const queue = await both()
    const when = (await redisNow()) + HOUR
    await rig.redis.pexpireat(queue.keys.timeouts, when)
    const timeOf = (key: string) => run(rig.sender, expireTime, { key }, {})
    expect(await timeOf(queue.keys.timeouts)).to.be.within(when - 2, when + 2)
    expect(await timeOf(queue.keys.order)).to.equal(-1)
    expect(await timeOf(queue.keys.quarantine)).to.equal(-2)
  })
}

describe('expiry scripts', () => suite(useRedis()))

describe('expiry scripts without PEXPIRETIME (before Redis 7)', () =>
  suite(useRedis(['--rename-command', 'PEXPIRETIME', ''])))
