import { expect } from 'chai'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codecs, createClient, type RedelayedClient } from 'redelayed'
import { redisUrl } from '../../../test/support/redis.js'
import { completeSettings, TOPIC_DEFAULTS } from '../topics/topic-settings.js'
import { eventually } from './support/eventually.js'
import { startTestService, type Answer, type TestService } from './support/service.js'

interface Grouped {
  readonly id: string
  readonly group?: string
}

const LIMITS = {
  keepDeadLetters: 5,
  keepDeadLettersFor: 86_400_000,
  keepCompleted: 7,
  keepCompletedFor: 3_600_000,
  concurrency: 3,
  rateLimit: { max: 100, perMs: 1_000 },
  groupConcurrency: 2,
  groupRateLimit: { max: 10, perMs: 60_000 },
}

describe('the limits of a topic', function () {
  this.timeout(60_000)
  let one: TestService
  let other: TestService
  let client: RedelayedClient
  let topic: string

  beforeEach(async () => {
    ;[one, other] = await Promise.all([startTestService(), startTestService()])
    client = createClient({ url: redisUrl() })
    topic = one.topic()
  })
  afterEach(async () => {
    await client.shutdown()
    await Promise.all([other.stop(), one.stop()])
  })

  const put = (settings: object): Promise<Answer> => one.ask('PUT', `/v1/topics/${topic}`, settings)
  const push = (message: object): Promise<Answer> => one.ask('POST', `/v1/topics/${topic}/messages`, message)
  const pushAll = async (messages: readonly object[]): Promise<void> => {
    const { body } = await one.ask('POST', `/v1/topics/${topic}/messages/batch`, messages)
    expect(body.failed, JSON.stringify(body)).to.equal(0)
  }
  /** What an instance hands out without waiting. */
  const receive = async (by: TestService, max = 100): Promise<readonly (Grouped & { readonly lease: string })[]> =>
    (await by.ask('POST', `/v1/topics/${topic}/receive`, { max })).body.messages
  const acknowledge = (leases: readonly string[]): Promise<Answer> =>
    other.ask('POST', '/v1/leases/acknowledge', { leases })
  const range = (count: number, of: (at: number) => object): object[] =>
    Array.from({ length: count }, (_, at) => of(at))

  it('are settings, which the queue has, and which another PUT removes', async () => {
    expect((await put(LIMITS)).body.settings).to.deep.include(LIMITS)
    const queue = client.getReliableQueue(topic)
    expect(await queue.getConfig()).to.deep.include(LIMITS)
    expect((await put({})).body.settings).to.deep.equal(TOPIC_DEFAULTS)
    expect(await queue.getConfig()).to.not.have.any.keys(Object.keys(LIMITS))
  })

  /** What a program with the library has set. */
  const OWN = { concurrency: 4, groupConcurrency: 2, keepCompleted: 9, maxSize: 1_000 }

  it('of a program stay when its queue becomes a topic by the first push, and go with a PUT', async () => {
    const queue = client.getReliableQueue(topic)
    await queue.setConfig(OWN)
    await queue.add('x', { id: 'done' })
    await (await queue.poll())?.acknowledge()
    expect((await push({ id: 'a' })).status).to.equal(201)
    expect(await queue.getConfig()).to.include(OWN)
    expect((await queue.getCompleted('done'))?.id).to.equal('done')
    await put({ concurrency: 5 })
    expect(await queue.getConfig()).to.include({ concurrency: 5 })
    expect(await queue.getConfig()).to.not.have.any.keys('groupConcurrency', 'keepCompleted', 'maxSize')
  })

  it('of a program stay when an instance with a journal starts', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-limits-'))
    await put({ deliveryLimit: 7 })
    const queue = client.getReliableQueue(topic)
    await queue.setConfig({ ...OWN, deliveryLimit: 8 })
    const late = await startTestService({ journal: `sqlite:${join(dir, 'journal.db')}` })
    try {
      expect((await late.ask('GET', `/v1/topics/${topic}`)).status).to.equal(200)
      expect(await queue.getConfig(), 'it has set those of the topic').to.include({ ...OWN, deliveryLimit: 7 })
    } finally {
      await late.stop()
      rmSync(dir, { recursive: true, force: true })
    }
  })

  it('go with the topic, so that a later one of its name has none', async () => {
    await put({ ...LIMITS, deliveryLimit: 7 })
    expect((await one.ask('DELETE', `/v1/topics/${topic}`)).status).to.equal(204)
    expect((await push({ id: 'a' })).status).to.equal(201)
    const config = await client.getReliableQueue(topic).getConfig()
    expect(config).to.include({ deliveryLimit: TOPIC_DEFAULTS.deliveryLimit })
    expect(config).to.not.have.any.keys(Object.keys(LIMITS))
  })

  it('are refused beyond those of a reliable queue', async () => {
    const wrong = [
      ...['keepDeadLetters', 'keepCompleted', 'concurrency', 'groupConcurrency'].flatMap((name) =>
        [0, 1_000_001, 1.5, '1'].map((value) => ({ [name]: value })),
      ),
      ...['keepDeadLettersFor', 'keepCompletedFor'].map((name) => ({ [name]: 0 })),
      ...['rateLimit', 'groupRateLimit'].flatMap((name) =>
        [5, {}, { max: 1 }, { max: 0, perMs: 1 }, { max: 1, perMs: 86_400_001 }, { max: 1, perMs: 1, more: 1 }].map(
          (value) => ({ [name]: value }),
        ),
      ),
    ]
    for (const settings of [...wrong, { groupConcurency: 1 }, { '': 1 }]) {
      const { code, errors } = (await put(settings)).body
      expect(code, JSON.stringify(settings)).to.equal('invalid-request')
      expect(errors, JSON.stringify(settings)).to.have.length.of.at.least(1)
    }
    for (const settings of wrong)
      expect(completeSettings(settings), JSON.stringify(settings)).to.deep.equal(TOPIC_DEFAULTS)
    expect(completeSettings(LIMITS)).to.deep.include(LIMITS)
  })

  it('let consumers of all instances have at most `concurrency` messages at once', async () => {
    await put({ concurrency: 3 })
    await pushAll(range(10, (at) => ({ id: `m${at}` })))
    const first = await receive(one, 2)
    const second = await receive(other)
    expect([first.length, second.length]).to.deep.equal([2, 1])
    expect(await receive(one)).to.deep.equal([])
    // a waiting receive gets the next message when another one has ended
    const waiting = one.ask('POST', `/v1/topics/${topic}/receive`, { max: 100, wait: 20_000 })
    await acknowledge(second.map(({ lease }) => lease))
    expect((await waiting).body.messages).to.have.length(1)
  })

  it('let them take at most `max` messages in a period', async () => {
    await put({ rateLimit: { max: 4, perMs: 3_600_000 } })
    await pushAll(range(10, (at) => ({ id: `m${at}` })))
    const first = await receive(one, 3)
    await acknowledge(first.map(({ lease }) => lease))
    expect([first.length, (await receive(other)).length, (await receive(one)).length]).to.deep.equal([3, 1, 0])
  })

  it('hold for each group, and groups have turns', async () => {
    await put({ groupConcurrency: 2 })
    await pushAll([
      ...range(50, (at) => ({ id: `a${at}`, group: 'a' })),
      { id: 'b0', group: 'b' },
      { id: 'c0', group: 'c' },
      { id: 'none' },
    ])
    const taken = [...(await receive(one, 4)), ...(await receive(other))]
    expect(taken.slice(0, 4).map(({ group }) => group)).to.have.members(['a', 'b', 'c', undefined])
    expect(taken.map(({ group }) => group)).to.have.members(['a', 'a', 'b', 'c', undefined])
  })

  it('let a group take at most `max` messages in a period', async () => {
    await put({ groupRateLimit: { max: 1, perMs: 3_600_000 } })
    await pushAll(range(6, (at) => ({ id: `m${at}`, group: at % 2 ? 'odd' : 'even' })))
    expect((await receive(one)).map(({ group }) => group)).to.have.members(['odd', 'even'])
    expect(await receive(other)).to.deep.equal([])
  })

  it('hold for webhooks of all instances together', async () => {
    // the endpoint answers late, so that webhooks are under way together
    const held = new Set<ServerResponse>()
    const receiver = createServer((_, response) => held.add(response))
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const webhookPorts = [(receiver.address() as AddressInfo).port]
    const settings = { webhookNetworks: ['127.0.0.0/8'], webhookPorts }
    const [first, second] = await Promise.all([startTestService(settings), startTestService(settings)])
    try {
      const url = `http://127.0.0.1:${webhookPorts[0]}/`
      const { id } = (await first.ask('POST', '/v1/endpoints', { url, concurrency: 50 })).body
      topic = first.topic()
      await first.ask('PUT', `/v1/topics/${topic}`, { endpoint: id, concurrency: 2 })
      await first.ask(
        'POST',
        `/v1/topics/${topic}/messages/batch`,
        range(20, (at) => ({ id: `m${at}` })),
      )
      let most = 0
      for (let delivered = 0; delivered < 20;) {
        await eventually(async () => expect(held.size).to.be.at.least(1))
        most = Math.max(most, held.size)
        for (const response of held) {
          held.delete(response)
          response.end()
          delivered++
        }
      }
      expect(most).to.be.within(1, 2)
    } finally {
      await first.ask('DELETE', `/v1/topics/${topic}?force`)
      await Promise.all([first.stop(), second.stop()])
      receiver.closeAllConnections()
      receiver.close()
    }
  })

  it('keep the newest dead letters', async () => {
    await put({ keepDeadLetters: 2 })
    for (const id of ['a', 'b', 'c']) {
      await push({ id })
      const [message] = await receive(one)
      await one.ask('POST', '/v1/leases/negative-acknowledge', { leases: [message?.lease], reject: true })
    }
    const { body } = await one.ask('GET', `/v1/topics/${topic}/dead-letters`)
    expect(body.messages.map(({ id }) => id)).to.have.members(['b', 'c'])
  })

  it('keep completed messages, for which programs with the library can wait', async () => {
    await put({ keepCompleted: 10 })
    const queue = client.getReliableQueue(topic, { codec: codecs.json() })
    const { id } = await queue.add({ order: 7 })
    const [message] = await receive(one)
    const finished = queue.waitUntilFinished(id, { timeout: 20_000 })
    await acknowledge([message?.lease ?? ''])
    expect(await finished).to.equal(undefined)
    expect(await queue.getCompleted(id)).to.include({ id, attempts: 1 })
  })

  it('a message says its group wherever it is shown', async () => {
    const again = one.topic()
    const fanned = { topics: [topic, again], group: 'tenant-7', body: 1, deliveryLimit: 1 }
    expect((await one.ask('POST', '/v1/messages', fanned)).status).to.equal(201)
    const { body } = await one.ask('GET', `/v1/topics/${again}/messages`)
    expect(body.messages).to.have.length(1)
    expect(body.messages[0]).to.include({ group: 'tenant-7', priority: 0 })
    const [message] = await receive(one)
    expect(message).to.include({ group: 'tenant-7', priority: 0 })
    await one.ask('POST', '/v1/leases/negative-acknowledge', { leases: [message?.lease] })
    const { body: dead } = await one.ask('GET', `/v1/topics/${topic}/messages/${message?.id}`)
    expect(dead).to.include({ state: 'dead', group: 'tenant-7' })
    await push({ id: 'plain' })
    expect((await one.ask('GET', `/v1/topics/${topic}/messages/plain`)).body).to.not.have.property('group')
  })

  it('a message with a group keeps its priority 0', async () => {
    await push({ id: 'a', group: 'g', delay: 60_000 })
    const path = `/v1/topics/${topic}/messages/a`
    expect((await one.ask('PATCH', path, { priority: 9 })).body).to.include({ group: 'g', priority: 0 })
  })

  it('wrong groups are refused', async () => {
    for (const group of ['', 5, 'x'.repeat(256)])
      expect((await push({ group })).body.code, JSON.stringify(group)).to.equal('invalid-request')
    for (const message of [{ group: 'ü'.repeat(128) }, { group: '\ud800' }, { group: 'g', priority: 1 }])
      expect((await push(message)).body.code, JSON.stringify(message)).to.equal('invalid-message')
    expect((await push({ group: 'ü'.repeat(127), priority: 0 })).status).to.equal(201)
  })

  it('hold for each shard', async () => {
    await put({ shards: 2, concurrency: 1 })
    await pushAll(range(40, (at) => ({ id: `m${at}` })))
    expect([...(await receive(one)), ...(await receive(other))]).to.have.length(2)
  })

  it('hold with a journal, which has the groups of messages that have ended', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-limits-'))
    const test = await startTestService({ journal: `sqlite:${join(dir, 'journal.db')}` })
    try {
      topic = test.topic()
      await test.ask('PUT', `/v1/topics/${topic}`, { groupConcurrency: 1 })
      for (const id of ['a', 'b'])
        await test.ask('POST', `/v1/topics/${topic}/messages`, { id, group: 'tenant-7', body: id })
      const [message, ...more] = await receive(test)
      expect([message?.group, more.length]).to.deep.equal(['tenant-7', 0])
      await test.ask('POST', '/v1/leases/acknowledge', { leases: [message?.lease] })
      const { body } = await test.ask('GET', `/v1/topics/${topic}/messages/${message?.id}`)
      expect(body).to.include({ group: 'tenant-7' })
      expect(['accepted', 'handled']).to.include(body.state)
      expect((await receive(test)).map(({ group }) => group)).to.deep.equal(['tenant-7'])
    } finally {
      await test.stop()
      rmSync(dir, { recursive: true, force: true })
    }
  })
})
