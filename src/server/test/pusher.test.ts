import { expect } from 'chai'
import type { QueueClock } from '../journal/queue-clock.js'
import type { Idempotency, KnownRequest, Request } from '../topics/idempotency.js'
import { Pusher } from '../topics/pusher.js'
import type { Topic } from '../topics/topic.js'

const MESSAGE = { body: 1 }
const ONCE = { key: 'k', owner: 'o', request: {}, check: () => Promise.resolve() }

/** A topic whose journal knows a message in one state, and in another after it has read the changes. */
function topicWith(state: string | undefined, drained: string | undefined): { topic: Topic; added: () => number } {
  let [now, added] = [state, 0]
  const topic = {
    name: 't',
    settings: { delay: 0 },
    journal: {
      get: () => Promise.resolve(now && { state: now }),
      drain: () => Promise.resolve((now = drained)),
    },
    add: () => {
      added++
      return Promise.resolve([{ id: 'a', outcome: 'added', dueAt: 1 }])
    },
  }
  return { topic: topic as unknown as Topic, added: () => added }
}

function pusherTo(topic: Topic): Pusher {
  const begin = (_: unknown, __: unknown, first: Pick<KnownRequest, 'id' | 'places'>): Promise<Request> =>
    Promise.resolve({ known: { print: '', ...first }, isRepeated: true, answered: () => Promise.resolve() })
  return new Pusher({
    open: () => Promise.resolve(topic),
    isThere: () => Promise.resolve(true),
    idempotency: { knownMs: 1_000, begin } as unknown as Idempotency,
    clock: { now: () => 1 } as unknown as QueueClock,
    drawId: () => 'a',
    maxMessageBytes: 1_000,
    maxFanOutBytes: 1_500,
    hasJournal: true,
  })
}

describe('a push to several topics', () => {
  it('is refused if they would get more bytes together than a batch may have', async () => {
    const { topic, added } = topicWith('open', 'open')
    const message = { body: 'x'.repeat(500) }
    await pusherTo(topic).fanOut(['a', 'b'], message, undefined)
    expect(added()).to.equal(2)
    const refused = await pusherTo(topic)
      .fanOut(['a', 'b', 'c'], message, undefined)
      .catch((error: unknown) => error)
    expect(refused).to.include({ code: 'ERR_MESSAGE_TOO_LARGE' })
    expect(refused).to.have.property('message', '3 topics get 1506 bytes together, and the limit is 1500')
    expect(added(), 'nothing half done').to.equal(2)
  })
})

describe('a push that is repeated with its key while its answer is unknown', () => {
  for (const [what, state, drained, adds] of [
    ['that Redis has', 'open', 'open', 0],
    ['that was handled a moment ago', 'accepted', 'handled', 0],
    ['that was handled a moment ago, without a row until then', undefined, 'handled', 0],
    ['that another request is about to bring to Redis', 'accepted', 'accepted', 1],
    ['that Redis refused', 'refused', 'refused', 1],
    ['that the journal does not know', undefined, undefined, 1],
  ] as const) {
    it(`adds a message ${what} ${adds === 0 ? 'not again' : 'again'}`, async () => {
      const { topic, added } = topicWith(state, drained)
      const { pushed } = await pusherTo(topic).pushOnce('t', MESSAGE, ONCE)
      expect([pushed.outcome, added()]).to.deep.equal(['added', adds])
    })
  }
})
