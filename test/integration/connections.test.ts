import { expect } from 'chai'
import { Redis } from 'ioredis'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import {
  AuthError,
  ConnectionError,
  ReadOnlyError,
  ShutdownError,
  UnsupportedServerError,
  type ClientOptions,
  RedelayedError,
} from '../../src/index.js'
import { resolveSettings } from '../../src/options.js'
import { Subscriber } from '../../src/redis/subscriber.js'
import type { Topology } from '../../src/redis/topology/topology.js'
import { ReconnectingConnection } from '../../src/redis/connections/reconnecting-connection.js'
import { OVERRIDES } from '../../src/redis/connections/ioredis-defaults.js'
import { remoteAddressOf } from '../../src/redis/connections/remote-address.js'
import { eventually, once } from '../support/events.js'
import { freePort, requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'
import {
  ORDERS,
  cleanUp,
  expectError,
  expectRoundTrip,
  javaOffer,
  makePair,
  onCleanup,
  rawState,
  rawTo,
  rejection,
} from './fixtures.js'

describe('connections', () => {
  afterEach(cleanUp)

  describe('to a server with passwords', function () {
    let server: RedisServer
    const odd = 'p@ss/w:rd%?#'
    /** The password of the user `app`, different from the default user's, so that a missing user name is noticed. */
    const own = `own ${odd}`

    before(async function () {
      requireServerBin(this)
      server = await startRedis({ args: ['--requirepass', odd] })
      const admin = new Redis({ port: server.port, password: odd, protocol: 2 })
      await admin.acl('SETUSER', 'app', 'on', `>${own}`, '~*', '&*', '+@all')
      await admin.acl('SETUSER', 'poor', 'on', '>poor', '~other*', '&*', '+@all')
      await admin.quit()
    })
    after(() => server.stop())

    const encoded = encodeURIComponent(odd)
    const app = `app:${encodeURIComponent(own)}`
    const ways: [what: string, options: (port: number) => ClientOptions, db: number][] = [
      ['a password in the url', (port) => ({ url: `redis://:${encoded}@127.0.0.1:${port}` }), 0],
      ['user, password and database in the url', (port) => ({ url: `redis://${app}@127.0.0.1:${port}/3` }), 3],
      ['a URL object', (port) => ({ url: new URL(`redis://${app}@127.0.0.1:${port}/0`) }), 0],
      ['host options', (port) => ({ host: '127.0.0.1', port, username: 'app', password: own, db: 5 }), 5],
      ['a url and options', (port) => ({ url: `redis://127.0.0.1:${port}`, password: odd, db: 7 }), 7],
      ['RESP2', (port) => ({ host: '127.0.0.1', port, password: odd, ioredis: { protocol: 2 } }), 0],
      ['RESP3', (port) => ({ host: '127.0.0.1', port, password: odd, ioredis: { protocol: 3 } }), 0],
    ]
    for (const [what, options, db] of ways) {
      it(`works with ${what}`, async () => {
        const pair = makePair('redisson', options(server.port))
        await expectRoundTrip(pair)
        await pair.delayed.offer('pending', 600_000)
        const plain = rawTo(server.port, { password: odd, db })
        expect(await plain.zcard(pair.keys.timeouts), `in database ${db}`).to.equal(1)
      })
    }

    for (const [what, credentials] of [
      ['no password', {}],
      ['a wrong password', { password: 'top-secret' }],
      ['an unknown user', { username: 'unknown', password: odd }],
    ] as const) {
      it(`${what}: an AuthError at once, on every connection, without the password in it`, async () => {
        const started = performance.now()
        const pair = makePair('redisson', { host: '127.0.0.1', port: server.port, ...credentials })
        const heard = once<RedelayedError>(pair.client, 'error')
        const wanted = { code: 'ERR_AUTH', queue: pair.name }
        for (const call of [
          () => pair.delayed.offer('x', 5),
          () =>
            pair.delayed
              .offerAll([{ value: 'x', delay: 5 }])
              .catch((error: { failures: [{ error: Error }] }) => Promise.reject(error.failures[0].error)),
          () => pair.queue.size(),
          () => pair.queue.take(),
          () => pair.queue.poll(9_000),
        ]) {
          const error = await expectError([AuthError, wanted], call)
          expect(inspect(error, { depth: 10, showHidden: true })).to.not.include('top-secret')
        }
        expect(await heard).to.have.property('code', 'ERR_AUTH')
        expect(performance.now() - started).to.be.below(2_000)
      })
    }

    it('a user who may not touch the keys: an AuthError that names the queue', async () => {
      const pair = makePair('redisson', { host: '127.0.0.1', port: server.port, username: 'poor', password: 'poor' })
      pair.client.on('error', () => {})
      await expectError([AuthError, { code: 'ERR_AUTH', queue: pair.name }], () => pair.delayed.offer('x', 5))
      await expectError([AuthError, { code: 'ERR_AUTH', queue: pair.name }], () => pair.queue.take())
    })

    it('a user who may not select the database: an AuthError, and nothing goes to another one', async () => {
      const plain = rawTo(server.port, { password: odd })
      await plain.call('ACL', 'SETUSER', 'fixed', 'on', '>fixed', '~*', '&*', '+@all', '-select')
      const pair = makePair('redisson', {
        port: server.port,
        host: '127.0.0.1',
        username: 'fixed',
        password: 'fixed',
        db: 3,
      })
      pair.client.on('error', () => {})
      await expectError([AuthError, { code: 'ERR_AUTH', queue: pair.name }], () => pair.delayed.offer('x', 600_000))
      expect(await plain.exists(pair.keys.timeouts, pair.keys.order)).to.equal(0)
    })

    for (const layout of ORDERS) {
      it(`layout '${layout}': a user who may not publish: an error, and nothing is added`, async () => {
        const plain = rawTo(server.port, { password: odd })
        await plain.call('ACL', 'SETUSER', 'mute', 'on', '>mute', '~*', '&*', '+@all', '-publish')
        const options = { host: '127.0.0.1', port: server.port, username: 'mute', password: 'mute' }
        const pair = makePair(layout, options)
        pair.client.on('error', () => {})
        expect(await rejection(pair.delayed.offer('x', 600_000))).to.be.instanceOf(RedelayedError)
        expect(await plain.exists(pair.keys.timeouts, pair.keys.order)).to.equal(0)
      })
    }
  })

  describe('with TLS', function () {
    let server: RedisServer
    let tlsPort: number
    let dir: string
    let ca: string

    before(async function () {
      requireServerBin(this)
      dir = mkdtempSync(join(tmpdir(), 'redelayed-tls-'))
      try {
        const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' })
        const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=redelayed-test']
        openssl(...request, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', 'key.pem', '-out', 'cert.pem')
        tlsPort = await freePort()
        const files = ['cert', 'key', 'ca-cert'].flatMap((kind) => [
          `--tls-${kind}-file`,
          join(dir, kind === 'key' ? 'key.pem' : 'cert.pem'),
        ])
        server = await startRedis({ args: ['--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no', ...files] })
      } catch {
        rmSync(dir, { recursive: true, force: true })
        this.skip() // no openssl, or a server built without TLS
      }
      ca = readFileSync(join(dir, 'cert.pem'), 'utf8')
    })
    after(async () => {
      await server?.stop()
      rmSync(dir, { recursive: true, force: true })
    })

    it('rediss:// with the right authority works, on all connections', async () => {
      await expectRoundTrip(makePair('redisson', { url: `rediss://127.0.0.1:${tlsPort}`, tls: { ca } }))
      await expectRoundTrip(makePair('redisson', { host: '127.0.0.1', port: tlsPort, tls: { ca } }))
    })

    for (const [what, options] of [
      ['an unknown authority', () => ({ url: `rediss://127.0.0.1:${tlsPort}` })],
      ['plain text to the TLS port', () => ({ url: `redis://127.0.0.1:${tlsPort}` })],
      ['TLS to the plain port', () => ({ url: `rediss://127.0.0.1:${server.port}`, tls: { ca } })],
    ] as const) {
      it(`${what}: a ConnectionError with the reason`, async () => {
        const pair = makePair('redisson', { ...options(), connectTimeout: 200 })
        pair.client.on('error', () => {})
        const error = await expectError(
          [ConnectionError, { code: 'ERR_CONNECTION', queue: pair.name, says: ['0.2 s'] }],
          () => pair.delayed.offer('x', 5),
        )
        expect(error.outcome).to.equal('not-applied')
        if (what === 'an unknown authority') expect(error.message).to.match(/self[- ]signed/)
      })
    }

    it('an unknown authority of sentinels or of a cluster: a ConnectionError with the reason, too', async () => {
      const servers: ClientOptions[] = [
        { sentinels: [{ host: '127.0.0.1', port: tlsPort }], name: 'mymaster' },
        { cluster: [{ host: '127.0.0.1', port: tlsPort }] },
      ]
      const refused = servers.map(async (options) => {
        const pair = makePair('redisson', { ...options, tls: true, connectTimeout: 3_000 })
        pair.client.on('error', () => {})
        const error = await rejection(pair.delayed.offer('x', 5))
        expect(error).to.be.instanceOf(ConnectionError).and.to.include({ outcome: 'not-applied' })
        expect(error.message).to.match(/self[- ]signed/)
      })
      await Promise.all(refused)
    })

    it('a shutdown at any moment of a handshake that would fail is no error of the process', async () => {
      for (let turns = 0; turns < 60; turns++) {
        const pair = makePair('redisson', { url: `rediss://127.0.0.1:${tlsPort}` })
        pair.client.on('error', () => {})
        const offered = rejection(pair.delayed.offer('x', 5))
        for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
        await pair.client.shutdown()
        expect(await offered).to.be.an.instanceOf(ShutdownError)
      }
    })
  })

  it('without a server every call rejects within its bounded wait', async () => {
    const pair = makePair('redisson', { host: '127.0.0.1', port: await freePort(), connectTimeout: 300 })
    const heard = once<RedelayedError>(pair.client, 'error')
    const started = performance.now()
    const wanted = { code: 'ERR_CONNECTION', queue: pair.name, says: ['0.3 s', 'ECONNREFUSED'] }
    const calls = [
      pair.delayed.offer('x', 5),
      pair.delayed.size(),
      pair.queue.take(),
      pair.queue.poll(60_000),
      pair.queue.offer('x'),
    ]
    const errors = await Promise.all(calls.map((call) => expectError([ConnectionError, wanted], () => call)))
    expect(performance.now() - started).to.be.within(295, 1_500)
    for (const error of errors) expect(error).to.have.property('outcome', 'not-applied')
    expect(await heard).to.have.property('code', 'ERR_CONNECTION')
  })

  it('a server that comes up late is found, also by calls that wait already', async function () {
    requireServerBin(this)
    const port = await freePort()
    const pair = makePair('redisson', { host: '127.0.0.1', port })
    const trip = expectRoundTrip(pair)
    const attempts = [once(pair.client, 'reconnecting', ({ attempt }: { attempt: number }) => attempt === 3)]
    await Promise.all(attempts)
    const server = await startRedis({ port })
    onCleanup(() => server.stop())
    await trip
  })

  it('a read-only replica: a ReadOnlyError, error events of the transfer, and nothing lost', async function () {
    requireServerBin(this)
    const server = await startRedis()
    onCleanup(() => server.stop())
    const plain = rawTo(server.port)
    const name = uniqueName()
    await javaOffer(name, 'pending', 1, { redis: plain })
    await plain.replicaof('127.0.0.1', await freePort())
    const before = await rawState(name, plain)

    const pair = makePair('redisson', { url: server.url, queueName: name })
    pair.delayed.on('error', () => {}) // it is tried again and again
    // the first one can be of a transfer whose connection the client left because of another call's refusal
    const heard = once<RedelayedError>(pair.delayed, 'error', ({ code }: RedelayedError) => code === 'ERR_READ_ONLY')
    const wanted = { code: 'ERR_READ_ONLY', queue: pair.name, says: ['replica', 'master'] }
    await expectError([ReadOnlyError, wanted], () => pair.delayed.offer('x', 5))
    await expectError([ReadOnlyError, wanted], () => pair.queue.offer('x'))
    await expectError([ReadOnlyError, wanted], () => pair.queue.take())
    expect(await heard).to.include({ code: 'ERR_READ_ONLY', queue: pair.name })
    expect(await pair.delayed.size(), 'reading is possible').to.equal(1)
    expect(await rawState(name, plain)).to.deep.equal(before)

    await plain.replicaof('NO', 'ONE')
    expect(await pair.queue.poll(5_000)).to.equal('pending')
  })

  describe('at an address that another server takes over, while the old one lives on', () => {
    let old: RedisServer
    let next: RedisServer
    let proxy: TcpProxy
    let pair: ReturnType<typeof makePair>
    const admins = new Map<RedisServer, Redis>()

    beforeEach(async function () {
      requireServerBin(this)
      this.timeout(30_000)
      admins.clear()
      ;[old, next] = [await startRedis(), await startRedis()]
      onCleanup(() => old.stop())
      onCleanup(() => next.stop())
      proxy = await startProxy({ targetPort: old.port })
      onCleanup(() => proxy.stop())
      pair = makePair('redisson', { host: '127.0.0.1', port: proxy.port })
      pair.client.on('error', () => {})
      await expectRoundTrip(pair)
    })

    const adminOf = (server: RedisServer): Redis => {
      const admin = admins.get(server) ?? rawTo(server.port)
      admins.set(server, admin)
      return admin
    }
    /** The ids of the connections at a server that have these flags: `b` waits in a blocking command. */
    async function idsAt(server: RedisServer, flags: string): Promise<string[]> {
      const admin = adminOf(server)
      const own = String(await admin.call('CLIENT', 'ID'))
      const lines = String(await admin.call('CLIENT', 'LIST')).split('\n')
      const ids = lines.filter((line) => line.includes(` flags=${flags} `)).map((line) => /^id=(\d+)/.exec(line)![1]!)
      return ids.filter((id) => id !== own)
    }
    const waitsAt = (server: RedisServer): Promise<unknown> =>
      eventually(async () => expect(await idsAt(server, 'b')).to.have.lengthOf(1), 10_000)
    const breakAtOld = async (flags: string): Promise<void> => {
      for (const id of await idsAt(old, flags)) await adminOf(old).call('CLIENT', 'KILL', 'ID', id)
    }

    it('a wait follows the connection for commands', async () => {
      const taken = pair.queue.take()
      await waitsAt(old)
      proxy.retarget(next.port)
      await breakAtOld('N')
      await eventually(() => pair.delayed.offer('at the other server', 0), 10_000)
      expect(await taken).to.equal('at the other server')
    }).timeout(30_000)

    it('a wait that is there already keeps its connection when the one for commands comes', async () => {
      const taken = pair.queue.take()
      await waitsAt(old)
      proxy.retarget(next.port)
      await breakAtOld('b')
      await waitsAt(next)
      const waiting = await idsAt(next, 'b')
      await breakAtOld('N')
      await eventually(() => pair.delayed.offer('at the other server', 0), 10_000)
      expect(await taken).to.equal('at the other server')
      expect(await idsAt(next, 'N')).to.include.members(waiting)
    }).timeout(30_000)

    for (const [what, flags] of [
      ["a wait's connection", 'b'],
      ['the subscriber', 'P'],
    ] as const)
      it(`all connections follow when only that of ${what} moves`, async () => {
        const taken = pair.queue.take()
        await waitsAt(old)
        expect((await idsAt(old, 'N')).length, 'connections for commands').to.be.above(0)
        proxy.retarget(next.port)
        await breakAtOld(flags)
        await waitsAt(next)
        await eventually(async () => expect(await idsAt(next, 'P')).to.have.lengthOf(1), 10_000)
        await eventually(async () => expect(await idsAt(old, 'N')).to.deep.equal([]), 10_000)
        await pair.delayed.offer('at the other server', 0)
        expect(await taken).to.equal('at the other server')
      }).timeout(30_000)

    describe('by turns, as behind a balancer', () => {
      let servers: RedisServer[]
      let warned: string[]
      let reconnected: number

      /** From now on each new connection leads to the next one of `count` servers; each of the client's connections breaks. */
      async function takeTurns(count: number): Promise<void> {
        servers = [old, next]
        while (servers.length < count) {
          const further = await startRedis()
          onCleanup(() => further.stop())
          servers.push(further)
        }
        ;[warned, reconnected] = [[], 0]
        pair.client.on('warning', ({ code }: { code: string }) => warned.push(code))
        pair.client.on('reconnecting', () => reconnected++)
        proxy.events.on('accepted', () => proxy.retarget(servers[proxy.accepted % count]!.port))
      }
      const breakAll = async (): Promise<void> => {
        for (const flags of ['b', 'P', 'N'])
          for (const server of servers)
            for (const id of await idsAt(server, flags)) await adminOf(server).call('CLIENT', 'KILL', 'ID', id)
      }
      const allAt = async (server: RedisServer): Promise<number[]> =>
        (await Promise.all(['b', 'P', 'N'].map((flags) => idsAt(server, flags)))).map((ids) => ids.length)
      /** Waits until the waits, the subscriber and the commands are at one server, and no connection is elsewhere. */
      const settled = (): Promise<unknown> =>
        eventually(async () => {
          const counts = await Promise.all(servers.map(allAt))
          const used = counts.filter((each) => each.some((count) => count > 0))
          expect(used, String(counts)).to.have.lengthOf(1)
          expect(Math.min(...used[0]!), String(counts)).to.be.above(0)
        }, 25_000)

      /** The last take waits too, so that the next round breaks its connection. */
      const waitsAtAny = (): Promise<unknown> =>
        eventually(async () => {
          const waits = await Promise.all(servers.map((server) => idsAt(server, 'b')))
          expect(waits.flat()).to.have.lengthOf(1)
        })

      for (const count of [2, 3])
        it(`of ${count} servers: all connections end up at one, and calls and takes continue there, with one warning`, async () => {
          let taken = pair.queue.take()
          await waitsAt(old)
          await takeTurns(count)
          for (let round = 0; round < 4; round++) {
            const before = reconnected
            await breakAll()
            await settled()
            // three connections break, follow, and are refused at times: each a few times
            expect(reconnected - before, `reconnections of round ${round}`).to.be.within(1, 30)
            const settledAt = reconnected
            for (let message = 0; message < 5; message++) {
              await pair.delayed.offer(`message ${message}`, 0)
              expect(await taken).to.equal(`message ${message}`)
              taken = pair.queue.take()
            }
            await waitsAtAny()
            expect(reconnected - settledAt, 'reconnections while calls and takes go on').to.equal(0)
          }
          await pair.delayed.offer('the last message', 0)
          expect(await taken).to.equal('the last message')
          expect(warned.filter((code) => code === 'REDELAYED_SERVERS')).to.have.lengthOf(1)
        }).timeout(110_000)
    })
  })

  for (const comparesServers of [true, false])
    it(`the subscriber asks for INFO ${comparesServers ? 'where' : 'only where, and not here,'} its server is compared with those of the other connections`, async function () {
      requireServerBin(this)
      const server = await startRedis()
      onCleanup(() => server.stop())
      const admin = rawTo(server.port)
      await admin.config('RESETSTAT')
      let arrivals = 0
      const topology = {
        address: 'a server',
        comparesServers,
        dedicated: () => new Redis({ port: server.port, ...OVERRIDES, enableReadyCheck: false }),
        arrived: () => arrivals++,
      } as unknown as Topology
      const subscriber = new Subscriber(topology, resolveSettings({}), () => {})
      onCleanup(() => subscriber.close())
      await new Promise<void>((onSubscribed, onError) =>
        subscriber.add('a channel', { onSubscribed, onError, onUnsubscribed: () => {}, onMessage: () => {} }),
      )
      const asked = /cmdstat_info:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1]
      expect({ asked, arrivals }).to.deep.equal(
        comparesServers ? { asked: '1', arrivals: 1 } : { asked: undefined, arrivals: 0 },
      )
    })

  it('a Redis older than 5.0 is refused at the first call', async () => {
    const info = '# Server\r\nredis_version:4.0.9\r\n'
    const stub = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (bytes) => {
        for (const [, command] of bytes.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
          if (command?.toLowerCase() === 'info') socket.write(`$${info.length}\r\n${info}\r\n`)
          else if (command?.toLowerCase() === 'hello') socket.write("-ERR unknown command 'HELLO'\r\n")
          else socket.write('+OK\r\n')
        }
      })
    })
    await new Promise<void>((resolve) => stub.listen(0, '127.0.0.1', resolve))
    onCleanup(() => new Promise((resolve) => stub.close(resolve)))
    const pair = makePair('redisson', { host: '127.0.0.1', port: (stub.address() as AddressInfo).port })
    pair.client.on('error', () => {})
    const wanted = { code: 'ERR_UNSUPPORTED_SERVER', queue: pair.name, says: ['4.0.9', '5.0'] }
    await expectError([UnsupportedServerError, wanted], () => pair.delayed.offer('x', 5))
    await expectError([UnsupportedServerError, wanted], () => pair.queue.size())
  })

  it('a server that is said to be the wrong one while its connection is prepared is not used', async () => {
    let opened = 0
    const link: ReconnectingConnection = new ReconnectingConnection({
      address: 'nowhere',
      role: 'commands',
      open: () => {
        opened++
        return new Redis(redisUrl(), OVERRIDES)
      },
      prepare: async (redis) => {
        await redis.ping()
        if (opened === 1) link.leave((peer) => peer === remoteAddressOf(redis))
      },
      connectTimeout: 5_000,
      emit: () => {},
    })
    onCleanup(() => link.close())
    expect(await (await link.get()).ping()).to.equal('PONG')
    expect(opened).to.equal(2)
  })

  it('names of the connections come from the ioredis options', async () => {
    const connectionName = uniqueName('named').replaceAll(':', '-')
    await expectRoundTrip(makePair('redisson', { ioredis: { connectionName } }))
    await eventually(async () => {
      const list = (await rawClient().call('CLIENT', 'LIST')) as string
      expect(list.split('\n').filter((line) => line.includes(` name=${connectionName} `))).to.have.lengthOf(3)
    })
  })
})
