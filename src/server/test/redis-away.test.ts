import { expect } from 'chai'
import { Redis } from 'ioredis'
import { redisUrl } from '../../../test/support/redis.js'
import { redisFailureOf } from '../api/redis-failure.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService } from './support/service.js'

describe('requests while Redis is away', function () {
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
    } finally {
      await redis.startEmpty()
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
