/** What the doctor counts as left records and batches: what polls look at, also while other clients add and remove records. */
import { expect } from 'chai'
import { reliableKeys } from '../../src/keys.js'
import { leftRecordsOf } from '../../src/doctor/left-records.js'
import { miscountedBatches } from '../../src/doctor/miscounted-batches.js'
import type { Sender } from '../../src/store/sender.js'
import { senderOf } from '../lua/support.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable } from './fixtures.js'

describe('the left records that the doctor counts', () => {
  afterEach(cleanUp)

  const made = () => {
    const name = uniqueName('left')
    forgetReliable(name)
    return reliableKeys(name)
  }

  /** Does something after each command, and returns each field of `HSCAN` twice. */
  const disturbed = (after: () => Promise<unknown>): Sender => {
    const sender = senderOf(rawClient())
    const call: Sender['call'] = async (command, args) => {
      const reply = await sender.call(command, args)
      await after()
      if (command !== 'HSCAN') return reply
      const [next, page] = reply as [Buffer, Buffer[]]
      return [next, [...page, ...page]]
    }
    return { ...sender, call }
  }

  for (const [what, by] of [
    ['removed', -1],
    ['added', 1],
  ] as const) {
    it(`no completed message that is ${what} between two commands`, async () => {
      const keys = made()
      let size = 100
      const change = async () => {
        size += by
        const one = String(by < 0 ? size : size - 1)
        const pipeline = rawClient().multi()
        if (by < 0) pipeline.hdel(keys.completed, one).zrem(keys.completedAt, one)
        else pipeline.hset(keys.completed, one, 'x').zadd(keys.completedAt, 1, one)
        await pipeline.exec()
      }
      await rawClient().hset(keys.config, 'keepCompleted', '1000')
      for (let n = 0; n < 100; n++) {
        await rawClient().hset(keys.completed, String(n), 'x')
        await rawClient().zadd(keys.completedAt, 1, String(n))
      }
      expect(await leftRecordsOf(disturbed(change), keys)).to.include({ completed: 0 })
      await rawClient().zremrangebyrank(keys.completedAt, 0, 9)
      expect(await leftRecordsOf(senderOf(rawClient()), keys)).to.include({ completed: 10 })
    })
  }

  it('each field once, and none that no poll looks at', async () => {
    const keys = made()
    const finished = 'f,0,1,0,0,0,5,7,9'
    const other = [
      'b2',
      'f,x',
      'b3',
      `${finished}${'0'.repeat(160)}`,
      `b${'n'.repeat(256)}`,
      finished,
      'b4',
      'c,0,1,0,0,0,5,7,',
    ]
    const long = [`m${'i'.repeat(577)}`, 'b', 'mi', 'l'.repeat(256)]
    await rawClient().hset(keys.batches, 'mx', 'b', 'b1', finished, ...other, ...long)
    await rawClient().hset(keys.completed, 'x', '1,1,0\n')
    const sender = disturbed(() => Promise.resolve())
    expect(await leftRecordsOf(sender, keys)).to.deep.equal({ messages: 1, batches: 1, completed: 0 })
    await rawClient().hset(keys.config, 'keepCompleted', '9')
    expect(await leftRecordsOf(sender, keys)).to.include({ completed: 1 })
  })

  it('each batch that counts more messages than it has, and none that has as many', async () => {
    const keys = made()
    const of = (state: string, pending: number) => `${state},${pending},0,0,0,0,5,,`
    const members = Array.from({ length: 3_000 }, (_, n) => [`m${n}`, `x${n % 3}`]).flat()
    await rawClient().hset(
      keys.batches,
      ...members,
      'bx0',
      of('o', 1_000),
      'bx1',
      of('c', 1_001),
      'bx2',
      of('o', 1_001),
    )
    await rawClient().hset(keys.batches, 'bnone', of('c', 2), 'bended', of('f', 2), 'bodd', 'c,2', 'n', '4')
    const sender = disturbed(() => Promise.resolve())
    expect(await miscountedBatches(sender, keys)).to.have.deep.members([
      { name: 'x1', pending: 1_001, held: 1_000 },
      { name: 'x2', pending: 1_001, held: 1_000 },
      { name: 'none', pending: 2, held: 0 },
    ])
    await rawClient().hset(keys.batches, ...Array.from({ length: 8_000 }, (_, n) => [`mm${n}`, 'y']).flat())
    expect(await miscountedBatches(sender, keys)).to.deep.equal([])
  })

  for (const [what, by] of [
    ['ends', -1],
    ['joins it', 1],
  ] as const) {
    it(`no batch while a message ${what} after each command`, async () => {
      const keys = made()
      let [pending, completed] = [1_000, 0]
      const write = async () => {
        await rawClient().hset(keys.batches, 'bx', `c,${pending},${completed},0,0,0,5,7,`)
      }
      const change = async () => {
        if (by < 0) await rawClient().hdel(keys.batches, `m${--pending}`)
        else await rawClient().hset(keys.batches, `m${pending++}`, 'x')
        if (by < 0) completed++
        await write()
      }
      await rawClient().hset(keys.batches, ...Array.from({ length: 1_000 }, (_, n) => [`m${n}`, 'x']).flat())
      await write()
      expect(await miscountedBatches(disturbed(change), keys)).to.deep.equal([])
    })
  }
})
