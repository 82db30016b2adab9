/** What the doctor counts as left records: what polls look at, also while other clients add and remove records. */
import { expect } from 'chai'
import { reliableKeys } from '../../src/keys.js'
import { leftRecordsOf } from '../../src/doctor/left-records.js'
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
})
