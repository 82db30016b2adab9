import { expect } from 'chai'
import { DeadLetters } from '../client/dead-letters.js'
import type { Requests } from '../client/requests.js'
import { TopicClient } from '../client/topic-client.js'

describe('the dead letters of the client', () => {
  it('are selected by no filter with an undefined condition, which JSON would leave out', async () => {
    const all = new DeadLetters(undefined as unknown as Requests) // none is sent
    const filter = { topic: 'orders', reason: undefined } as never
    for (const what of ['count', 'redrive', 'delete'] as const) {
      const error: unknown = await all[what](filter).catch((thrown: unknown) => thrown)
      expect(error, what).to.be.instanceOf(TypeError).with.property('message').that.includes('reason: expected a value')
    }
    expect(() => all.find(filter)).to.throw(TypeError, 'reason: expected a value')
    const topic = new TopicClient<unknown>(undefined as unknown as Requests, 'orders')
    for (const call of [() => topic.redrive(filter), () => topic.purge('messages', filter)]) {
      const error: unknown = await call().catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(TypeError).with.property('message').that.includes('reason: expected a value')
    }
  })
})
