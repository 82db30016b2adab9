import { expect } from 'chai'
import { Redis } from 'ioredis'
import { redisUrl } from '../../../test/support/redis.js'
import { redisFailureOf } from '../api/redis-failure.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService } from './support/service.js'

describe('requests while Redis is away or full', function () {
  this.timeout(120_000)

  it('are a 503 with Retry-After also when the service asks Redis without the library', async () => {
    const redis = await LosableRedis.start()
    const server = await startTestService({ redis: redis.url })
    try {
      await redis.kill()
      const paths = ['/v1/audit', '/v1/restores', '/v1/restores/0193f5c2-8a3e-7c1d-9e4f-5a6b7c8d9e0f']
      const answers = await Promise.all(paths.map((path) => server.ask('GET', path)))
      for (const { status, body, headers } of answers)
        expect([status, body.code, headers.get('retry-after')]).to.deep.equal([503, 'redis-unavailable', '1'])
      const health = async (path: string): Promise<number> => (await server.ask('GET', path)).status
      await eventually(async () => expect(await health('/readyz')).to.equal(503))
      expect(await health('/livez'), 'a restart of the service would not help').to.equal(200)
      await redis.startEmpty()
      await eventually(async () => expect(await health('/readyz')).to.equal(200), 30_000)
    } finally {
      await server.stop()
      await redis.stop()
    }
  })

  it('are a 503 with Retry-After if they add to a Redis that is full; consumers continue', async () => {
    const redis = await LosableRedis.start()
    const server = await startTestService({ redis: redis.url })
    const operator = new Redis(redis.url)
    try {
      const path = `/v1/topics/${server.topic()}`
      expect((await server.ask('POST', `${path}/messages`, { id: 'before' })).status).to.equal(201)
      await operator.config('SET', 'maxmemory', '1')
      const { status, body, headers } = await server.ask('POST', `${path}/messages`, { id: 'refused' })
      expect([status, body.code, headers.get('retry-after')]).to.deep.equal([503, 'redis-refused', '1'])
      const [message, ...others] = (await server.ask('POST', `${path}/receive`, { max: 10 })).body.messages
      expect([message?.id, others]).to.deep.equal(['before', []])
      const { results } = (await server.ask('POST', '/v1/leases/acknowledge', { leases: [message?.lease] })).body
      expect(results).to.deep.equal(['ok'])
      await operator.config('SET', 'maxmemory', '0')
      expect((await server.ask('POST', `${path}/messages`, { id: 'refused' })).status).to.equal(201)
    } finally {
      operator.disconnect()
      await server.stop()
      await redis.stop()
    }
  })

  it('are not reported as faults of the service', async () => {
    const redis = new Redis(redisUrl())
    const thrownBy = (call: Promise<unknown>): Promise<unknown> => call.catch((thrown: unknown) => thrown)
    try {
      const refused = await thrownBy(redis.call('NO-SUCH-COMMAND'))
      expect(redisFailureOf(refused)).to.equal('refused')
      redis.disconnect()
      expect(redisFailureOf(await thrownBy(redis.ping()))).to.equal('unavailable')
    } finally {
      redis.disconnect()
    }
    const unreachable = new Redis({ host: '127.0.0.1', port: 1, maxRetriesPerRequest: 0, retryStrategy: () => 1 })
    unreachable.on('error', () => undefined)
    expect(redisFailureOf(await thrownBy(unreachable.ping()))).to.equal('unavailable')
    unreachable.disconnect()
    for (const other of [new Error('x'), new TypeError('Connection'), 'Connection is closed.', undefined])
      expect(redisFailureOf(other)).to.equal(undefined)
  })
})
