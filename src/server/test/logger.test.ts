import { expect } from 'chai'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import { redisUrl, uniqueName } from '../../../test/support/redis.js'
import { loggerOf } from '../api/logger.js'

describe('the log of the service', () => {
  it('has the error itself, and not the command with a password or a body that ioredis attaches to it', async () => {
    const redis = new Redis(redisUrl())
    const key = uniqueName('log')
    await redis.set(key, 'no stream')
    const refused: unknown = await redis.xadd(key, '*', 'answer', 'planted-secret').catch((error: unknown) => error)
    await redis.del(key)
    await redis.quit()
    expect(JSON.stringify(refused), 'what would be logged otherwise').to.include('planted-secret')

    const lines: string[] = []
    const stream = { write: (line: string) => void lines.push(line) }
    const app = fastify({ logger: { ...loggerOf('error'), stream } })
    app.log.error(refused)
    app.log.error(new Error('around it', { cause: refused }))
    await app.close()
    expect(lines).to.have.length(2)
    expect(lines.join('')).to.include('WRONGTYPE').and.include('around it').and.not.include('planted-secret')
  })
})
