/** How many dead letters a queue keeps, and for how long. */
import { expect } from 'chai'
import { InvalidArgumentError, type ReliableQueue, type ReliableQueueConfig } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, redisNow, rejection, untilRedisClock } from './fixtures.js'

async function makeQueue(config: ReliableQueueConfig): Promise<ReliableQueue> {
  const name = uniqueName('dead-letters')
  forgetReliable(name)
  const queue = makeClient().getReliableQueue(name)
  await queue.setConfig(config)
  return queue
}

/** Makes a dead letter; the next one comes a millisecond later at least. */
async function reject(queue: ReliableQueue, id: string): Promise<void> {
  await queue.add(id, { id })
  const message = await queue.poll()
  await message?.negativeAcknowledge({ reject: true, error: new Error('no') })
  await untilRedisClock((await redisNow()) + 2)
}

async function deadIn(queue: ReliableQueue): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of queue.deadLetters.listAll()) ids.push(id)
  return ids
}

describe('the bounds of dead letters', () => {
  afterEach(cleanUp)

  it('another one drops the oldest of too many', async () => {
    const queue = await makeQueue({ keepDeadLetters: 3 })
    for (const id of ['1', '2', '3', '4', '5']) await reject(queue, id)
    expect(await deadIn(queue)).to.deep.equal(['3', '4', '5'])
    expect((await queue.counts()).dead).to.equal(3)
    expect(await queue.redrive()).to.equal(3)
  })

  it('any poll that finds no message drops dead letters that are too old', async () => {
    const queue = await makeQueue({ keepDeadLettersFor: '1h' })
    await reject(queue, 'old')
    expect(await deadIn(queue)).to.deep.equal(['old'])
    await queue.setConfig({ keepDeadLettersFor: 1 })
    const client = makeClient({ sweepInterval: 100 })
    client.createWorker(client.getReliableQueue(queue.name), () => undefined)
    await eventually(async () => expect(await deadIn(queue)).to.deep.equal([]))
  })

  it('reports the dropped ids to all processes that listen to the dead letters', async () => {
    const queue = await makeQueue({ keepDeadLetters: 1 })
    await queue.deadLetters.setConfig({ changes: { keep: 'recent' } })
    const removed: string[] = []
    const { deadLetters } = makeClient().getReliableQueue(queue.name)
    deadLetters.on('removed', ({ ids }) => removed.push(...ids))
    await deadLetters.allEvents()
    for (const id of ['1', '2', '3']) await reject(queue, id)
    await eventually(() => expect(removed).to.deep.equal(['1', '2']))
  })

  it('without the settings all stay, and a setting that is taken back keeps all again', async () => {
    const queue = await makeQueue({ keepDeadLetters: 1, keepDeadLettersFor: '1d' })
    expect(await queue.getConfig()).to.include({ keepDeadLetters: 1, keepDeadLettersFor: 86_400_000 })
    await reject(queue, '1')
    await queue.setConfig({ keepDeadLetters: null, keepDeadLettersFor: null })
    await reject(queue, '2')
    await reject(queue, '3')
    expect(await deadIn(queue)).to.deep.equal(['1', '2', '3'])
  })

  it('refuses an invalid bound', async () => {
    const queue = await makeQueue({ deliveryLimit: 1 })
    for (const config of [{ keepDeadLetters: 0 }, { keepDeadLetters: 1_000_001 }, { keepDeadLettersFor: 0 }]) {
      expect(await rejection(queue.setConfig(config))).to.be.instanceOf(InvalidArgumentError)
    }
  })
})
