import { expect } from 'chai'
import { HeldTopics } from '../console/held-topics.js'
import { MessageSearch } from '../console/message-search.js'
import { readCursor } from '../topics/cursor.js'
import { Topic, type TopicQueue } from '../topics/topic.js'
import { TOPIC_DEFAULTS } from '../topics/topic-settings.js'

/** The most messages of a shard that a page can skip. */
const MOST = 1_000_000

/** A topic whose shards have two more messages than a page can skip. */
function longTopic(name: string, shards: number): Topic {
  const shardOf = (shard: number): unknown => ({
    async *listAll({ skip }: { readonly skip: number }) {
      for (let at = skip; at < MOST + 2; at++) {
        const what = { id: `${shard}-${at}`, state: 'inFlight', visibleAt: 0, priority: 0, attempts: 1 }
        yield await Promise.resolve({ ...what, expiresAt: null, failures: [], payload: Buffer.from('1'), headers: {} })
      }
    },
  })
  const queue = { shards: Array.from({ length: shards }, (_, shard) => shardOf(shard)) }
  return new Topic(name, TOPIC_DEFAULTS, queue as unknown as TopicQueue)
}

describe('a listing of more messages than it can skip', () => {
  const page = { isDead: false, limit: 1 }
  const next = async (topic: Topic, shard: number, skip: number): Promise<unknown> =>
    (await topic.list({ ...page, shard, skip }, ({ id }) => id)).next

  it('continues with the next shard, or ends', async () => {
    const topic = longTopic('long', 2)
    expect(await next(topic, 0, MOST - 1)).to.deep.equal({ shard: 0, skip: MOST })
    expect(await next(topic, 0, MOST)).to.deep.equal({ shard: 1, skip: 0 })
    expect(await next(topic, 1, MOST)).to.equal(undefined)
  })

  it('over topics continues with the next topic', async () => {
    const topics = {
      openIfThere: (name: string) => Promise.resolve(longTopic(name, 1)),
      now: () => 0,
      hasJournal: false,
    }
    const queuesOf = (names: readonly string[]) =>
      Promise.resolve(names.map((name) => ({ topic: name, queues: [name] })))
    const held = new HeldTopics({ zcard: () => Promise.resolve(1) }, { queuesOf })
    const search = new MessageSearch(topics, undefined as never, undefined as never, held)
    const last = Buffer.from(`1:a0;${MOST};`).toString('base64url')
    const { messages, cursor = '' } = await search.find(['a', 'b'], { state: 'inFlight' }, 1, last)
    expect(messages.map(({ topic, id }) => `${topic} ${id}`)).to.deep.equal([`a 0-${MOST}`])
    expect(readCursor(cursor, ['string', 'number', 'number'])).to.deep.equal(['b', 0, 0])
  })
})
