import { expect } from 'chai'
import { Redis } from 'ioredis'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConnectionError, createClient, RedelayedError, type RedelayedClient } from 'redelayed'
import { Pauses } from '../console/pauses.js'
import { JournalError } from '../errors.js'
import { createJournal, openJournal, type Journal } from '../journal/journal.js'
import { TopicRegistry } from '../topics/registry.js'
import { Topic } from '../topics/topic.js'
import { TOPIC_DEFAULTS } from '../topics/topic-settings.js'
import { Topics } from '../topics/topics.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService, type Answer } from './support/service.js'

/**
 * Continues a deletion when it is too old to write: by the clock of this process, more than five seconds after Redis confirmed its lock.
 */
async function tooLate<T>(goOn: () => void, ended: Promise<T>): Promise<T> {
  const now = performance.now.bind(performance)
  performance.now = () => now() + 7_500
  try {
    goOn()
    return await ended
  } finally {
    performance.now = now
  }
}

describe('a topic that is deleted', function () {
  this.timeout(120_000)
  let dir: string
  let redis: LosableRedis
  let client: RedelayedClient
  let journal: Journal
  let detached: string[]
  let plain: Redis
  const all: Topics[] = []
  /** How often each instance has looked for pauses that deletions have left. */
  let looks: number[]
  /** How often the lock of a topic was refused to a request. */
  let refusals: Map<string, number>
  const limits = {
    createTopics: true,
    maxTopics: 100,
    maxMessageBytes: 1_000,
    maxBatchBytes: 1_000,
    idempotencyPeriod: 60_000,
  }

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-ends-'))
    redis = await LosableRedis.start()
    client = createClient({ url: redis.url })
    plain = new Redis(redis.url, { protocol: 2, commandTimeout: 2_000, maxRetriesPerRequest: 3 })
    plain.on('error', () => undefined)
    journal = await createJournal({ url: `sqlite:${join(dir, 'journal.db')}` })
    detached = []
    looks = []
    refusals = new Map()
    const detach = journal.detach.bind(journal) as (queue: { name: string }) => Promise<void>
    journal.detach = (queue: { name: string }) => {
      detached.push(queue.name)
      return detach(queue)
    }
  })
  afterEach(async () => {
    for (const topics of all.splice(0)) await topics.stop()
    await journal.close()
    await client.shutdown()
    plain.disconnect()
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  async function start(own?: Journal, attachingMs = 60_000): Promise<Topics> {
    const pauses = new Pauses(plain)
    const at = looks.push(0) - 1
    const redis = {
      set: async (key: string, token: string, px: 'PX', ms: number, nx: 'NX'): Promise<unknown> => {
        const answer = await plain.set(key, token, px, ms, nx)
        const request = `${key} ${token}`
        if (answer !== 'OK') refusals.set(request, (refusals.get(request) ?? 0) + 1)
        return answer
      },
      hset: plain.hset.bind(plain),
      hdel: plain.hdel.bind(plain),
      eval: plain.eval.bind(plain),
      evalsha: (sha1: string, keys: number, ...rest: (string | number)[]): Promise<unknown> => {
        // with a name more it asks for that one
        if (rest[0] === 'redelayed:service:deletions' && rest.length === 3) looks[at] = (looks[at] ?? 0) + 1
        return plain.evalsha(sha1, keys, ...rest)
      },
    }
    const topics = new Topics(client, {
      ...{ ...limits, maxIdempotencyKeys: 100, journal: own, redis, onError: () => undefined },
      attachingMs,
      isPaused: async (topic) => (await pauses.of([topic]))[0]?.includes('push') ?? false,
    })
    all.push(topics)
    await topics.start()
    return topics
  }
  /** Waits until each instance has looked for pauses and handled them. */
  async function haveLooked(): Promise<void> {
    const before = [...looks]
    expect(before).to.not.have.length(0)
    // a look begins after the end of the one before it, so the one in between is whole
    await eventually(() => before.forEach((count, at) => expect(looks[at]).to.be.at.least(count + 2)))
  }
  /** Resolves when this many requests wait for the lock of a topic: they ask repeatedly, unlike those that only look for pauses. */
  async function wait(name: string, requests: number): Promise<void> {
    await eventually(() => {
      const again = [...refusals].filter(([request, times]) => request.includes(`{${name}} `) && times > 1)
      expect(again).to.have.length(requests)
    })
  }
  const states = async (topics: Topics, name: string): Promise<(string | undefined)[]> => {
    const { topic } = await topics.get(name)
    return Promise.all(['a', 'b'].map(async (id) => (await topic.journal?.get(id))?.state))
  }

  it('is made once for all messages that come for a new one', async () => {
    const topics = await start()
    await plain.config('RESETSTAT')
    await Promise.all(Array.from({ length: 300 }, () => topics.open('new', { create: true })))
    const [, calls = '0'] = /cmdstat_set:calls=(\d+)/.exec(await plain.info('commandstats')) ?? []
    expect(Number(calls), 'locks that were asked for').to.be.within(1, 5)
  })

  it('is in no listing from then on, though listings at the same moment share a read', async () => {
    const topics = await start()
    const names = async (): Promise<string[]> => (await topics.list()).map(({ name }) => name)
    const first = topics.list()
    expect(topics.list(), 'another read').to.equal(first)
    expect(topics.list({ fresh: true }), 'the same read').to.not.equal(first)
    await first
    await topics.put('orders', {})
    expect(await names()).to.deep.equal(['orders'])
    await topics.put('orders', { delay: 7 })
    expect((await topics.list())[0]?.record.settings.delay).to.equal(7)
    await topics.delete('orders', false)
    expect(await names()).to.deep.equal([])
    // a topic of another instance appears once the read is old
    await new TopicRegistry(client).create('other', { settings: TOPIC_DEFAULTS, createdAt: 1 })
    await eventually(async () => expect(await names()).to.deep.equal(['other']))
  })

  it('can be used, and the service can start, among foreign records of topics', async () => {
    const key = '{redelayed-server:topics}'
    for (let n = 0; n < 300; n++) {
      await plain.hset(`redelayed:reliable:messages:${key}`, `foreign${n}`, '\0{"settings":{"shards":1},"createdAt":1}')
      await plain.zadd(`redelayed:reliable:due-0:${key}`, 1, `foreign${n}`)
    }
    const attached = new Set<string>()
    const attach = journal.attach.bind(journal) as (queue: { name: string }) => Promise<never>
    journal.attach = (queue: { name: string }) => {
      attached.add(queue.name)
      return attach(queue)
    }
    const topics = await start(journal, 1)
    const own = [...attached].filter((name) => /^foreign\d+$/.test(name))
    expect(own.length, 'attached before it has started').to.be.lessThan(50)
    const [pushed] = await topics.pusher.push('foreign299', [{ id: 'a' }])
    expect(pushed).to.include({ id: 'a', outcome: 'added' })
    await eventually(
      () => expect([...attached].filter((name) => /^foreign\d+$/.test(name)).length).to.be.within(100, 109),
      60_000,
    )
    await topics.stop()
  })

  it('is no longer followed by the journal, and followed anew when it is made again', async () => {
    const topics = await start(journal)
    for (const settings of [{}, { shards: 2 }]) {
      const name = settings.shards === undefined ? 'one' : 'two'
      await topics.put(name, settings)
      await topics.pusher.push(name, [{ id: 'a', delay: 600_000 }])
      await topics.delete(name, true)
      expect(detached).to.deep.equal([name])
      await topics.put(name, settings)
      const [pushed] = await topics.pusher.push(name, [{ id: 'b' }])
      expect(pushed).to.include({ id: 'b', outcome: 'added' })
      await eventually(async () => expect(await states(topics, name)).to.deep.equal(['removed', 'open']))
      detached = []
    }
  })

  it('has messages that the journal has accepted and Redis does not have yet', async () => {
    let isDying = false
    const dying = await openJournal(
      { url: `sqlite:${join(dir, 'dying.db')}` },
      {
        afterCommit: () => {
          if (isDying) throw new Error('killed')
        },
      },
    )
    try {
      const topics = await start(dying)
      for (const settings of [{}, { shards: 2 }]) {
        const name = settings.shards === undefined ? 'one' : 'two'
        await topics.put(name, settings)
        isDying = true
        await topics.pusher.push(name, [{ id: 'a' }]).catch(() => undefined)
        isDying = false
        const { topic } = await topics.get(name)
        expect((await topic.journal?.get('a'))?.state).to.equal('accepted')
        const refused: unknown = await topics.delete(name, false).catch((error: unknown) => error)
        expect(refused).to.include({ code: 'ERR_TOPIC_NOT_EMPTY' })
        expect(refused).to.have.property('message', 'the journal has 1 messages that Redis lacks')
        await topics.delete(name, true)
        expect((await topic.journal?.get('a'))?.state, 'it is not added any more').to.equal('removed')
      }
    } finally {
      for (const topics of all.splice(0)) await topics.stop()
      await dying.close()
    }
  })

  it('takes pushes again when its deletion failed, as soon as Redis answers', async () => {
    const topics = await start()
    await topics.put('kept', {})
    const { topic } = await topics.get('kept')
    const resume = topic.resume.bind(topic)
    let tries = 0
    topic.purge = () => Promise.reject(new Error('Redis does not answer'))
    topic.resume = (what) => (++tries < 2 ? Promise.reject(new Error('nor does it now')) : resume(what))
    const failed = await topics.delete('kept', true).catch((error: unknown) => error)
    expect(failed).to.have.property('message', 'Redis does not answer')
    await eventually(async () => {
      const [pushed] = await topics.pusher.push('kept', [{ id: 'a' }])
      expect(pushed).to.include({ outcome: 'added' })
    })
    expect(tries).to.equal(2)
  })

  it('a change of it that took too long has an unknown outcome if its queue has it already', async () => {
    const topics = await start()
    await topics.put('slow', {})
    const { configure } = Topic.prototype as {
      configure: (this: Topic, ...how: Parameters<Topic['configure']>) => Promise<void>
    }
    const now = performance.now.bind(performance)
    // so long that the lock is no longer certain
    Topic.prototype.configure = async function (this: Topic, how) {
      await configure.call(this, how)
      performance.now = () => now() + 6_000
    }
    try {
      const failed = await topics.put('slow', { deliveryLimit: 3 }).catch((error: unknown) => error)
      expect(failed).to.be.instanceOf(ConnectionError).and.include({ outcome: 'unknown' })
    } finally {
      Topic.prototype.configure = configure
      performance.now = now
    }
    expect(await client.getReliableQueue('slow').getConfig()).to.include({ deliveryLimit: 3 })
  })

  const codeOf = (thrown: { code?: string }): string | undefined => thrown.code
  const push = async (topics: Topics, name: string): Promise<unknown> => {
    const [pushed] = await topics.pusher.push(name, [{ id: 'a' }])
    return pushed instanceof RedelayedError ? pushed.code : pushed?.outcome
  }
  /** Makes the deletion wait between its pause and its end. */
  async function deletionOf(topics: Topics, name: string) {
    const { topic } = await topics.get(name)
    const purge = topic.purge.bind(topic)
    let goOn: (failure?: Error) => void = () => undefined
    const isReleased = new Promise<Error | undefined>((resolve) => (goOn = resolve))
    const isReached = new Promise<void>((resolve) => {
      topic.purge = async (what) => {
        resolve()
        const failure = await isReleased
        topic.purge = purge
        if (failure !== undefined) throw failure
        return purge(what)
      }
    })
    const ended = topics.delete(name, true).then(() => 'deleted', codeOf)
    await isReached
    return { goOn, ended }
  }

  it('is deleted by only one request of all instances: the others do not find it, and do not resume its pushes', async () => {
    const [topics, other] = [await start(), await start()]
    await topics.put('once', {})
    await push(topics, 'once')
    const { goOn, ended } = await deletionOf(topics, 'once')
    let count = 0
    const others = [topics, other, other].map(async (each, at) => {
      const answer = await each.delete('once', at < 2).then(() => 'deleted', codeOf)
      count++
      return answer
    })
    await wait('once', others.length)
    expect(await push(other, 'once')).to.equal('ERR_OPERATION_DISABLED')
    expect(count, 'none is answered before it is known').to.equal(0)
    goOn()
    expect(await ended).to.equal('deleted')
    expect(await Promise.all(others)).to.deep.equal(Array(3).fill('ERR_TOPIC_NOT_FOUND'))
    expect(await topics.list()).to.deep.equal([])
    expect(await client.getReliableQueue('once').size()).to.equal(0)
  })

  it('stays paused by its operator when its deletion fails, whether it was paused before or meanwhile', async () => {
    const [topics, other] = [await start(), await start()]
    for (const [name, before, meanwhile, after] of [
      ['before', true, undefined, 'ERR_OPERATION_DISABLED'],
      ['meanwhile', undefined, true, 'ERR_OPERATION_DISABLED'],
      ['resumed', true, false, 'added'],
      ['never', undefined, undefined, 'added'],
    ] as const) {
      await topics.put(name, {})
      if (before !== undefined) await other.pausePushes(name, before)
      const { goOn, ended } = await deletionOf(topics, name)
      const operator = meanwhile === undefined ? undefined : other.pausePushes(name, meanwhile)
      if (operator !== undefined) await wait(name, 1)
      goOn(new Error('Redis does not answer'))
      await ended
      await operator
      if (after === 'added') await eventually(async () => expect(await push(other, name), name).to.equal(after))
      else expect(await push(other, name), name).to.equal(after)
    }
    await haveLooked()
    for (const name of ['before', 'meanwhile']) {
      expect(await push(other, name), name).to.equal('ERR_OPERATION_DISABLED')
    }
  })

  it('takes pushes again when the instance died that was deleting it', async () => {
    const topics = await start()
    await topics.put('left', {})
    const { topic } = await topics.get('left')
    await plain.hset('redelayed:service:deletions', 'left', 'left')
    await topic.pause('push')
    await eventually(async () => expect(await push(topics, 'left')).to.equal('added'))
    expect(await plain.exists('redelayed:service:deletions')).to.equal(0)
  })

  it('is not deleted by one whose lock has ended', async () => {
    const topics = await start()
    await topics.put('slow', {})
    await push(topics, 'slow')
    const { goOn, ended } = await deletionOf(topics, 'slow')
    await plain.set('redelayed:service:topic-lock:{slow}', 'another')
    expect(await tooLate(goOn, ended)).to.equal('ERR_CONNECTION')
    expect((await topics.list()).map(({ name }) => name)).to.deep.equal(['slow'])
    expect(await push(topics, 'slow'), 'who has the lock decides').to.equal('ERR_OPERATION_DISABLED')
    await plain.del('redelayed:service:topic-lock:{slow}')
    await eventually(async () => expect(await push(topics, 'slow')).to.equal('added'))
  })

  it('stays paused by an operator who had the lock after the deletion had lost it', async () => {
    const [topics, other] = [await start(), await start()]
    await topics.put('slow', {})
    const { goOn, ended } = await deletionOf(topics, 'slow')
    await plain.set('redelayed:service:topic-lock:{slow}', 'another')
    await plain.del('redelayed:service:topic-lock:{slow}')
    await other.pausePushes('slow', true)
    expect(await tooLate(goOn, ended)).to.equal('ERR_CONNECTION')
    expect(await push(other, 'slow')).to.equal('ERR_OPERATION_DISABLED')
    await haveLooked()
    expect(await push(other, 'slow')).to.equal('ERR_OPERATION_DISABLED')
  })

  it('has each message deleted by one request, of those at once', async () => {
    const [first, second, journalled] = [await start(), await start(), await start(journal)]
    for (const [kind, some] of [
      ['plain', [first, second]],
      ['kept', [journalled, journalled]],
    ] as const)
      for (const shards of [1, 2]) {
        const name = `${kind}-${shards}`
        await some[0].put(name, { shards })
        const ids = Array.from({ length: 12 }, (_, at) => String(at))
        await some[0].pusher.push(
          name,
          ids.map((id) => ({ id, delay: 600_000 })),
        )
        const remove = async (topics: Topics, id: string, force: boolean): Promise<string | undefined> =>
          (await topics.open(name)).remove(id, force).then(() => 'removed', codeOf)
        for (const id of ids) {
          const answers = await Promise.all([0, 1, 2, 3].map((at) => remove(some[at % 2] as Topics, id, at > 1)))
          expect(answers.sort(), `${name} ${id}`).to.deep.equal(
            ['a', 'b', 'c'].map(() => 'ERR_MESSAGE_NOT_FOUND').concat('removed'),
          )
        }
        expect(await (await some[0].open(name)).counts()).to.include({ total: 0, dead: 0 })
      }
  })

  it('is busy for a change while others keep making and deleting it', async () => {
    const topics = await start()
    await topics.put('busy', {})
    const own = Object.getOwnPropertyDescriptor(TopicRegistry.prototype, 'replace') as PropertyDescriptor
    let tries = 0
    TopicRegistry.prototype.replace = async () => ++tries < 0
    try {
      const refused = await topics.put('busy', { delay: 1 }).catch((thrown: unknown) => thrown)
      expect(refused).to.include({ code: 'ERR_TOPIC_BUSY' })
      expect(tries).to.equal(8)
    } finally {
      Object.defineProperty(TopicRegistry.prototype, 'replace', own)
    }
  })

  it('leaves no dead letters in SQL that a restore would put back', async () => {
    // the journal reads only when the service asks for it
    const still = await createJournal({ url: `sqlite:${join(dir, 'still.db')}`, background: false })
    const topics = await start(still)
    const open = async (): Promise<number> => {
      const rows = await still.database?.run((sql) =>
        sql.selectFrom('redelayed_messages').select('id').where('state', '=', 'open').execute(),
      )
      return (rows ?? []).filter(({ id }) => Buffer.from(id).toString() === 'a').length
    }
    try {
      for (const settings of [{}, { shards: 2 }]) {
        const name = settings.shards === undefined ? 'one' : 'two'
        await topics.put(name, settings)
        const { topic } = await topics.get(name)
        await topic.drain() // which has the changes kept
        await topics.pusher.push(name, [{ id: 'a' }])
        const message = await topic.queue.poll({ timeout: 20_000 })
        await message?.negativeAcknowledge({ reject: true })
        expect(await topic.queue.counts()).to.include({ total: 0, dead: 1 })
        await topic.drain()
        expect(await open(), 'the dead letter').to.equal(1)
        await topics.delete(name, true)
        expect(await open(), 'after the end').to.equal(0)
      }
    } finally {
      for (const topics of all.splice(0)) await topics.stop()
      await still.close()
    }
  })

  it('stays while SQL does not answer, and can be deleted as soon as it does', async () => {
    const topics = await start(journal)
    await topics.put('kept', {})
    await topics.pusher.push('kept', [{ id: 'a', delay: 600_000 }])
    const { topic } = await topics.get('kept')
    const drain = topic.drain.bind(topic)
    topic.drain = () => Promise.reject(new JournalError('ERR_JOURNAL_UNAVAILABLE', 'the server does not answer'))
    const failed = await topics.delete('kept', true).catch((error: unknown) => error)
    expect(failed).to.include({ code: 'ERR_JOURNAL_UNAVAILABLE' })
    expect((await topics.list()).map(({ name }) => name)).to.deep.equal(['kept'])
    topic.drain = drain
    await topics.delete('kept', true)
    expect(await topics.list()).to.deep.equal([])
    expect((await topic.journal?.get('a'))?.state).to.equal('removed')
  })

  it('gets the settings of the registry after a restore, not those that an instance remembers', async () => {
    const topics = await start(journal)
    const other = await start()
    const queue = client.getReliableQueue('kept')
    await topics.put('kept', { timeToLive: 60_000 })
    await other.put('kept', { timeToLive: 90_000 })
    expect((await queue.getConfig()).timeToLive).to.equal(90_000)
    await queue.setConfig({ timeToLive: null })
    journal.emit('restored', 'kept')
    await eventually(async () => expect((await queue.getConfig()).timeToLive).to.equal(90_000))
  })

  it('is no longer followed by the other instances either, but stays followed if Redis has only lost its data', async () => {
    const topics = await start(journal)
    const other = await start()
    await topics.put('gone', {})
    await topics.put('stays', {})
    await topics.pusher.push('stays', [{ id: 'a', delay: 600_000 }])
    await redis.kill()
    await redis.startEmpty()
    await eventually(async () => expect((await topics.list()).map(({ name }) => name)).to.include('stays'), 60_000)
    await eventually(async () => expect((await other.list()).map(({ name }) => name)).to.include('gone'), 60_000)
    expect(detached).to.deep.equal([])
    await other.delete('gone', true)
    await eventually(() => expect(detached).to.deep.equal(['gone']), 60_000)
  })
})

