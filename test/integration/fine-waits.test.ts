import { expect } from 'chai'
import { FineWaits } from '../../src/timing/fine-waits.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, makeClient } from './fixtures.js'

describe('the fine waits of a client', () => {
  const begin = FineWaits.prototype.begin // eslint-disable-line @typescript-eslint/unbound-method -- called with its object
  let begun = 0

  beforeEach(() => {
    begun = 0
    FineWaits.prototype.begin = function (this: FineWaits, ...args) {
      begun++
      return begin.apply(this, args)
    }
  })
  afterEach(() => {
    FineWaits.prototype.begin = begin
  })
  afterEach(cleanUp)

  for (const fineWaits of [undefined, true, false]) {
    it(`wait for ${fineWaits === false ? 'no queue' : 'delayed and reliable queues'} with \`fineWaits: ${fineWaits}\``, async () => {
      const client = makeClient({ fineWaits })
      const orders = client.getBlockingQueue<string>(uniqueName())
      const delayed = client.getDelayedQueue(orders)
      const mails = client.getReliableQueue<string>(uniqueName())
      /** Whether one of some messages, each alone, is waited for finely: a timer that is late leaves nothing to wait for. */
      const isWaitedFor = async (deliver: (delay: number) => Promise<void>): Promise<boolean> => {
        begun = 0
        for (let n = 0; n < 20 && begun === 0; n++) await deliver(20 + n)
        return begun > 0
      }
      const isUsed = fineWaits !== false
      const deliverOrder = async (delay: number): Promise<void> => {
        const taken = orders.take()
        await delayed.offer('x', delay)
        expect(await taken).to.equal('x')
      }
      expect(await isWaitedFor(deliverOrder)).to.equal(isUsed)
      const deliverMail = async (delay: number): Promise<void> => {
        const polled = mails.poll({ timeout: 10_000 })
        await mails.add('y', { delay })
        const message = await polled
        expect(message?.payload).to.equal('y')
        await message?.acknowledge()
      }
      expect(await isWaitedFor(deliverMail)).to.equal(isUsed)
    })
  }
})
