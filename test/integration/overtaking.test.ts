import { expect } from 'chai'
import { randomInt } from 'node:crypto'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Cluster, Redis } from 'ioredis'
import {
  codecs,
  ConnectionError,
  type BlockingDeque,
  type ClientOptions,
  type DelayedQueue,
  type RedelayedClient,
} from '../../src/index.js'
import * as changes from '../../src/store/reliable-change-scripts.js'
import * as groups from '../../src/store/reliable-group-scripts.js'
import * as reliable from '../../src/store/reliable-scripts.js'
import * as plain from '../../src/store/scripts.js'
import { eventually, once } from '../support/events.js'
import { randomFrom } from '../support/random.js'
import { uniqueName } from '../support/redis.js'
import {
  requireServerBin,
  startCluster,
  startRedis,
  type ClusterSetup,
  type RedisServer,
} from '../support/redis-server.js'
import { cleanUp, makeClient, onCleanup, rawKeys, rejection } from './fixtures.js'

/** Lets the server have what is held, and waits until the server has answered or refused. */
interface Held {
  (): Promise<void>
  /** Whether the server has ended the connection. */
  readonly isEnded: () => boolean
}

/** A middle box that keeps the bytes of one script call, resets the client, and passes them on to the server when the test says so. */
async function startHolder(targetPort: number) {
  const sockets = new Set<Socket>()
  const track = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
  }
  let sha1: string | undefined
  let isReset = true
  let onPassed: (bytes: Buffer) => void = () => undefined
  let onHeld: (upstream: Socket, kept: Buffer[]) => void = () => undefined
  const server = createServer((client) => {
    track(client)
    const upstream = track(connect(targetPort, '127.0.0.1'))
    let isHeld = false
    const kept: Buffer[] = []
    client.on('data', (bytes: Buffer) => {
      if (isHeld) return void kept.push(bytes)
      if (sha1 === undefined || !bytes.includes(sha1)) {
        upstream.write(bytes)
        onPassed(bytes)
        return
      }
      sha1 = undefined
      isHeld = true
      kept.push(bytes)
      onHeld(upstream, kept)
      if (isReset) client.resetAndDestroy()
    })
    upstream.on('data', (bytes) => void (client.writable && client.write(bytes)))
    client.once('close', () => isHeld || upstream.destroy())
    upstream.once('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanup(async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  return {
    port: (server.address() as AddressInfo).port,
    /** Resolves when a call of a script has been passed on. */
    passed(script: { readonly sha1: string }): Promise<void> {
      return new Promise((resolve) => (onPassed = (bytes) => bytes.includes(script.sha1) && resolve()))
    },
    /** Holds the next call of a script, and what follows it. */
    hold(script: { readonly sha1: string }, { reset = true } = {}): Promise<Held> {
      sha1 = script.sha1
      isReset = reset
      return new Promise((resolve) => {
        onHeld = (upstream, kept) => {
          const release = async (): Promise<void> => {
            if (upstream.destroyed) return
            const over = Promise.race([once(upstream, 'data'), once(upstream, 'close')])
            upstream.write(Buffer.concat(kept))
            await over
          }
          resolve(Object.assign(release, { isEnded: () => upstream.destroyed }))
        }
      })
    },
  }
}

const RUNS = 30
const SENT_ONCE = 'setConfig'
const CLUSTER_RUNS = 8
/** An offer that is due by the time the connection is back, in a cluster within a second, is not repeated. */
const DELAY_MS = 2_500
const CLUSTER_DELAY_MS = 8_000

describe('a first attempt that arrives after its repetition', function () {
  this.timeout(30_000)
  let server: RedisServer
  let replica: RedisServer

  before(async function () {
    requireServerBin(this)
    server = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] })
    replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(server.port)] })
    const redis = new Redis({ port: server.port })
    await eventually(async () => expect(await redis.info('replication')).to.match(/state=online/), 15_000)
    redis.disconnect()
  })
  after(async () => {
    await replica?.stop()
    await server?.stop()
  })
  afterEach(cleanUp)

  /** The messages sent, how they are consumed, and the messages left at the end. */
  type Kind = (
    client: RedelayedClient,
    name: string,
    delayMs?: number,
  ) => {
    script: { readonly sha1: string }
    send: () => Promise<unknown>
    consume: () => Promise<unknown>
    left: (raw: Redis | Cluster) => Promise<number>
  }
  const delayed =
    (
      script: { readonly sha1: string },
      send: (queue: DelayedQueue<string>, delayMs: number) => Promise<unknown>,
    ): Kind =>
    (client, name, delayMs = DELAY_MS) => {
      const pair = queueOf(client, name)
      const { timeouts, destination } = rawKeys(name)
      return {
        script,
        send: () => send(pair.delayed, delayMs),
        consume: () => pair.queue.take(),
        left: async (raw) => (await raw.zcard(timeouts)) + (await raw.llen(destination)),
      }
    }
  const queueOf = (client: RedelayedClient, name: string) => {
    const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
    return { queue, delayed: client.getDelayedQueue(queue) }
  }
  const kept =
    (send: (queue: ReturnType<RedelayedClient['getReliableQueue']>) => Promise<unknown>): Kind =>
    (client, name) => {
      const queue = client.getReliableQueue(name, { codec: codecs.string() })
      return {
        script: reliable.add.source,
        send: () => send(queue),
        consume: async () => expect(await (await queue.poll({ timeout: 5_000 }))!.acknowledge()).to.equal(true),
        left: () => queue.size(),
      }
    }
  const durability = { replicas: 1, timeoutMs: 2_000 }
  const KINDS: Record<string, Kind> = {
    offer: delayed(plain.offer.source, (queue, delayMs) => queue.offer('x', delayMs)),
    offerAll: delayed(plain.offerMany.source, (queue, delay) => queue.offerAll([{ value: 'x', delay }])),
    'a durable offer': delayed(plain.offer.source, (queue, delayMs) => queue.offer('x', delayMs, { durability })),
    add: kept((queue) => queue.add('x')),
    addMany: kept((queue) => queue.addMany([{ payload: 'x' }])),
    'a durable add': kept((queue) => queue.add('x', { durability })),
    // what was called after it must stay
    pauseGroup: (client, name) => {
      const queue = client.getReliableQueue(name, { codec: codecs.string() })
      return {
        script: groups.pauseGroup.source,
        send: () => queue.pauseGroup('g'),
        consume: () => queue.resumeGroup('g'),
        left: async () => (await queue.pausedGroups()).length,
      }
    },
    pauseTask: (client, name) => {
      const queue = client.getReliableQueue(name, { codec: codecs.string() })
      return {
        script: groups.pauseTask.source,
        send: () => queue.pauseTask('t'),
        consume: () => queue.resumeTask('t'),
        left: async () => (await queue.pausedTasks()).length,
      }
    },
    upsertSchedule: (client, name) => {
      const queue = client.getReliableQueue(name, { codec: codecs.string() })
      return {
        script: reliable.repeat.source,
        send: () => queue.upsertSchedule('s', 'x', { every: '1d' }),
        consume: async () => expect(await queue.removeSchedule('s')).to.equal(true),
        left: async () => (await queue.listSchedules()).length,
      }
    },
    'batch.close': (client, name) => {
      const queue = client.getReliableQueue(name, { codec: codecs.string() })
      return {
        script: reliable.closeBatch.source,
        send: () => queue.batch('b').close(),
        consume: async () => {
          await queue.clear()
          await queue.add('x', { batch: 'b' })
        },
        left: async () => Number((await queue.batch('b').counts())?.state !== 'open'),
      }
    },
    [SENT_ONCE]: (client, name) => {
      const queue = client.getReliableQueue(name, { codec: codecs.string() })
      return {
        script: reliable.configure.source,
        send: () => queue.setConfig({ maxSize: 1 }),
        consume: () => queue.setConfig({ maxSize: 2 }),
        left: async () => Number((await queue.getConfig()).maxSize !== 2),
      }
    },
    clear: (client, name) => {
      const queue = client.getReliableQueue(name, { codec: codecs.string() })
      return {
        script: reliable.clear.source,
        send: () => queue.clear(),
        consume: () => queue.add('x'),
        left: async () => 1 - (await queue.size()),
      }
    },
    updatePayload: (client, name) => {
      const queue = client.getReliableQueue(name, { codec: codecs.string() })
      return {
        script: reliable.update.source,
        send: async () => {
          await queue.add('first', { id: 'x', delay: '1h' })
          expect(await queue.updatePayload('x', 'second')).to.equal(true)
        },
        consume: () => queue.updatePayload('x', 'third'),
        left: async () => Number((await queue.get('x'))?.payload !== 'third'),
      }
    },
  }

  for (const [what, kind] of Object.entries(KINDS)) {
    it(`is never carried out: ${what}, ${RUNS} times`, async () => {
      const seed = randomInt(2 ** 31)
      const random = randomFrom(seed)
      const raw = new Redis({ port: server.port })
      onCleanup(() => raw.disconnect())
      const run = async (): Promise<number> => {
        const holder = await startHolder(server.port)
        const client = makeClient({ host: '127.0.0.1', port: holder.port })
        client.on('error', () => undefined)
        const { script, send, consume, left } = kind(client, uniqueName())
        await raw.script('LOAD', (script as unknown as { source: string }).source)
        await client.getQueue(uniqueName()).size() // connected
        const held = holder.hold(script)
        const sent = what === SENT_ONCE ? rejection(send()) : send()
        const release = await held
        await sent
        await consume()
        await new Promise((resolve) => setTimeout(resolve, random() * 50)) // the command arrives some time later
        await release()
        return left(raw)
      }
      const lefts = await Promise.all(Array.from({ length: RUNS }, run))
      expect(lefts, `seed ${seed}`).to.deep.equal(lefts.map(() => 0))
    })
  }

  for (const what of ['add', SENT_ONCE]) {
    it(`is never carried out where its connection was left, as a server was no master for a moment: ${what}`, async () => {
      const own = await startRedis()
      onCleanup(() => own.stop())
      const raw = new Redis({ port: own.port })
      onCleanup(() => raw.disconnect())
      const holder = await startHolder(own.port)
      const client = makeClient({ host: '127.0.0.1', port: holder.port })
      client.on('error', () => undefined)
      const name = uniqueName()
      const { script, send, consume, left } = KINDS[what]!(client, name)
      for (const { source } of [script as unknown as { source: string }, groups.pauseGroup.source])
        await raw.script('LOAD', source)
      await client.getReliableQueue(name).pausedGroups() // connected
      await raw.replicaof('127.0.0.1', 1)
      await raw.call('CLIENT', 'PAUSE', 1_000, 'ALL') // so that the refusal comes while the other call is on its way
      const passed = holder.passed(groups.pauseGroup.source)
      const refused = rejection(client.getReliableQueue(name).pauseGroup('g'))
      await passed
      const held = holder.hold(script, { reset: false })
      const sent = what === SENT_ONCE ? rejection(send()) : send()
      const release = await held
      await refused
      await raw.replicaof('NO', 'ONE')
      await sent
      await consume()
      await eventually(() => expect(release.isEnded()).to.equal(true), 10_000)
      await release()
      expect(await left(raw)).to.equal(0)
    })
  }

  const WAITS: Record<string, (queue: BlockingDeque<string>, target: string) => Promise<unknown>> = {
    take: (queue) => queue.take(),
    takeLast: (queue) => queue.takeLast(),
    'pollLastAndOfferFirstTo with a timeout': (queue, target) => queue.pollLastAndOfferFirstTo(target, 20_000),
  }
  for (const [what, wait] of Object.entries(WAITS)) {
    it(`takes nothing: ${what}, ${CLUSTER_RUNS} times`, async () => {
      const raw = new Redis({ port: server.port })
      onCleanup(() => raw.disconnect())
      const run = async (): Promise<number> => {
        const holder = await startHolder(server.port)
        const client = makeClient({ host: '127.0.0.1', port: holder.port })
        const name = uniqueName()
        const held = holder.hold({ sha1: what.startsWith('poll') ? 'BLMOVE' : 'BLMPOP' })
        const waiting = wait(client.getBlockingDeque(name, { codec: codecs.string() }), `${name}:target`)
        const release = await held
        await raw.rpush(name, 'for the next command')
        expect(await waiting).to.equal('for the next command')
        await raw.rpush(name, 'for a later take')
        await release()
        return raw.llen(name)
      }
      const lefts = await Promise.all(Array.from({ length: CLUSTER_RUNS }, run))
      expect(lefts).to.deep.equal(lefts.map(() => 1))
    })
  }

  describe('in a cluster', () => {
    let setup: ClusterSetup
    let raw: Cluster

    before(async () => (setup = await startCluster({ masters: 2 })))
    after(() => setup?.stop())
    beforeEach(async () => {
      raw = new Cluster(setup.nodes)
      onCleanup(() => raw.quit())
      await once(raw, 'ready')
    })

    /** Each node behind a middle box of its own; the next call of a script is held wherever it arrives. */
    async function startHolders() {
      const holders = await Promise.all(setup.servers.map(({ port }) => startHolder(port)))
      const natMap = (address: string) => {
        const at = setup.servers.findIndex(({ port }) => address.endsWith(`:${port}`))
        return at < 0 ? null : { host: '127.0.0.1', port: holders[at]!.port }
      }
      const options: ClientOptions = {
        cluster: holders.map(({ port }) => ({ host: '127.0.0.1', port })),
        ioredis: { natMap },
      }
      return { options, hold: (script: { sha1: string }) => Promise.race(holders.map((holder) => holder.hold(script))) }
    }

    /** One client and one queue; resolves when the first attempt is held by a middle box, and its connection is broken. */
    async function begin(what: string, more: ClientOptions['ioredis'] = {}) {
      const { options, hold } = await startHolders()
      const client = makeClient({ ...options, ioredis: { ...options.ioredis, ...more } })
      client.on('error', () => undefined)
      const { script, send, consume, left } = KINDS[what]!(client, uniqueName(), CLUSTER_DELAY_MS)
      const text = (script as unknown as { source: string }).source
      await Promise.all(raw.nodes('master').map((node) => node.script('LOAD', text)))
      await client.getQueue(uniqueName()).size()
      const held = hold(script)
      const sent = send().catch((error: unknown) => error)
      return { sent, release: await held, consume, left: () => left(raw) }
    }

    for (const what of Object.keys(KINDS).filter((each) => !/durable/.test(each) && each !== SENT_ONCE)) {
      it(`is never carried out: ${what}, ${CLUSTER_RUNS} times`, async () => {
        const run = async (): Promise<number> => {
          const { sent, release, consume, left } = await begin(what)
          expect(await sent).not.to.be.instanceOf(Error)
          await consume()
          await release()
          return left()
        }
        const lefts = await Promise.all(Array.from({ length: CLUSTER_RUNS }, run))
        expect(lefts).to.deep.equal(lefts.map(() => 0))
      })
    }

    it(`is ended at the server, also where it is not repeated: ${SENT_ONCE}, ${CLUSTER_RUNS} times`, async () => {
      const run = async (): Promise<number> => {
        const { sent, release, consume, left } = await begin(SENT_ONCE)
        expect(await sent)
          .to.be.instanceOf(ConnectionError)
          .and.to.include({ outcome: 'unknown' })
        await eventually(consume, 10_000) // ioredis may still have the node whose connection has just broken
        await eventually(() => expect(release.isEnded()).to.equal(true), 10_000)
        await release()
        return left()
      }
      const lefts = await Promise.all(Array.from({ length: CLUSTER_RUNS }, run))
      expect(lefts).to.deep.equal(lefts.map(() => 0))
    })

    it(`takes no change from its reader: ${CLUSTER_RUNS} times`, async () => {
      const run = async (): Promise<string[]> => {
        const { options, hold } = await startHolders()
        const name = uniqueName()
        const ending = new AbortController()
        onCleanup(() => ending.abort())
        const client = makeClient(options)
        client.on('error', () => undefined)
        const added = makeClient({ cluster: setup.nodes }).getReliableQueue<string>(name, { codec: codecs.string() })
        await added.setConfig({ changes: { keep: 'groups' } })
        const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
        const reading = queue.changes({ group: 'audit', consumer: 'auditor', signal: ending.signal })
        const next = async (): Promise<string> => {
          const { value } = await reading.next()
          await queue.acknowledgeChanges('audit', value!.position)
          return value!.changes[0]!.id
        }
        await added.add('x', { id: 'first' })
        const ids = [await next()]
        const held = hold(changes.followChanges.source)
        const second = next() // it looks for entries from now on
        const release = await held
        await added.add('x', { id: 'second' })
        ids.push(await second)
        // it asks for nothing meanwhile
        await added.add('x', { id: 'third' })
        await release()
        ids.push(await next())
        return ids
      }
      const ids = await Promise.all(Array.from({ length: CLUSTER_RUNS }, run))
      expect(ids).to.deep.equal(ids.map(() => ['first', 'second', 'third']))
    })

    it('is not repeated where the nodes refuse to end connections, or to name them: the outcome is unknown', async () => {
      for (const node of raw.nodes('master'))
        for (const refused of ['kill', 'id'])
          await node.call('ACL', 'SETUSER', refused, 'on', '>secret', '~*', '&*', '+@all', `-client|${refused}`)
      for (const [what, username] of [
        ['offer', 'kill'],
        ['add', 'kill'],
        ['add', 'id'],
      ] as const) {
        const { sent, release, left } = await begin(what, { username, password: 'secret' })
        expect(await sent, `${what}, ${username}`)
          .to.be.instanceOf(ConnectionError)
          .and.to.include({ outcome: 'unknown' })
        await release()
        expect(await left()).to.equal(1)
      }
    })
  })

  it('is not repeated where the server refuses to end connections: the outcome is unknown', async () => {
    const raw = new Redis({ port: server.port })
    onCleanup(() => raw.disconnect())
    await raw.call('ACL', 'SETUSER', 'careful', 'on', '>secret', '~*', '&*', '+@all', '-client|kill')
    for (const what of ['offer', 'add']) {
      const holder = await startHolder(server.port)
      const client = makeClient({ host: '127.0.0.1', port: holder.port, username: 'careful', password: 'secret' })
      const { script, send, left } = KINDS[what]!(client, uniqueName())
      await raw.script('LOAD', (script as unknown as { source: string }).source)
      await client.getQueue(uniqueName()).size()
      const held = holder.hold(script)
      const sent = rejection(send())
      const release = await held
      expect(await sent)
        .to.be.instanceOf(ConnectionError)
        .and.to.include({ outcome: 'unknown' })
      await release()
      expect(await left(raw)).to.equal(1)
    }
  })

  it('is repeated again once the server refuses no more to end connections', async () => {
    const raw = new Redis({ port: server.port })
    onCleanup(() => raw.disconnect())
    for (const what of ['offer', 'add']) {
      await raw.call('ACL', 'SETUSER', 'odd', 'on', '>secret', '~*', '&*', '+@all', '-client|kill')
      const holder = await startHolder(server.port)
      const client = makeClient({ host: '127.0.0.1', port: holder.port, username: 'odd', password: 'secret' })
      const { script, send, left } = KINDS[what]!(client, uniqueName())
      await raw.script('LOAD', (script as unknown as { source: string }).source)
      await client.getQueue(uniqueName()).size()
      await raw.call('ACL', 'SETUSER', 'odd', '+client|kill')
      const held = holder.hold(script)
      const sent = send()
      const release = await held
      await sent
      await release()
      expect(await left(raw)).to.equal(1)
    }
  })
})