describe('idempotency keys', function () {
  this.timeout(120_000)
  let redis: LosableRedis
  beforeEach(async () => {
    redis = await LosableRedis.start()
  })
  afterEach(() => redis.stop())

  it('are limited in number and in time', async () => {
    const server = await startTestService({ redis: redis.url, maxIdempotencyKeys: 8, idempotencyPeriod: 15_000 })
    try {
      const topic = server.topic()
      const push = (key: number, body: unknown): Promise<Answer> =>
        server.ask('POST', `/v1/topics/${topic}/messages`, { body }, { headers: { 'idempotency-key': `k${key}` } })
      const answers: Answer[] = []
      for (let key = 0; key < 24; key++) answers.push(await push(key, 1))
      const accepted = answers.filter(({ status }) => status === 201)
      expect(accepted.length).to.be.within(1, 8)
      const refused = answers.filter(({ body }) => body.code === 'too-many-keys')
      expect([refused.length, refused[0]?.status]).to.deep.equal([24 - accepted.length, 429])
      const { body } = await server.ask('GET', `/v1/topics/${topic}`)
      expect(body.counts.total, 'of a refused push nothing was done').to.equal(accepted.length)
      const first = answers.indexOf(accepted[0]!)
      await eventually(async () => expect((await push(first, 2)).status).to.equal(201), 90_000)
    } finally {
      await server.stop()
    }
  })
})
