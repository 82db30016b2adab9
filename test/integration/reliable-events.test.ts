import { expect } from 'chai'
import {
  QueueFullError,
  codecs,
  type EventName,
  type SettledEvent,
  type MessagesEvent,
  type RedelayedClient,
  type ReliableQueue,
} from '../../src/index.js'
import { eventually } from '../support/events.js'
import { expectWarning } from '../support/hooks.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, redisNow, rejection, untilRedisClock } from './fixtures.js'

const NAMES = ['added', 'full', 'polled', 'acknowledged', 'failed', 'rejected', 'expired', 'removed'] as const

interface Heard extends MessagesEvent {
  readonly name: EventName
}

interface Emitter {
  on(name: (typeof NAMES)[number], listener: (event: MessagesEvent) => void): unknown
  off(name: (typeof NAMES)[number], listener: (event: MessagesEvent) => void): unknown
}

/** Records the events from now on, until `stop`. */
function listen(emitter: Emitter): { heard: Heard[]; stop: () => void } {
  const heard: Heard[] = []
  const listeners = NAMES.map((name) => [name, (event: MessagesEvent) => void heard.push({ name, ...event })] as const)
  for (const [name, listener] of listeners) emitter.on(name, listener)
  return { heard, stop: () => listeners.forEach(([name, listener]) => emitter.off(name, listener)) }
}

function make(): {
  client: RedelayedClient
  queue: ReliableQueue<string>
  name: string
  heard: Heard[]
  last: () => Heard[]
} {
  const name = uniqueName('events')
  forgetReliable(name)
  const client = makeClient()
  const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
  const { heard } = listen(queue)
  return { client, queue, name, heard, last: () => heard.splice(0) }
}

