import { expect } from 'chai'
import { Redis } from 'ioredis'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { codecs, type ReconnectingEvent } from '../../src/index.js'
import { writeCertificate } from '../support/certificate.js'
import { eventually, once } from '../support/events.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup } from './fixtures.js'

const LIMITS = { connectTimeout: 3_000, commandTimeout: 10_000, sweepInterval: 500, pingInterval: 300 }

/** A server that speaks TLS before the Redis of the tests, behind a line that damages what it carries when the test says so. */
async function startLine(): Promise<{ port: number; ca: string; damage(): void }> {
  const { hostname, port } = new URL(redisUrl())
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-damaged-'))
  writeCertificate(dir, 'server')
  const [key = '', ca = ''] = ['server.key', 'server.pem'].map((name) => readFileSync(join(dir, name), 'utf8'))
  rmSync(dir, { recursive: true })
  const sockets = new Set<Socket>()
  const track = <S extends Socket>(socket: S): S => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    return socket
  }
  const pipe = (one: Socket, other: Socket): void => {
    one.on('data', (bytes) => other.writable && other.write(bytes))
    one.once('close', () => other.destroy())
  }
  const terminator = createTlsServer({ key, cert: ca }, (client) => {
    const redis = track(connect(Number(port || 6379), hostname))
    pipe(track(client), redis)
    pipe(redis, client)
  })
  const damaged = new Set<Socket>()
  const line = createServer((client) => {
    track(client)
    const upstream = track(connect((terminator.address() as AddressInfo).port, '127.0.0.1'))
    pipe(client, upstream)
    upstream.on('data', (bytes: Buffer) => {
      if (damaged.has(client)) bytes[bytes.length >> 1]! ^= 0xff
      if (client.writable) client.write(bytes)
    })
    upstream.once('close', () => client.destroy())
    lines.add(client)
    client.once('close', () => lines.delete(client))
  })
  const lines = new Set<Socket>()
  const servers: Server[] = [terminator, line]
  for (const server of servers) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanup(async () => {
    const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)))
    for (const socket of sockets) socket.destroy()
    await Promise.all(closed)
  })
  return {
    port: (line.address() as AddressInfo).port,
    ca,
    damage: () => lines.forEach((client) => damaged.add(client)),
  }
}

// An unhandled rejection or an uncaught exception fails this test: see test/support/hooks.ts.
describe('damaged records of TLS', () => {
  afterEach(cleanUp)

  it('end the connections, not the process: each kind is replaced, and everything works again', async function () {
    this.timeout(30_000)
    const line = await startLine()
    const client = makeClient({ host: '127.0.0.1', port: line.port, tls: { ca: line.ca }, ...LIMITS })
    client.on('error', () => {})
    const replaced = new Set<string>()
    client.on('reconnecting', ({ connection }: ReconnectingEvent) => replaced.add(connection))
    const queue = client.getBlockingQueue<string>(uniqueName(), { codec: codecs.string() })
    const delayed = client.getDelayedQueue(queue)
    await delayed.offer('before', 10)
    expect(await queue.take()).to.equal('before')

    const taking = queue.take()
    line.damage()
    const calls = Promise.allSettled(Array.from({ length: 5 }, () => queue.size()))
    // the subscriber's next ping is answered by a damaged record, too, and so is the take, whose command ends for another key
    const ending = new AbortController()
    const other = client.getBlockingQueue(uniqueName()).take({ signal: ending.signal })
    const ended = other.catch(() => undefined)
    await eventually(() => expect([...replaced]).to.include.members(['commands', 'subscriber', 'blocking']), 12_000)
    await calls
    ending.abort()
    await ended
    await delayed.offer('after', 10)
    expect(await taking).to.equal('after')
  })

  for (const what of ['before the loan', 'during the loan'] as const) {
    it(`end the connection of a client of the user that was opened ${what}, not the process`, async function () {
      this.timeout(30_000)
      const line = await startLine()
      const redis = new Redis({
        host: '127.0.0.1',
        port: line.port,
        tls: { ca: line.ca },
        lazyConnect: true,
        retryStrategy: () => 50,
      })
      redis.on('error', () => {})
      onCleanup(() => redis.disconnect())
      if (what === 'before the loan') await redis.connect()
      const queue = makeClient({ redis, ...LIMITS }).getQueue<string>(uniqueName(), { codec: codecs.string() })
      expect(await queue.size()).to.equal(0)
      const reconnected = once(redis, 'ready')
      const damaged = once(redis, 'error')
      line.damage()
      const calls = Promise.allSettled([queue.size()])
      await damaged
      const more = Promise.allSettled([queue.size(), redis.ping()]) // the next writes
      await reconnected
      await Promise.all([calls, more])
      expect(await queue.size()).to.equal(0)
    })
  }
})
