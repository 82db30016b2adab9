import { expect } from 'chai'
import { MessageSearch } from '../console/message-search.js'
import { readCursor } from '../topics/cursor.js'
import { Topic, type TopicQueue } from '../topics/topic.js'
import { TOPIC_DEFAULTS } from '../topics/topic-settings.js'

/** So many messages of a shard a page begins behind at most. */
const MOST = 1_000_000

/** A topic whose shards have a message more than a page begins at, and another one. */
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

describe('a listing of more messages than it passes over', () => {
  const page = { isDead: false, limit: 1 }
  const next = async (topic: Topic, shard: number, skip: number): Promise<unknown> =>
    (await topic.list({ ...page, shard, skip }, ({ id }) => id)).next

  it('goes on with the next shard, or ends', async () => {
    const topic = longTopic('long', 2)
    expect(await next(topic, 0, MOST - 1)).to.deep.equal({ shard: 0, skip: MOST })
    expect(await next(topic, 0, MOST)).to.deep.equal({ shard: 1, skip: 0 })
    expect(await next(topic, 1, MOST)).to.equal(undefined)
  })

  it('over topics goes on with the next topic', async () => {
    const topics = {
      openIfThere: (name: string) => Promise.resolve(longTopic(name, 1)),
      now: () => 0,
      hasJournal: false,
    }
    const search = new MessageSearch(topics, undefined as never, undefined as never)
    const last = Buffer.from(`1:a0;${MOST};`).toString('base64url')
    const { messages, cursor = '' } = await search.find(['a', 'b'], { state: 'inFlight' }, 1, last)
    expect(messages.map(({ topic, id }) => `${topic} ${id}`)).to.deep.equal([`a 0-${MOST}`])
    expect(readCursor(cursor, ['string', 'number', 'number'])).to.deep.equal(['b', 0, 0])
  })
})