describe('events of a reliable queue', () => {
  afterEach(cleanUp)

  it('added: new messages in the queue, also in place of others', async () => {
    const { queue, name, last } = make()
    await queue.add('a', { id: 'a' })
    expect(last()).to.deep.equal([{ name: 'added', queue: name, count: 1, ids: ['a'] }])
    await queue.addMany([
      { payload: 'again', id: 'a' },
      { payload: 'b', id: 'b' },
      { payload: 'c', id: 'c' },
    ])
    expect(last()).to.deep.equal([{ name: 'added', queue: name, count: 2, ids: ['b', 'c'] }])
    await queue.add('a2', { id: 'a', existing: 'replace' })
    expect(last()).to.deep.equal([{ name: 'added', queue: name, count: 1, ids: ['a'] }])
    await queue.add('a3', { id: 'a', existing: 'postpone' })
    expect(last()).to.deep.equal([])
  })

  it('full: messages that were not added', async () => {
    const { queue, name, last } = make()
    await queue.setConfig({ maxSize: 1 })
    await rejection(
      queue.addMany([
        { payload: 'a', id: 'a' },
        { payload: 'b', id: 'b' },
        { payload: 'c', id: 'c' },
      ]),
    )
    expect(last()).to.deep.equal([
      { name: 'added', queue: name, count: 1, ids: ['a'] },
      { name: 'full', queue: name, count: 2, ids: ['b', 'c'] },
    ])
    expect(await rejection(queue.add('d', { id: 'd' }))).to.be.instanceOf(QueueFullError)
    expect(last()).to.deep.equal([{ name: 'full', queue: name, count: 1, ids: ['d'] }])
  })

  it('polled and acknowledged: one by one, many at once, and by themselves', async () => {
    const { queue, name, last } = make()
    await queue.addMany(['a', 'b', 'c', 'd'].map((id) => ({ payload: id, id })))
    last()
    const [first, ...others] = await queue.pollMany({ count: 3 })
    expect(last()).to.deep.equal([{ name: 'polled', queue: name, count: 3, ids: ['a', 'b', 'c'] }])
    await first?.acknowledge()
    await first?.acknowledge() // which is false, and no event
    await queue.acknowledge(...others)
    expect(last()).to.deep.equal([
      { name: 'acknowledged', queue: name, count: 1, ids: ['a'] },
      { name: 'acknowledged', queue: name, count: 2, ids: ['b', 'c'] },
    ])
    await queue.poll({ timeout: 5_000, acknowledge: 'auto' })
    expect(last().map((event) => [event.name, event.ids])).to.deep.equal([
      ['acknowledged', ['d']],
      ['polled', ['d']],
    ])
    await queue.poll()
    expect(last()).to.deep.equal([])
  })

  it('failed: given back, to be delivered again; a released message has not failed', async () => {
    const { queue, name, last } = make()
    await queue.addMany(['a', 'b'].map((id) => ({ payload: id, id })))
    const [first, second] = await queue.pollMany({ count: 2 })
    last()
    await first?.negativeAcknowledge({ delay: 60_000 })
    await second?.negativeAcknowledge({ countAttempt: false, delay: 60_000 })
    expect(last()).to.deep.equal([{ name: 'failed', queue: name, count: 1, ids: ['a'] }])
  })

  it('rejected: at once, after the last delivery, and without ids where a poll finds one delivered too often', async () => {
    const { queue, name, last } = make()
    await queue.addMany(['a', 'b', 'c'].map((id) => ({ payload: id, id, deliveryLimit: 1 })))
    const messages = await queue.pollMany({ count: 3, visibilityTimeout: 500 })
    last()
    await messages[0]?.negativeAcknowledge({ reject: true })
    await messages[1]?.negativeAcknowledge()
    expect(last()).to.deep.equal([
      { name: 'rejected', queue: name, count: 1, ids: ['a'] },
      { name: 'rejected', queue: name, count: 1, ids: ['b'] },
    ])
    await untilRedisClock((messages[2]?.visibleUntil ?? NaN) + 1)
    await queue.poll()
    expect(last()).to.deep.equal([{ name: 'rejected', queue: name, count: 1, ids: [] }])
    expect(await queue.deadLetters.size()).to.equal(3)
  })

  it('expired: without ids, by the poll that comes across it', async () => {
    const { queue, name, last } = make()
    await queue.add('a', { id: 'a', timeToLive: 1 })
    last()
    await untilRedisClock((await redisNow()) + 2)
    await queue.poll()
    expect(last()).to.deep.equal([{ name: 'expired', queue: name, count: 1, ids: [] }])
  })

  it('removed: existing messages, by `cancel` and `remove`', async () => {
    const { queue, name, last } = make()
    await queue.addMany(['a', 'b'].map((id) => ({ payload: id, id })))
    last()
    await queue.cancel('a')
    await queue.cancel('a')
    await queue.remove('a', 'b')
    expect(last()).to.deep.equal([
      { name: 'removed', queue: name, count: 1, ids: ['a'] },
      { name: 'removed', queue: name, count: 1, ids: ['b'] },
    ])
  })

  it('reach the client with those of all queues, a queue object with its own, and another client never', async () => {
    const { client, queue, name, heard } = make()
    const other = make()
    const [all, elsewhere] = [listen(client), listen(makeClient())]
    const same = listen(client.getReliableQueue(name))
    await queue.add('a', { id: 'a' })
    const foreign = client.getReliableQueue<string>(other.name, { codec: codecs.string() })
    await foreign.add('b', { id: 'b' })
    expect(all.heard.map(({ name, queue, ids }) => [name, queue, ids])).to.deep.equal([
      ['added', name, ['a']],
      ['added', other.name, ['b']],
    ])
    expect(heard).to.deep.equal([{ name: 'added', queue: name, count: 1, ids: ['a'] }])
    expect(same.heard).to.deep.equal(heard)
    expect([other.heard, elsewhere.heard]).to.deep.equal([[], []])
  })

  it('of dead letters are those of their queue', async () => {
    const { queue, name, last } = make()
    const dead = listen(queue.deadLetters)
    await queue.add('a', { id: 'a' })
    await (await queue.poll())?.negativeAcknowledge({ reject: true })
    last()
    await (await queue.deadLetters.poll())?.acknowledge()
    expect(dead.heard.map(({ name, queue }) => [name, queue])).to.deep.equal([
      ['polled', `{${name}}:dead`],
      ['acknowledged', `{${name}}:dead`],
    ])
    expect(last()).to.deep.equal([])
  })

  it('`off` ends one listener, `once` hears one event, and afterwards there is nothing to hear', async () => {
    const { client, queue, heard } = make()
    const second = listen(queue)
    const object = client.getReliableQueue<string>(queue.name, { codec: codecs.string() })
    const last = listen(object)
    const few: string[] = []
    const once = ({ ids }: MessagesEvent): void => void few.push(...ids)
    object.once('added', once)
    object.once('removed', once)
    object.off('removed', once)
    await queue.add('a', { id: 'a' })
    second.stop()
    await queue.add('b', { id: 'b' })
    last.stop()
    await queue.add('c', { id: 'c' })
    await queue.remove('a')
    expect([heard, second.heard, last.heard].map((events) => events.map(({ ids }) => ids[0]))).to.deep.equal([
      ['a', 'b', 'c', 'a'],
      ['a'],
      ['a', 'b'],
    ])
    expect(few).to.deep.equal(['a'])
    object.on('added', once) // anew
    await queue.add('d', { id: 'd' })
    expect(few).to.deep.equal(['a', 'd'])
  })

  it('`settled` reports the outcome of a message in a worker to its queue and to the client', async () => {
    const { client, queue, name } = make()
    const seen: unknown[] = []
    const note =
      (who: string) =>
      ({ id, task, attempt, outcome, queue }: SettledEvent): void =>
        void seen.push([who, queue, id, task, attempt, outcome])
    client.on('settled', note('client'))
    queue.on('settled', note('queue'))
    const lateness: number[] = []
    client.on('settled', ({ lateMs }) => lateness.push(lateMs))
    await queue.addTask('greet', 'Ann', { id: 'x' })
    await untilRedisClock((await redisNow()) + 20)
    const worker = client.createWorker(queue, { greet: () => undefined })
    await eventually(() => expect(worker.isIdle && worker.counts.completed).to.equal(1))
    expect(seen).to.deep.equal([
      ['client', name, 'x', 'greet', 1, 'completed'],
      ['queue', name, 'x', 'greet', 1, 'completed'],
    ])
    expect(lateness[0]).to.be.at.least(20)
  })

  it('no lateness is infinite, whatever another program wrote into the schedule', async () => {
    const { client, queue, name } = make()
    await queue.add('x', { id: 'x', delay: 60_000 })
    await rawClient().zadd(`redelayed:reliable:due-0:{${name}}`, '-inf', 'x')
    expect((await queue.counts()).oldestMs).to.be.within(1, Number.MAX_SAFE_INTEGER)
    const lateness: number[] = []
    client.on('settled', ({ lateMs }) => lateness.push(lateMs))
    const worker = client.createWorker(queue, () => undefined)
    await eventually(() => expect(worker.isIdle && worker.counts.completed).to.equal(1))
    expect(lateness[0]).to.be.within(1, Number.MAX_SAFE_INTEGER)
  })

  it('a listener that throws changes nothing', async () => {
    const warned = expectWarning(/ERR_LISTENER a listener threw \(broken\)/)
    const { queue } = make()
    queue.on('polled', () => {
      throw new Error('broken')
    })
    await queue.add('a')
    expect(await (await queue.poll())?.acknowledge()).to.equal(true)
    await warned
  })
})
