/**
 * Another program with a connection to the same Redis writes into the keys of the service: that must neither stop the service nor break its
 * answers.
 */
import { expect } from 'chai'
import { Redis } from 'ioredis'
import type { RedelayedClient } from 'redelayed'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiKeys, makeKey } from '../api/api-keys.js'
import { AuditLog } from '../api/audit-log.js'
import { problemOf } from '../api/problem.js'
import { Restores } from '../api/restores.js'
import { Instances } from '../console/instances.js'
import { Sessions } from '../console/sessions.js'
import { DeliveryLog } from '../delivery/delivery-log.js'
import { EndpointGate } from '../delivery/endpoint-gate.js'
import { DeletionPauses } from '../topics/deletion-pauses.js'
import { Exclusive } from '../topics/exclusive.js'
import { Idempotency } from '../topics/idempotency.js'
import { SNOWFLAKE_EPOCH } from '../topics/snowflake.js'
import type { Topics } from '../topics/topics.js'
import { WorkerLease } from '../topics/worker-lease.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService } from './support/service.js'

const JUNK = ['', 'null', '5', '[', '[]', '{}', '"x"', '{"id":5}', '{"id":"x","state":"running"}', '\0']
/** More bytes than any record has. */
const LARGE = JSON.stringify({ id: 'x'.repeat(100_000) })

