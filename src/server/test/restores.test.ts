import { expect } from 'chai'
import { Redis } from 'ioredis'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type RedelayedClient } from 'redelayed'
import { problemOf } from '../api/problem.js'
import { Restores } from '../api/restores.js'
import { DelayClient, type Restore } from '../client/index.js'
import type { Topics } from '../topics/topics.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService, type TestService } from './support/service.js'

/** Keeps no connection open behind a test. */
const unkept: typeof fetch = (input, init) =>
  fetch(input, { ...init, headers: { ...(init?.headers as Record<string, string>), connection: 'close' } })

describe('POST /v1/restores', function () {
  this.timeout(120_000)
  let redis: LosableRedis
  let dir: string
  let server: TestService
  let client: DelayClient
  let library: RedelayedClient
  let raw: Redis

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-restores-'))
    redis = await LosableRedis.start()
    await start()
    library = createClient({ url: redis.url })
    raw = new Redis(redis.url)
  })
  afterEach(async () => {
    raw.disconnect()
    await library.shutdown()
    await server.stop()
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const start = async (): Promise<void> => {
    const journal = `sqlite:${join(dir, 'journal.db')}`
    server = await startTestService({ redis: redis.url, journal, legacyRoutes: true })
    client = new DelayClient({ url: server.url, key: server.key, fetch: unkept })
  }
  let count = 0
  /** Only this test uses the server, so nothing has to be deleted at the end. */
  const newTopic = (): string => `restores-${count++}`
  /**
   * Removes messages and dead letters from Redis while no service is running, and restores the change streams: a loss that the journal does
   * not notice by itself.
   */
  const lose = async (ids: Readonly<Record<string, readonly string[]>>): Promise<void> => {
    await server.stop()
    for (const [topic, own] of Object.entries(ids)) {
      const streams = new Map<string, Buffer | null>()
      for (const key of await raw.keys(`*${topic}*`))
        if ((await raw.type(key)) === 'stream') streams.set(key, await raw.dumpBuffer(key))
      expect(streams.size).to.be.at.least(1)
      const queue = library.getReliableQueue(topic)
      for (const id of own) expect((await queue.remove(id)) + (await queue.deadLetters.remove(id)), id).to.equal(1)
      for (const [key, dump] of streams) if (dump !== null) await raw.restore(key, 0, dump, 'REPLACE')
    }
    await start()
  }
  const open = async (topic: string): Promise<number> => (await client.topic(topic).info())?.counts?.total ?? -1
  const push = async (topic: string, ids: readonly string[]): Promise<void> => {
    await client.topic(topic).pushMany(ids.map((id) => ({ id, delay: 3_600_000, body: id })))
  }
  const restored = async (what: Parameters<typeof client.restores.start>[0]): Promise<Restore> =>
    client.restores.ended((await client.restores.start(what)).id)
  const counts = ({ state, checked, restored, total }: Restore): unknown[] => [state, total, checked, restored]

  it('puts back one message, a topic, or all, and only counts in a dry run', async () => {
    const [one, other] = [newTopic(), newTopic()]
    await push(one, ['a', 'b', 'c'])
    await push(other, ['d'])
    await lose({ [one]: ['a', 'b'], [other]: ['d'] })
    expect([await open(one), await open(other)]).to.deep.equal([1, 0])

    const dry = await restored({ dryRun: true })
    expect(counts(dry)).to.deep.equal(['done', 4, 4, 3])
    expect([await open(one), await open(other)]).to.deep.equal([1, 0])

    const single = await restored({ topic: one, id: 'a' })
    expect(counts(single)).to.deep.equal(['done', null, 1, 1])
    expect(single).to.deep.include({
      topic: one,
      messageId: 'a',
      topics: 1,
      topicsDone: 1,
      msLeft: null,
      problem: null,
    })
    expect([await open(one), await open(other)]).to.deep.equal([2, 0])

    expect(counts(await restored({ topic: one }))).to.deep.equal(['done', 3, 3, 1])
    expect([await open(one), await open(other)]).to.deep.equal([3, 0])

    const all = await restored({})
    expect(counts(all)).to.deep.equal(['done', 4, 4, 1])
    expect(all).to.include({ topic: null, topics: 2, topicsDone: 2, dryRun: false, expired: false })
    expect([await open(one), await open(other)]).to.deep.equal([3, 1])
    expect((await client.restores.list()).map(({ id }) => id)[0]).to.equal(all.id)
    expect(await client.restores.list()).to.have.lengthOf(4)
  })

  it('puts back by GET /reStore also the topics that Redis has lost, with their messages', async () => {
    const [one, other] = [newTopic(), newTopic()]
    for (const topic of [one, other]) await push(topic, ['a', 'b'])
    await lose({ [one]: ['a', 'b'], [other]: ['b'], 'redelayed-server:topics': [one] })
    const { status, body } = await server.ask('GET', '/reStore?expire=false')
    expect([status, body]).to.deep.equal([200, { checked: 4, restored: 3, refused: 0 }])
    expect([await open(one), await open(other)]).to.deep.equal([2, 2])
  })

  it('has begun once it is answered, even if the list of restores cannot be shortened', async () => {
    const errors: unknown[] = []
    const topics = { hasJournal: true, now: () => 1, openIfThere: async () => undefined } as unknown as Topics
    const [hset, hdel] = [async () => 1, async () => 0]
    const evalsha = (): Promise<string[]> => Promise.reject(new Error('Connection is closed.'))
    const restores = new Restores({ hset, hdel, evalsha, eval: evalsha }, topics, (error) => errors.push(error))
    const what = { names: ['a'], topic: null, messageId: null, expired: false, dryRun: false, key: 'k' }
    expect(await restores.start(what)).to.include({ state: 'running' })
    await restores.stop()
    expect(errors.map(String)).to.include('Error: Connection is closed.')
  })

  it('refuses a fifth restore at once, and begins it when one has ended', async () => {
    const waiting: (() => void)[] = []
    const topics = {
      ...{ hasJournal: true, now: () => 1 },
      openIfThere: () => new Promise<void>((resolve) => waiting.push(resolve)),
    } as unknown as Topics
    const [hset, hdel, evalsha] = [async () => 1, async () => 0, async () => []]
    const restores = new Restores({ hset, hdel, evalsha, eval: evalsha }, topics, () => {})
    const start = () =>
      restores.start({ names: ['a'], topic: null, messageId: null, expired: false, dryRun: false, key: 'k' })
    for (let at = 0; at < 4; at++) expect(await start()).to.include({ state: 'running' })
    const refused: unknown = await start().catch((thrown: unknown) => thrown)
    expect(problemOf(refused)).to.include({ status: 429, code: 'too-many-restores' })
    for (const go of waiting.splice(0, 2)) go()
    await eventually(async () => expect(await start()).to.include({ state: 'running' }))
    for (const go of waiting) go()
    await restores.stop()
  })

  it('puts back expired messages on request, and dead letters', async () => {
    const topic = newTopic()
    let messages = client.topic(topic)
    await messages.push({ id: 'old', timeToLive: 1, body: 1 })
    await messages.push({ id: 'dead', priority: 9, body: 1 })
    const [got] = await messages.receive({ wait: 20_000 })
    expect(got?.id).to.equal('dead')
    await client.negativeAcknowledge([got!], { reject: true })
    await eventually(async () => {
      await messages.receive({}) // removes expired messages
      expect((await messages.get('old'))?.state).to.equal('expired')
    })
    await eventually(async () => {
      const { flow } = (await server.ask('GET', `/v1/topics/${topic}/messages/dead`)).body
      expect(flow.map(({ change }) => change)).to.include('dead')
    })
    await lose({ [topic]: ['dead'] })
    messages = client.topic(topic)
    expect(counts(await restored({ topic }))).to.deep.equal(['done', 1, 1, 1])
    expect((await messages.get('dead'))?.state).to.equal('dead')
    expect(counts(await restored({ topic, expired: true, dryRun: true }))).to.deep.equal(['done', 2, 2, 1])
    expect(counts(await restored({ topic, expired: true }))).to.deep.equal(['done', 2, 2, 1])
    expect((await messages.get('old'))?.state).to.equal('visible')
  })

  it('is shown by other instances, is in the audit log, and needs a key with the rights', async () => {
    const [topic, foreign] = [newTopic(), newTopic()]
    await push(topic, ['a'])
    await push(foreign, ['b'])
    const reader = server.addKey(['read'])
    const owner = server.addKey(['admin', 'read'], [topic])
    const all = await restored({})
    const second = await startTestService({ redis: redis.url, journal: 'off' })
    try {
      const seen = await second.ask('GET', `/v1/restores/${all.id}`, undefined)
      expect([seen.status, seen.body]).to.deep.equal([200, all])
      const none = await second.ask('POST', '/v1/restores', {})
      expect([none.status, none.body.code]).to.deep.equal([409, 'no-journal'])
    } finally {
      await second.stop()
    }
    const asked = async (method: string, path: string, key: string, body?: object): Promise<unknown[]> => {
      const answer = await server.ask(method, path, body, { key })
      return [answer.status, answer.body.code]
    }
    expect(await asked('POST', '/v1/restores', reader, {})).to.deep.equal([403, 'forbidden'])
    expect(await asked('GET', `/v1/restores/${all.id}`, reader)).to.deep.equal([200, undefined])
    expect(await asked('GET', `/v1/restores/${all.id}`, owner)).to.deep.equal([404, 'restore-not-found'])
    expect(await asked('POST', '/v1/restores', owner, { topic: foreign })).to.deep.equal([403, 'forbidden'])
    expect(await asked('POST', '/v1/restores', server.key, { topic: 'there-is-none' })).to.deep.equal([
      404,
      'topic-not-found',
    ])
    expect(await asked('POST', '/v1/restores', server.key, { topics: [] })).to.deep.equal([400, 'invalid-request'])
    const own = await server.ask('POST', '/v1/restores', {}, { key: owner })
    expect([own.status, own.headers.get('location')]).to.deep.equal([202, `/v1/restores/${own.body.id}`])
    const ended = await client.restores.ended(own.body.id)
    expect([ended.topics, ended.checked]).to.deep.equal([1, 1])
    const audit = await server.ask('GET', '/v1/audit')
    expect(JSON.stringify(audit.body)).to.include('/v1/restores')
  })
})
