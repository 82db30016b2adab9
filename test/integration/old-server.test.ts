import { expect } from 'chai'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { UnsupportedServerError, codecs } from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup, rejection } from './fixtures.js'

/** The shared Redis, which calls itself an older one as long as `isOld` says so. */
async function startOldServer(version: string, isOld = () => true): Promise<number> {
  const { hostname, port } = new URL(redisUrl())
  const sockets = new Set<Socket>()
  const track = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
  }
  const server = createServer((client) => {
    const upstream = connect(Number(port || 6379), hostname)
    track(client)
    track(upstream)
    client.pipe(upstream)
    upstream.on('data', (bytes) => {
      const text = bytes.toString('latin1')
      // as long as before, because the reply says how long it is
      const older = text.replace(/redis_version:[0-9.]+/, (line) =>
        isOld() ? `redis_version:${version}`.padEnd(line.length, '9') : line,
      )
      client.write(older, 'latin1')
    })
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanup(async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  return (server.address() as AddressInfo).port
}

/** The port of the shared Redis where it is an old one itself, as with `npm run test:servers`. */
async function ownOldServer(): Promise<number | undefined> {
  const [, version = ''] = /redis_version:(\d+\.\d+)/.exec(await rawClient().info('server')) ?? []
  return Number(version) < 6.2 ? Number(new URL(redisUrl()).port || 6379) : undefined
}

describe('a reliable queue on a server before 6.2', () => {
  afterEach(cleanUp)

  for (const version of ['5.0.1', '6.0.1', undefined]) {
    for (const owned of [true, false]) {
      const which = version ?? 'a real one'
      it(`is refused by every call on ${which}, ${owned ? 'on a client of its own' : 'on a client of the user'}`, async function () {
        const port = version === undefined ? await ownOldServer() : await startOldServer(version)
        if (port === undefined) return this.skip()
        const redis = owned ? undefined : new Redis(port, '127.0.0.1', { lazyConnect: true })
        if (redis !== undefined) onCleanup(() => redis.disconnect())
        const client = makeClient(redis === undefined ? { host: '127.0.0.1', port } : { redis })
        const queue = client.getReliableQueue<string>(uniqueName(), { codec: codecs.string() })
        const calls = {
          'durable add': () => queue.add('x', { durability: { replicas: 1, timeoutMs: 100 } }),
          add: () => queue.add('x'),
          poll: () => queue.poll(),
          'long poll': () => queue.poll({ timeout: 1_000 }),
          pollMany: () => queue.pollMany({ count: 2 }),
          size: () => queue.size(),
          counts: () => queue.counts(),
          contains: () => queue.contains('x'),
          get: () => queue.get('x'),
          cancel: () => queue.cancel('x'),
          remove: () => queue.remove('x'),
          reschedule: () => queue.reschedule('x', 1),
          clear: () => queue.clear(),
          redrive: () => queue.redrive(),
          setConfig: () => queue.setConfig({ visibilityTimeout: 5 }),
          getConfig: () => queue.getConfig(),
          upsertSchedule: () => queue.upsertSchedule('x', 'x', { every: 1_000 }),
          listSchedules: () => queue.listSchedules(),
          listAll: () => queue.listAll().next(),
        }
        for (const [name, call] of Object.entries(calls)) {
          expect(await rejection(call()), name).to.be.instanceOf(UnsupportedServerError)
        }
        const failed = await rejection(queue.addMany([{ payload: 'x' }]))
        expect(failed).to.have.nested.property('failures[0].error').that.is.instanceOf(UnsupportedServerError)
        const worker = client.createWorker(queue, () => undefined)
        expect(await once(worker, 'error')).to.be.instanceOf(UnsupportedServerError)
        await worker.close()
        // what is older than it is still served
        const plain = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
        expect(await plain.size()).to.equal(0)
      })
    }
  }

  for (const owned of [true, false]) {
    it(`is served as soon as the server calls itself a newer one, ${owned ? 'on a client of its own' : 'on a client of the user'}`, async function () {
      if ((await ownOldServer()) !== undefined) this.skip()
      let isOld = true
      const port = await startOldServer('5.0.1', () => isOld)
      const redis = owned ? undefined : new Redis(port, '127.0.0.1', { lazyConnect: true })
      if (redis !== undefined) onCleanup(() => redis.disconnect())
      const queue = makeClient(redis === undefined ? { host: '127.0.0.1', port } : { redis }).getReliableQueue(
        uniqueName(),
      )
      expect(await rejection(queue.size())).to.be.instanceOf(UnsupportedServerError)
      isOld = false
      await eventually(async () => expect(await queue.size()).to.equal(0))
      await queue.add('x')
      await queue.clear()
    })
  }

  it('is served on 6.2', async function () {
    if ((await ownOldServer()) !== undefined) this.skip()
    const client = makeClient({ host: '127.0.0.1', port: await startOldServer('6.2.0') })
    expect(await client.getReliableQueue(uniqueName()).size()).to.equal(0)
  })
})
