import { expect } from 'chai'
import { Redis } from 'ioredis'
import { randomUUID } from 'node:crypto'
import { redisUrl } from '../../../test/support/redis.js'
import { Snowflake, SNOWFLAKE_EPOCH } from '../topics/snowflake.js'
import type { ScriptRunner } from '../run-script.js'
import { WorkerLease, type WorkerLeaseOptions } from '../topics/worker-lease.js'
import { eventually } from './support/eventually.js'
import { startTestService } from './support/service.js'

const timeOf = (id: string): number => Number(BigInt(id) >> 22n) + SNOWFLAKE_EPOCH
const workerOf = (id: string): number => Number((BigInt(id) >> 12n) & 1023n)

describe('snowflakes', () => {
  const NOW = 1_795_000_000_000
  const worker = { number: 7, from: 0, upTo: NOW + 60_000 }

  it('have the time and the number of their worker, 19 digits, and rise', () => {
    const ids = new Snowflake()
    const drawn = Array.from({ length: 10_000 }, () => ids.draw(worker, NOW) ?? '')
    expect(new Set(drawn)).to.have.property('size', 10_000)
    expect([...drawn].sort()).to.deep.equal(drawn)
    expect(drawn[0]).to.match(/^\d{19}$/)
    expect([timeOf(drawn[0]!), workerOf(drawn[0]!)]).to.deep.equal([NOW, 7])
    // more than 4,096 of one millisecond take from the next ones
    expect(timeOf(drawn.at(-1)!)).to.equal(NOW + 2)
  })

  it('rise when the clock goes back', () => {
    const ids = new Snowflake()
    const drawn = [NOW, NOW - 86_400_000, NOW - 1, NOW + 1].map((now) => ids.draw(worker, now) ?? '')
    expect([...new Set(drawn)].sort()).to.deep.equal(drawn)
  })

  it('have no time outside the range of their worker', () => {
    const ids = new Snowflake()
    expect(timeOf(ids.draw({ ...worker, from: NOW + 500 }, NOW) ?? '')).to.equal(NOW + 500)
    expect(ids.draw({ ...worker, upTo: NOW - 1 }, NOW)).to.equal(undefined)
  })
})