describe('foreign data in the keys of the service', function () {
  this.timeout(60_000)
  let server: LosableRedis
  let redis: Redis
  before(async () => {
    server = await LosableRedis.start()
    redis = new Redis(server.url)
  })
  after(async () => {
    redis?.disconnect()
    await server?.stop()
  })
  afterEach(async () => {
    const keys = await redis.keys('*')
    if (keys.length > 0) await redis.unlink(...keys)
  })

  const delivery = {
    ...{ id: 'm', topic: 't', attempt: 1, at: 5, outcome: 'delivered' as const },
    ...{ status: 200, error: null, tookMs: 1, answer: '' },
  }
  const LOG = 'redelayed:service:deliveries:{ep}'

  it('is left out of a log, and invalid entries are removed', async () => {
    const log = new DeliveryLog(redis)
    for (const text of JUNK) await redis.xadd(LOG, '*', 'd', text)
    await log.add('ep', delivery)
    for (const text of [...JUNK, LARGE]) await redis.xadd(LOG, '*', 'd', text, text, 'e')
    await redis.xadd(LOG, '*', 'd', LARGE)
    await log.add('ep', { ...delivery, id: 'n' })
    const page = await log.list('ep', 1)
    expect(page.entries.map(({ id }) => id)).to.deep.equal(['n'])
    const rest = await log.list('ep', 100, page.next)
    expect([rest.entries, rest.next]).to.deep.equal([[delivery], undefined])
    expect(await redis.xlen(LOG)).to.equal(JUNK.length + 2)
  })

  it('goes from a log by bounded calls, however large it is', async () => {
    const log = new DeliveryLog(redis)
    await log.add('ep', delivery)
    for (let n = 0; n < 12; n++) await redis.xadd(LOG, '*', 'd', 'x'.repeat(1_048_576))
    let page = await log.list('ep', 100)
    expect([page.entries, typeof page.next]).to.deep.equal([[], 'string'])
    expect(await redis.xlen(LOG)).to.be.within(5, 12)
    while (page.next !== undefined) page = await log.list('ep', 100, page.next)
    expect(page.entries).to.deep.equal([delivery])
    expect(await redis.xlen(LOG)).to.equal(1)
  })

  it('of another type is removed', async () => {
    const audit = new AuditLog(redis)
    await redis.set('redelayed:service:audit', 'in the way')
    expect(await audit.list(10)).to.deep.equal({ entries: [], next: undefined })
    const entry = { at: 1, key: 'k', method: 'PUT', path: '/', status: 200, requestId: 'r' }
    await audit.add(entry)
    expect((await audit.list(10)).entries).to.deep.equal([entry])
  })

  it('does not count as a topic whose pushes a deletion has paused', async () => {
    const KEY = 'redelayed:service:deletions'
    const pauses = new DeletionPauses(redis)
    await redis.set(KEY, 'of another type')
    expect(await pauses.has('orders')).to.equal(false)
    for (const name of ['a b', '', 'x'.repeat(1_000), 'redelayed-server:topics', '1'])
      await redis.hset(KEY, name, `${name} `)
    for (let n = 0; n < 1_000; n++) await redis.hset(KEY, `x${n}`, LARGE)
    await pauses.add('orders')
    expect(await pauses.list()).to.deep.equal(['orders'])
    expect(await pauses.has('orders')).to.equal(true)
    expect(await redis.hlen(KEY), 'the large ones are gone').to.be.at.most(6)
  })

  it('is removed however many small fields there are, and the records of instances are found', async () => {
    const KEY = 'redelayed:service:deletions'
    const pauses = new DeletionPauses(redis)
    await pauses.add('orders')
    const many = redis.pipeline()
    for (let n = 0; n < 50; n++) many.hset(KEY, ...Array.from({ length: 200 }, (_, at) => [`x${n}.${at}`, 'y']).flat())
    await many.exec()
    let left = await redis.hlen(KEY)
    while (left > 1) {
      await pauses.list()
      const now = await redis.hlen(KEY)
      expect(now).to.be.lessThan(left)
      left = now
    }
    expect(await pauses.list()).to.deep.equal(['orders'])
  })

  it('is removed from a log of many empty entries by scripts that end soon', async () => {
    const many = redis.pipeline()
    for (let n = 0; n < 5_000; n++) many.xadd(LOG, '*', '', '')
    await many.exec()
    const log = new DeliveryLog(redis)
    await log.list('ep', 10)
    expect(await redis.xlen(LOG), 'about a thousand by one script').to.be.within(3_000, 4_500)
  })

  it('does not hide the restores beside it', async () => {
    const KEY = 'redelayed:service:restores'
    const topics = { hasJournal: true, now: () => 1_000, openIfThere: async () => undefined } as unknown as Topics
    const errors: unknown[] = []
    const restores = new Restores(redis, topics, (error) => errors.push(error))
    for (const [at, text] of [...JUNK, LARGE].entries()) await redis.hset(KEY, `junk ${at}`, text)
    await redis.hset(KEY, 'x'.repeat(1_000), '{}')
    const what = { names: [], topic: null, messageId: null, expired: false, dryRun: false, key: 'k' }
    const { id } = await restores.start(what)
    await restores.stop()
    expect((await restores.list()).map((one) => one.id)).to.deep.equal([id])
    expect(await restores.get(id)).to.include({ id, startedAt: 1_000 })
    expect(await restores.get('junk 1')).to.equal(null)
    expect(errors).to.deep.equal([])
    expect(await redis.hlen(KEY)).to.equal(1)
  })

  describe('in the place of topics and endpoints', () => {
    const put = async (queue: string, id: string, payload: string): Promise<void> => {
      const key = `{redelayed-server:${queue}}`
      await redis.hset(`redelayed:reliable:messages:${key}`, id, `\0${payload}`)
      await redis.zadd(`redelayed:reliable:due-0:${key}`, 1, id)
    }
    const TOPICS = [
      ...JUNK,
      '{"settings":{"shards":1000000000}}',
      '{"settings":{"shards":"x","retryDelays":5,"endpoint":{},"maxSize":-1}}',
      `{"settings":{"endpoint":"${'x'.repeat(100_000)}"}}`,
    ]
    const NAMES = ['a/b', '{x}', 'x{y', 'a:dead', 'redelayed-server:topics', 'y'.repeat(200), '\0']

    it('does not keep a service from starting, listing and delivering, and can be replaced and removed', async () => {
      const dir = mkdtempSync(join(tmpdir(), 'redelayed-foreign-'))
      for (const [at, text] of TOPICS.entries()) await put('topics', `junk${at}`, text)
      for (const name of NAMES) await put('topics', name, '{"settings":{"shards":1},"createdAt":1}')
      for (const [at, text] of [...JUNK, '{"url":5,"secrets":[5,{}],"concurrency":-1,"disabled":{}}'].entries())
        await put('endpoints', `ep_${at}`.padEnd(19, 'x'), text)
      const service = await startTestService({ redis: server.url, journal: `sqlite:${join(dir, 'journal.db')}` })
      try {
        for (const path of ['topics?limit=100', 'endpoints', 'messages', 'dead-letters', 'instances', 'audit'])
          expect((await service.ask('GET', `/v1/${path}`)).status, path).to.equal(200)
        const { topics } = (await service.ask('GET', '/v1/topics?limit=100')).body
        expect(topics.map(({ name }) => name)).to.have.members(TOPICS.map((_, at) => `junk${at}`))
        for (const { name } of topics) {
          expect((await service.ask('POST', `/v1/topics/${name}/messages`, { body: 1 })).status, name).to.equal(201)
          expect((await service.ask('PUT', `/v1/topics/${name}`, {})).status, name).to.equal(200)
          expect((await service.ask('DELETE', `/v1/topics/${name}?force`)).status, name).to.equal(204)
        }
      } finally {
        await service.stop()
        rmSync(dir, { recursive: true, force: true })
      }
    })
  })

  describe('of which another program has left only the record, not its place in the schedule', () => {
    /** The places of all messages of some of the service's queues. */
    const losePlaces = async (queues: string): Promise<void> => {
      const keys = await redis.keys(`redelayed:reliable:due-0:{redelayed-server:${queues}*`)
      expect(keys.length).to.be.above(0)
      await redis.unlink(...keys)
    }

    it('keeps no topic from being made again, and no push from its answer', async () => {
      const service = await startTestService({ redis: server.url })
      try {
        const push = () =>
          service.ask(
            'POST',
            '/v1/topics/mails/messages',
            { id: 'm', body: 1, delay: 3_600_000 },
            { headers: { 'idempotency-key': 'k' }, signal: AbortSignal.timeout(10_000) },
          )
        expect((await push()).status).to.equal(201)
        await losePlaces('idempotency-keys')
        const again = await push()
        expect([again.status, again.body.outcome]).to.deep.equal([200, 'kept'])
        await losePlaces('topics')
        await eventually(async () => expect((await service.ask('GET', '/v1/topics/mails')).status).to.equal(404))
        expect((await service.ask('PUT', '/v1/topics/mails', {})).status).to.equal(201)
        const { status, body } = await service.ask('GET', '/v1/topics/mails')
        expect([status, body.counts.total]).to.deep.equal([200, 1])
      } finally {
        await service.stop()
      }
    })

    it('ends a push under a key that is removed each time before it is read', async () => {
      let stored = 0
      const queue = { add: async () => ({ outcome: stored++ < 1_000 ? 'kept' : 'added' }), get: async () => null }
      const client = { getShardedReliableQueue: () => queue } as unknown as RedelayedClient
      const keys = new Idempotency(client, { idempotencyPeriod: 1_000, maxIdempotencyKeys: 8 })
      const thrown = await keys.begin(['k'], {}, { id: 'm', places: [] }).catch((error: unknown) => error)
      expect(thrown).to.include({ code: 'ERR_IDEMPOTENCY_KEY_REMOVED' })
      expect(problemOf(thrown)).to.include({ status: 409, code: 'idempotency-key-removed' })
    })
  })

  describe('in the state of an endpoint', () => {
    const KEY = 'redelayed:service:endpoint:{ep}'
    const STRANGE = ['inf', '-inf', 'nan', '1e308', '9007199254740991', '-1', '', 'x']
    const FIELDS = ['pausedUntil', 'openUntil', 'nextAt', 'since', 'total', 'failed', 'failingSince']

    for (const text of STRANGE)
      it(`holds back no webhook: ${JSON.stringify(text)} in each field`, async () => {
        const gate = new EndpointGate(redis, { openMs: 50 })
        await redis.hset(KEY, ...FIELDS.flatMap((field) => [field, text]))
        expect(await gate.state('ep', Date.now())).to.include({ state: 'closed', tried: 0 })
        expect([await gate.enter('ep', 10), await gate.heldMs('ep')]).to.deep.equal([0, 0])
        expect(await gate.leave('ep', 'failed')).to.deep.equal({ hasOpened: false, failingMs: 0 })
        expect(await gate.enter('ep', 10)).to.equal(0)
        expect(await gate.state('ep', Date.now())).to.include({ state: 'closed', tried: 1, failed: 1 })
      })

    it('holds back no webhook for longer than its limit says, and lets a slow limit be kept', async () => {
      const gate = new EndpointGate(redis)
      const aDay = 86_400_000
      expect(await gate.enter('ep', 1 / 200_000)).to.equal(0)
      expect(await gate.enter('ep', 1 / 200_000)).to.be.within(2 * aDay, 200_000_000)
      expect(await gate.enter('ep', 10), 'the limit is another now').to.equal(0)
      expect(await gate.enter('ep', 10)).to.be.within(0, 100)
      expect(await gate.enter('other', 1e-300)).to.equal(0)
      expect(await gate.enter('other', 1e-300)).to.be.within(9 * aDay, 10 * aDay)
      await redis.hset(KEY, 'nextAt', Date.now() + aDay / 2)
      expect(await gate.enter('ep', 10)).to.equal(0)
    })

    it('holds back no webhook: of another type', async () => {
      const gate = new EndpointGate(redis)
      for (const call of [
        () => gate.enter('ep'),
        () => gate.heldMs('ep'),
        async () => (await gate.leave('ep', 'delivered')).failingMs,
      ]) {
        await redis.del(KEY)
        await redis.set(KEY, 'in the way')
        expect(await gate.state('ep', Date.now())).to.include({ state: 'closed' })
        expect(await call()).to.equal(0)
      }
    })

    it('blocks changes of an endpoint no longer than an instance that died', async () => {
      const key = 'redelayed:service:endpoint-lock:{ep}'
      for (const lock of [
        () => redis.set(key, 'x'),
        () => redis.rpush(key, 'x'),
        () => redis.set(key, 'x', 'EX', 1_000),
      ]) {
        await redis.del(key)
        await lock()
        expect(await new Exclusive(redis, 'endpoint').run('ep', async () => 'changed')).to.equal('changed')
      }
    })
  })

  it('copied from a session does not make another session of its key', async () => {
    const made = makeKey()
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-foreign-'))
    const path = join(dir, 'keys')
    writeFileSync(path, made.line)
    try {
      const keys = new ApiKeys(path, (error) => expect.fail(String(error)))
      const id = keys.find(made.key)?.id ?? ''
      const sessions = new Sessions(redis)
      const token = await sessions.begin(id, (of) => keys.proofOf(id, of) ?? '')
      const session = await sessions.find(token)
      expect(session && keys.ofSession(session)).to.include({ id })
      const [key = ''] = await redis.keys('redelayed:service:session:*')
      const forged = 'x'.repeat(43)
      const hash = createHash('sha256').update(forged).digest('base64url')
      await redis.set(`redelayed:service:session:${hash}`, (await redis.get(key)) ?? '')
      const copy = await sessions.find(forged)
      expect(copy?.keyId).to.equal(id)
      expect(copy && keys.ofSession(copy)).to.equal(undefined)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })

  it('in the place of the sessions of a key does not keep its reader from signing in', async () => {
    await redis.set('redelayed:service:sessions:0123456789ab', 'x')
    const sessions = new Sessions(redis)
    const token = await sessions.begin('0123456789ab', () => 'proof')
    expect(await sessions.find(token)).to.include({ keyId: '0123456789ab' })
  })

  it('takes no worker number from the instances', async () => {
    const key = 'redelayed:service:workers'
    const now = Date.now()
    const strange = [
      '',
      'x',
      '1e308 x',
      '9007199254740991 x',
      '99999999999999999999 x',
      '-1 x',
      'nan x',
      `${now + 86_400_000} x`,
    ]
    const drawn: string[] = []
    for (const first of ['nan', 'inf', '-1', '1e308', '', '1'])
      for (const text of [undefined, ...strange]) {
        await redis.del(key)
        if (text === undefined) await redis.rpush(key, 'of another type')
        else await redis.hset(key, 'first', first, 0, text, 1, text)
        const lease = new WorkerLease(redis, { count: 2 })
        await lease.start()
        drawn.push(lease.draw(), lease.draw())
        await lease.stop()
      }
    for (const id of drawn) {
      const at = Number(BigInt(id) >> 22n) + SNOWFLAKE_EPOCH
      expect(at, id).to.be.within(now, now + 90_000_000)
    }
  })

  it('does not hide the instances, even in such numbers that not all of it is read', async () => {
    const KEY = 'redelayed:service:instances'
    const instances = new Instances(redis, '1.2.3', () => 1_000)
    await instances.start(
      async () => ({ url: null, connections: 1, waiting: 0 }),
      (error) => expect.fail(String(error)),
    )
    for (const [at, text] of [...JUNK, LARGE].entries()) await redis.hset(KEY, `junk ${at}`, text)
    expect((await instances.list()).map(({ version }) => version)).to.deep.equal(['1.2.3'])
    await redis.hset(KEY, ...Array.from({ length: 3_000 }, (_, at) => [`${at} `.padEnd(300), '{}']).flat())
    await instances.list()
    expect(await redis.hlen(KEY)).to.be.within(1_000, 1_100)
    await instances.list()
    expect((await instances.list()).map(({ version }) => version)).to.deep.equal(['1.2.3'])
    await redis.del(KEY)
    await redis.rpush(KEY, 'of another type')
    expect(await instances.list()).to.deep.equal([])
    await instances.stop()
  })
})
