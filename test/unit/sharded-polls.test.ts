import { expect } from 'chai'
import { ConnectionError } from '../../src/errors.js'
import type { QueueHandle } from '../../src/queues/queue-handle.js'
import type { ReliableShards } from '../../src/sharding/reliable-shards.js'
import type { ShardAnswers } from '../../src/sharding/shard-answers.js'
import { ShardedPolls } from '../../src/sharding/sharded-polls.js'
import { FakeClock } from '../support/fake-clock.js'

describe('the polls of a sharded reliable queue', () => {
  it('ask a shard last that failed, also when its consumer was forgotten while the call waited for the error', async () => {
    const buffers = new Set()
    const clock = new FakeClock()
    let asked = 0
    const silent = async () => {
      asked++
      while (buffers.size > 0) await clock.advance(50) // until the consumer is forgotten
      throw new ConnectionError('silent', 'unknown')
    }
    const works = async () => [{ isHeld: true, storedBytes: 1 }]
    const queues = [silent, works, works, works].map((pollFor, shard) => ({ name: `shard ${shard}`, pollFor }))
    const handle = {
      context: { buffers, commands: { noConnectionYet: () => undefined }, hub: { emit: () => {} } },
      trackOperation: (run: () => Promise<unknown>) => run(),
    }
    const polls = new ShardedPolls(handle as unknown as QueueHandle<unknown>, {
      shards: { queues, at: (shard: number) => queues[shard] } as unknown as ReliableShards<unknown>,
      answers: undefined as unknown as ShardAnswers<unknown>,
      polls: { isClosed: false },
      clock,
    })
    for (let call = 0; call < 40; call++) {
      expect(await polls.claim({ count: 1 })).to.have.length(1)
      await clock.advance(5)
    }
    expect(asked).to.be.within(1, 2)
  })
})