describe('worker numbers', function () {
  this.timeout(60_000)
  let redis: Redis
  let key: string
  const open: WorkerLease[] = []

  beforeEach(() => {
    redis = new Redis(redisUrl())
    key = `test:workers:${randomUUID()}`
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map((lease) => lease.stop()))
    await redis.del(key)
    redis.disconnect()
  })

  /** `crashes`: it leases its number once, and then no longer reaches Redis. */
  async function start(options: WorkerLeaseOptions, { crashes = false } = {}): Promise<WorkerLease> {
    let hasCrashed = false
    const asLongAsItLives = <A extends unknown[]>(run: (...args: A) => Promise<unknown>) => {
      return async (...args: A) => {
        if (hasCrashed) throw new Error('it has crashed')
        return run(...args)
      }
    }
    const runner: ScriptRunner = {
      evalsha: asLongAsItLives((sha1, keys, ...rest) => redis.evalsha(sha1, keys, ...rest)),
      eval: asLongAsItLives((source, keys, ...rest) => redis.eval(source, keys, ...rest)),
    }
    const lease = new WorkerLease(runner, { key, ...options })
    await lease.start()
    hasCrashed = crashes
    open.push(lease)
    return lease
  }

  async function refused(starting: Promise<unknown>): Promise<unknown> {
    return starting.then(
      () => 'it was not',
      (thrown: unknown) => (thrown as { code: string }).code,
    )
  }

  it('are different for all that live, and free when they are given back', async () => {
    await redis.hset(key, 'first', 1) // so that ids start now, and numbers are free after that
    const [first, second] = [await start({ count: 2 }), await start({ count: 2 })]
    expect([workerOf(first.draw()), workerOf(second.draw())].sort()).to.deep.equal([0, 1])
    expect(await refused(start({ count: 2 }))).to.equal('ERR_NO_WORKER_NUMBER')
    const last = second.draw()
    await second.stop()
    const third = await eventually(() => start({ count: 2 }))
    const id = third.draw()
    expect([workerOf(id), timeOf(id) > timeOf(last)]).to.deep.equal([workerOf(last), true])
    expect(() => second.draw())
      .to.throw()
      .with.property('code', 'ERR_IDS_UNAVAILABLE')
  })

  it('are free again when an instance has crashed and its lease ends, and the ids of the next one are later', async () => {
    const crashed = await start({ count: 1, leaseMs: 10_000 }, { crashes: true })
    const drawn = Array.from({ length: 5_000 }, () => crashed.draw())
    expect(await refused(start({ count: 1, leaseMs: 10_000 }))).to.equal('ERR_NO_WORKER_NUMBER')
    const next = await eventually(() => start({ count: 1, leaseMs: 10_000 }))
    expect(() => crashed.draw())
      .to.throw()
      .with.property('code', 'ERR_IDS_UNAVAILABLE')
    const id = next.draw()
    expect(workerOf(id)).to.equal(0)
    expect(drawn.every((each) => each < id)).to.equal(true)
  })

  it('stay with an instance that lives longer than its lease', async () => {
    await redis.hset(key, 'first', 1)
    const lease = await start({ count: 1, leaseMs: 6_000 })
    const first = lease.draw()
    const until = performance.now() + 9_000
    let [drawn, last] = [0, first]
    while (performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 100)) // some ids over the whole time
      try {
        const id = lease.draw()
        expect(id > last).to.equal(true)
        ;[drawn, last] = [drawn + 1, id]
      } catch {
        // a machine that stood still for longer than the lease
      }
    }
    expect(drawn).to.be.greaterThan(0)
    expect(await refused(start({ count: 1 }))).to.equal('ERR_NO_WORKER_NUMBER')
  })

  it('of a Redis that has lost them give no id twice', async () => {
    await redis.hset(key, 'first', 1)
    const first = await start({ count: 1 })
    const drawn = new Set(Array.from({ length: 10_000 }, () => first.draw()))
    await redis.del(key)
    const second = await start({ count: 1 })
    for (let n = 0; n < 10_000; n++) drawn.add(first.draw()).add(second.draw())
    expect(drawn.size).to.equal(30_000)
  })
})

describe('a service with the ids snowflake', function () {
  this.timeout(60_000)

  it('draws other ids than a second one, as texts', async () => {
    const services = [await startTestService({ ids: 'snowflake' }), await startTestService({ ids: 'snowflake' })]
    try {
      const topic = services[0]!.topic()
      const batch = Array.from({ length: 1_000 }, (_, n) => ({ body: n, delay: 60_000 }))
      const answers = await Promise.all(
        services.map((service) => service.ask('POST', `/v1/topics/${topic}/messages/batch`, batch)),
      )
      const ids = answers.map(({ body }) => body.results.map(({ id = '' }) => id))
      for (const own of ids) expect(new Set(own.map(workerOf))).to.have.property('size', 1)
      expect(workerOf(ids[0]![0]!)).to.not.equal(workerOf(ids[1]![0]!))
      expect(new Set(ids.flat())).to.have.property('size', 2_000)
      for (const id of ids.flat()) expect(id).to.match(/^\d{19}$/)
      const { body } = await services[0]!.ask('GET', `/v1/topics/${topic}`)
      expect(body.counts.total).to.equal(2_000)
      const once = await services[1]!.ask(
        'POST',
        `/v1/topics/${topic}/messages`,
        {},
        { headers: { 'idempotency-key': 'k' } },
      )
      expect(once.body.id).to.match(/^\d{19}$/)
    } finally {
      for (const service of services) await service.stop()
    }
  })
})
