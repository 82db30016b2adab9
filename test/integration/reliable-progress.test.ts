/** The progress that handlers report, and who sees it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import {
  codecs,
  EncodeError,
  InvalidArgumentError,
  PayloadTooLargeError,
  type MessageProgress,
  type ReliableQueue,
} from '../../src/index.js'
import { eventually } from '../support/events.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, onCleanup, redisNow, rejection, untilRedisClock } from './fixtures.js'

function makeQueue(): ReliableQueue {
  const name = uniqueName('progress')
  forgetReliable(name)
  return makeClient().getReliableQueue(name)
}

async function polled(queue: ReliableQueue, visibilityTimeout = 30_000) {
  const message = await queue.poll({ visibilityTimeout })
  if (message === null) throw new Error('there is no message')
  return message
}

async function progressOf(queue: ReliableQueue, id: string): Promise<MessageProgress | null | undefined> {
  return (await queue.get(id))?.progress
}

describe('progress', () => {
  afterEach(cleanUp)

  it('of a handler is seen by another process, and goes with the message', async () => {
    const queue = makeQueue()
    const client = makeClient()
    let finish: () => void = () => undefined
    const finished = new Promise<void>((resolve) => (finish = resolve))
    client.createWorker(client.getReliableQueue(queue.name), async (_, { message }) => {
      await message.progress({ done: 1, of: 2 })
      await finished
    })
    const before = await redisNow()
    const { id } = await queue.add('x')
    await eventually(async () => {
      const progress = await progressOf(queue, id)
      expect(progress).to.deep.include({ value: { done: 1, of: 2 }, attempt: 1 })
      expect(progress?.at).to.be.within(before, await redisNow())
    })
    finish()
    await eventually(async () => expect(await queue.get(id)).to.equal(null))
  })

  it('is null until the first one, and each replaces the last', async () => {
    const queue = makeQueue()
    await queue.add('x', { id: 'a' })
    expect(await progressOf(queue, 'a')).to.equal(null)
    const message = await polled(queue)
    for (const value of [0, 50, 'almost', { bytes: 7 }]) {
      expect(await message.progress(value)).to.equal(true)
      expect((await progressOf(queue, 'a'))?.value).to.deep.equal(value)
    }
  })

  it('is refused of a message that is another one’s, or has ended, and never brings it back', async () => {
    const queue = makeQueue()
    await queue.add('x', { id: 'a' })
    const first = await polled(queue, 1)
    await untilRedisClock((await redisNow()) + 2)
    const second = await polled(queue)
    expect(await first.progress(10)).to.equal(false)
    expect(await second.progress(20)).to.equal(true)
    await second.acknowledge()
    expect(await second.progress(30)).to.equal(false)
    expect(await queue.size()).to.equal(0)
    await queue.add('y', { id: 'a' })
    expect(await progressOf(queue, 'a')).to.equal(null)
  })

  it('takes a receipt instead of a message, also one of a shard', async () => {
    const queue = makeQueue()
    await queue.add('x', { id: 'a' })
    const { receipt } = await polled(queue)
    expect(await makeClient().getReliableQueue(queue.name).progress(receipt, 50)).to.equal(true)
    expect((await progressOf(queue, 'a'))?.value).to.equal(50)

    const sharded = makeClient().getShardedReliableQueue(uniqueName('progress-sharded'), { shards: 3 })
    for (const shard of sharded.shards) forgetReliable(shard.name)
    const { id } = await sharded.add('x')
    const message = await sharded.poll()
    expect(await sharded.progress(message?.receipt ?? '', 70)).to.equal(true)
    expect((await sharded.get(id))?.progress?.value).to.equal(70)
    expect(await sharded.progress(message!, 71)).to.equal(true)
    expect((await sharded.get(id))?.progress?.value).to.equal(71)
  })

  it('extends the visibility only where it is asked to', async () => {
    const queue = makeQueue()
    await queue.setConfig({ visibilityTimeout: 90_000 })
    await queue.add('x', { id: 'a' })
    const message = await polled(queue, 10_000)
    const { visibleUntil } = message
    await message.progress(1)
    expect([message.visibleUntil, (await queue.get('a'))?.visibleAt]).to.deep.equal([visibleUntil, visibleUntil])
    await message.progress(2, { extend: '20s' })
    expect(message.visibleUntil).to.be.within(visibleUntil + 10_000, visibleUntil + 15_000)
    await message.progress(3, { extend: true })
    expect(message.visibleUntil).to.be.within(visibleUntil + 80_000, visibleUntil + 85_000)
    expect((await queue.get('a'))?.visibleAt).to.equal(message.visibleUntil)
  })

  it('stays with a message that is delivered again, and with a dead letter', async () => {
    const queue = makeQueue()
    await queue.add('x', { id: 'a', deliveryLimit: 2 })
    const first = await polled(queue)
    await first.progress(40)
    await first.negativeAcknowledge({ error: new Error('no') })
    expect(await queue.get('a')).to.deep.include({ attempts: 1 })
    expect(await progressOf(queue, 'a')).to.include({ value: 40, attempt: 1 })
    await (await polled(queue)).negativeAcknowledge({ error: new Error('no') })
    const dead = await queue.deadLetters.get('a')
    expect(dead?.progress).to.include({ value: 40, attempt: 1 })
    expect(dead?.failures.map(({ attempt }) => attempt)).to.deep.equal([1, 2])
  })

  it('of a process that is killed stays for the next consumer', async () => {
    const queue = makeQueue()
    const { id } = await queue.add('x')
    const program = `
      import { createClient } from ${JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)}
      const client = createClient({ url: ${JSON.stringify(redisUrl())} })
      const message = await client.getReliableQueue(${JSON.stringify(queue.name)}).poll({ timeout: 10_000, visibilityTimeout: 3_000 })
      for (let n = 1; ; n++) if (await message.progress(n)) console.log(n)
    `
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onCleanup(async () => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'exit')
    const killed = await progressOf(queue, id)
    expect(killed?.value).to.be.a('number').that.is.at.least(1)
    const message = await queue.poll({ timeout: 10_000 })
    expect(message?.attempt).to.equal(2)
    expect(await progressOf(queue, id)).to.deep.equal(killed)
    expect(await message?.acknowledge()).to.equal(true)
  })

  it('is an event of all processes where the queue keeps changes, with a value of the codec', async () => {
    const queue = makeQueue()
    await queue.setConfig({ changes: { keep: 'recent' } })
    const other = makeClient().getReliableQueue(queue.name)
    const heard: unknown[] = []
    other.on('progress', (event) => heard.push(event))
    const stop = await other.allEvents()
    await queue.add('x', { id: 'a' })
    const message = await polled(queue)
    await message.progress(10)
    await message.progress({ at: 'the end' })
    await eventually(() =>
      expect(heard).to.deep.equal([
        { queue: queue.name, id: 'a', progress: 10 },
        { queue: queue.name, id: 'a', progress: { at: 'the end' } },
      ]),
    )
    await stop()
  })

  it('is an event of the client that reports it, once, also with allEvents', async () => {
    const queue = makeQueue()
    await queue.setConfig({ changes: { keep: 'recent' } })
    await queue.add('x', { id: 'a' })
    const message = await polled(queue)
    const heard: unknown[] = []
    queue.on('progress', ({ progress }) => heard.push(progress))
    await message.progress(1)
    expect(heard).to.deep.equal([1])
    await queue.allEvents()
    await message.progress(2)
    await message.progress(3)
    await eventually(() => expect(heard).to.deep.equal([1, 2, 3]))
  })

  it('that another codec has written hides no message, and is an error event for its listener', async () => {
    const queue = makeQueue()
    await queue.setConfig({ changes: { keep: 'recent' } })
    const texts = makeClient().getReliableQueue(queue.name, { codec: codecs.string() })
    await texts.add('x', { id: 'a' })
    const errors: unknown[] = []
    const client = makeClient()
    client.on('error', (error) => errors.push(error))
    const other = client.getReliableQueue(queue.name)
    other.on('progress', () => undefined)
    await other.allEvents()
    const message = await texts.poll()
    await message?.progress('Á')
    expect(await queue.get('a')).to.include({ progress: null })
    await eventually(() => expect(errors).to.have.length(1))
  })

  it('refuses an invalid progress', async () => {
    const queue = makeQueue()
    await queue.add('x')
    const message = await polled(queue)
    expect(await rejection(message.progress(undefined))).to.be.instanceOf(InvalidArgumentError)
    expect(await rejection(message.progress(() => 1))).to.be.instanceOf(EncodeError)
    expect(await rejection(message.progress('x'.repeat(4_094)))).to.be.instanceOf(PayloadTooLargeError)
    expect(await message.progress('x'.repeat(4_093))).to.equal(true)
    expect(await rejection(message.progress(1, { extend: 0 }))).to.be.instanceOf(InvalidArgumentError)
    expect(await rejection(message.progress(1, { other: 1 } as never))).to.be.instanceOf(InvalidArgumentError)
    expect(await rejection(queue.progress('no receipt', 1))).to.be.instanceOf(InvalidArgumentError)
  })
})
