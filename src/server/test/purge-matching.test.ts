import { expect } from 'chai'
import type { ListMessages, ReliableQueue } from 'redelayed'
import { purgeMatching } from '../topics/purge-matching.js'
import type { Topic } from '../topics/topic.js'

/** A topic of one shard that lists each message after `pause`. */
function topicOf(ids: string[], pause: () => Promise<void> = () => Promise.resolve()) {
  const asked: ListMessages[] = []
  const removed: string[] = []
  const shard: Pick<ReliableQueue<Uint8Array>, 'listAll'> = {
    listAll: async function* (options?: ListMessages) {
      asked.push(options ?? {})
      for (const id of options?.state === 'visible' ? ids.filter((each) => !removed.includes(each)) : []) {
        await pause()
        yield { id, state: 'visible' } as never
      }
    },
  }
  const removeEach = (some: readonly string[]) => Promise.resolve(removed.push(...some) && some.length)
  return { topic: { shards: [shard], removeEach } as unknown as Topic, asked, removed }
}

describe('a purge', function () {
  this.timeout(60_000)

  it('reads no messages that consumers have, and finds those that become visible meanwhile', async () => {
    const { topic, asked, removed } = topicOf(['a', 'b'])
    expect(await purgeMatching(topic, { dueTo: 5 })).to.deep.equal({ purged: 2 })
    expect(asked).to.deep.equal(['delayed', 'visible'].map((state) => ({ pageSize: 200, state, visibleTo: 5 })))
    expect(removed).to.deep.equal(['a', 'b'])
  })

  it('ends in time also while it searches, has removed some messages, and continues after them', async () => {
    const ids = Array.from({ length: 150 }, (_, n) => `${n}`)
    let pauseMs = 100
    const pause = () => new Promise<void>((resolve) => setTimeout(resolve, pauseMs))
    const { topic, removed } = topicOf(ids, pause)
    const { purged, cursor } = await purgeMatching(topic, {})
    expect(purged).to.be.within(1, 30)
    expect(removed).to.deep.equal(ids.slice(0, purged))
    pauseMs = 0
    expect(await purgeMatching(topic, {}, cursor)).to.deep.equal({ purged: 150 - purged })
  })
})
