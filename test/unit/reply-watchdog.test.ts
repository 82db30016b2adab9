import { EventEmitter } from 'node:events'
import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { keepPinging } from '../../src/redis/replies/keep-pinging.js'
import type { ReconnectingConnection } from '../../src/redis/connections/reconnecting-connection.js'
import { dropWhenOverdue } from '../../src/redis/replies/reply-watchdog.js'
import { nextTurn, pause } from '../../src/timing/pause.js'

describe('dropWhenOverdue', () => {
  /** A connection on which so many bytes come every few milliseconds, until it is dropped or the test ends. */
  function connection(bytes: number) {
    const stream = { bytesRead: 0 }
    const timer = setInterval(() => (stream.bytesRead += bytes), 5)
    const redis = Object.assign(new EventEmitter(), { stream })
    let drop: (why: string) => void = () => {}
    const dropped = new Promise<string>((resolve) => (drop = resolve))
    const link = { drop: (_: Redis, why?: Error) => drop(String(why?.message)) } as unknown as ReconnectingConnection
    const stop = (): void => clearInterval(timer)
    return { redis: redis as unknown as Redis, link, dropped, stop }
  }

  it('drops a connection on which nothing comes, and reports it', async () => {
    const { redis, link, dropped, stop } = connection(0)
    dropWhenOverdue(link, redis, { dueMs: 10, graceMs: 50 })
    expect(await dropped).to.match(/sent no byte of it for 0.05 s/)
    stop()
  })

  it('drops a connection on which a reply trickles, later', async () => {
    const { redis, link, dropped, stop } = connection(0.01)
    dropWhenOverdue(link, redis, { dueMs: 10, graceMs: 50 })
    expect(await dropped).to.match(/less than 100 bytes a second/)
    stop()
  })

  it('waits for a reply that comes fast enough, but no longer than the most', async () => {
    const { redis, link, dropped, stop } = connection(1_000)
    const stopWatching = dropWhenOverdue(link, redis, { dueMs: 10, graceMs: 50 })
    const limited = connection(1_000)
    dropWhenOverdue(limited.link, limited.redis, { dueMs: 0, graceMs: 50, mostMs: 300 })
    expect(await limited.dropped).to.match(/not complete after 0.3 s/)
    const slow = connection(0.01)
    dropWhenOverdue(slow.link, slow.redis, { dueMs: 10, graceMs: 50 })
    const first = await Promise.race([dropped.then(() => 'the fast one'), slow.dropped.then(() => 'the slow one')])
    expect(first).to.equal('the slow one')
    stopWatching()
    slow.stop()
    stop()
    limited.stop()
  })

  it('lets a subscriber have its pong behind many messages, but not behind messages without end', async () => {
    const { redis, link, dropped, stop } = connection(1_000)
    const endless = connection(1_000)
    let pong: (() => void) | undefined
    const pinged = new Promise<void>((resolve) => {
      redis.ping = () => {
        resolve()
        return new Promise<'PONG'>((answer) => (pong = () => answer('PONG')))
      }
    })
    endless.redis.ping = () => new Promise<'PONG'>(() => {})
    keepPinging(link, redis, 400)
    keepPinging(endless.link, endless.redis, 50)
    expect(await endless.dropped).to.match(/not complete after 0.2 s/)
    await pinged
    // nothing may happen for twice the limit
    expect(await Promise.race([dropped, pause(800).then(() => 'it lives')])).to.equal('it lives')
    pong?.()
    await nextTurn()
    for (const each of [redis, endless.redis]) each.emit('end')
    stop()
    endless.stop()
  })
})
