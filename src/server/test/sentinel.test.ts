import { expect } from 'chai'
import { Redis } from 'ioredis'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RequestReader } from '../../../test/liveness/request-reader.js'
import { requireServerBin, startSentinel, type SentinelSetup } from '../../../test/support/redis-server.js'
import { loadSettings } from '../config/load-settings.js'
import { connectOptionsOf, plainClient } from '../service/connections.js'
import { startService } from '../service/service.js'
import { eventually } from './support/eventually.js'
import { startTestService, type TestService } from './support/service.js'

describe('a service that finds Redis through sentinels', function () {
  this.timeout(180_000)
  let setup: SentinelSetup
  let dir: string
  let from: Pick<ReturnType<typeof loadSettings>, 'redis' | 'redisSentinels'>

  before(async function () {
    requireServerBin(this)
    setup = await startSentinel()
    dir = mkdtempSync(join(tmpdir(), 'redelayed-sentinels-'))
    for (const { port } of setup.servers) await addUser(port, 'worker', ['~*', '&*', '+@all'])
    for (const { port } of setup.sentinelServers) await addUser(port, 'watcher', ['+@all', '&*'])
    const file = (name: string, text: string): string => {
      writeFileSync(join(dir, name), `${text}\n`)
      return join(dir, name)
    }
    const urls = setup.sentinels.map(({ host, port }) => `redis://watcher:s%23cret@${host}:${port}`)
    const { redis, redisSentinels } = loadSettings({
      env: {
        REDELAYED_REDIS_FILE: file('redis', `redis://worker:s%23cret@${setup.name}/3`),
        REDELAYED_REDIS_SENTINELS_FILE: file('sentinels', urls.join(',')),
      },
    })
    from = { redis, redisSentinels }
  })
  after(async () => {
    await setup?.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  async function addUser(port: number, name: string, rights: readonly string[]): Promise<void> {
    await asking(port, (admin) => admin.call('ACL', 'SETUSER', name, 'on', '>s#cret', ...rights))
  }
  async function asking<T>(port: number, ask: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(port)
    try {
      return await ask(redis)
    } finally {
      redis.disconnect()
    }
  }
  /** The users of all connections to a server but those of this test, of the sentinels and of replicas. */
  const usersAt = async (port: number): Promise<Set<string>> => {
    const list = (await asking(port, (admin) => admin.call('CLIENT', 'LIST'))) as string
    return new Set(Array.from(list.matchAll(/ user=(\S+)/g), ([, user = '']) => user))
  }

  async function worksAt(server: TestService, topic: string, id: string): Promise<void> {
    const pushed = await server.ask('POST', `/v1/topics/${topic}/messages`, {
      id,
      delay: 10,
      body: id,
      existing: 'keep',
    })
    expect(pushed.status).to.be.oneOf([200, 201])
    const { status, body } = await server.ask('POST', `/v1/topics/${topic}/receive`, { wait: 2_000 })
    expect(status).to.equal(200)
    expect(body.messages.map((message) => message.id)).to.deep.equal([id])
    const leases = body.messages.map(({ lease }) => lease)
    expect((await server.ask('POST', '/v1/leases/acknowledge', { leases })).status).to.equal(200)
    // the log of deliveries is read by the plain client
    const endpoint = await server.ask('POST', '/v1/endpoints', { url: 'https://example.com/hook' })
    expect(endpoint.status).to.equal(201)
    expect((await server.ask('GET', `/v1/endpoints/${endpoint.body.id}/deliveries`)).status).to.equal(200)
    const doctor = await server.ask('GET', '/v1/doctor')
    expect(doctor.status, JSON.stringify(doctor.body)).to.equal(200)
  }

  it('works with its users and database, and goes on after a failover', async () => {
    const server = await startTestService(from)
    try {
      const topic = server.topic()
      await worksAt(server, topic, 'before')
      const master = await setup.masterPort()
      expect(await usersAt(master)).to.include('worker')
      expect(await asking(master, (admin) => admin.info('keyspace')), 'database 3 only')
        .to.match(/^db3:/m)
        .and.not.match(/^db[^3]:/m)
      const watched = await Promise.all(setup.sentinels.map(({ port }) => usersAt(port)))
      expect(watched.some((users) => users.has('watcher'))).to.equal(true)

      await setup.failover()
      expect(await setup.masterPort()).to.not.equal(master)
      await eventually(() => worksAt(server, topic, 'after'), 60_000)
    } finally {
      await server.stop()
    }
  })

  it('starts through the other sentinels when the first is away, and not with a name that they do not have', async () => {
    const server = await startTestService({ ...from, redisSentinels: ['redis://127.0.0.1:1', ...from.redisSentinels] })
    try {
      expect((await server.ask('GET', '/readyz')).status).to.equal(200)
    } finally {
      await server.stop()
    }
    const other = { ...loadSettings({}), ...from, redis: 'redis://another', dataDir: dir, port: 0 }
    const thrown = await startService(other, '0.0.0', join(dir, 'none')).then(
      async (service) => service.close(),
      (error: unknown) => error,
    )
    expect(String(thrown)).to.match(/sentinel/i)
  })

  it('shows the queues of the master with --read-only', async () => {
    const server = await startTestService({ ...from, readOnly: true })
    try {
      expect((await server.ask('GET', '/v1/queues')).status).to.equal(200)
    } finally {
      await server.stop()
    }
  })

  it('prints nothing while a sentinel cannot be reached', async () => {
    let refused = 0
    const away = createServer((socket) => {
      refused++
      socket.resetAndDestroy()
    })
    await new Promise<void>((resolve) => away.listen(0, '127.0.0.1', resolve))
    const { port } = away.address() as AddressInfo
    const printed: string[] = []
    const write = process.stderr.write.bind(process.stderr)
    process.stderr.write = (text: string | Uint8Array) => printed.push(String(text)) > 0
    try {
      const server = await startTestService({
        ...from,
        redisSentinels: [...from.redisSentinels, `redis://127.0.0.1:${port}`],
      })
      try {
        await server.ask('GET', '/readyz')
        const before = refused
        await eventually(() => expect(refused).to.be.greaterThan(before + 5))
      } finally {
        await server.stop()
      }
    } finally {
      process.stderr.write = write
      away.close()
    }
    expect(printed).to.deep.equal([])
  })

  it('does not write to an old master that has not learned of the failover', async () => {
    await setup.agreed()
    const { redis, close } = plainClient({ ...from, redisCluster: [] }, undefined)
    const client = redis as Redis
    try {
      const old = await setup.masterPort()
      await client.set('where', '1')
      expect(client.stream.remotePort).to.equal(old)
      await setup.promote()
      const now = await setup.masterPort()
      // the sentinels demote the old one after 10 s
      await eventually(async () => {
        await client.set('where', '2')
        expect(client.stream.remotePort).to.equal(now)
      }, 5_000)
      expect(await asking(old, (admin) => admin.call('ROLE'))).to.have.property('0', 'master')
    } finally {
      close()
    }
    await setup.agreed()
  })

  for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
    it(`goes on at another master after ${signal} of the one that it uses`, async () => {
      const server = await startTestService(from)
      try {
        const topic = server.topic()
        await worksAt(server, topic, 'before')
        const port = await setup.masterPort()
        const master = setup.servers.find((each) => each.port === port)!
        master.process.kill(signal)
        try {
          await eventually(() => worksAt(server, topic, 'after'), 60_000)
          expect(await setup.masterPort()).to.not.equal(port)
        } finally {
          master.process.kill('SIGCONT')
        }
        if (signal === 'SIGSTOP') await setup.agreed()
      } finally {
        await server.stop()
      }
    })
  }
})

describe('the plain client of a service, with sentinels', () => {
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })

  /** Answers commands by a table, and others with OK. */
  async function startFake(replies: Readonly<Record<string, string>>): Promise<number> {
    const server = createServer((socket) => {
      const reader = new RequestReader((command) => void socket.write(replies[command] ?? '+OK\r\n'))
      socket.on('error', () => undefined)
      socket.on('data', (bytes) => reader.push(bytes))
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }
  const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`
  const startNaming = (port: number): Promise<number> =>
    startFake({
      'SENTINEL GET-MASTER-ADDR-BY-N': `*2\r\n${bulk('127.0.0.1')}${bulk(String(port))}`,
      'SENTINEL SENTINELS': '*0\r\n',
    })

  it('asks the next sentinel when the server that one names answers INFO with nil', async () => {
    const wrong = await startFake({ INFO: '$-1\r\n' })
    const right = await startFake({ INFO: bulk('role:master\r\n'), GET: bulk('here') })
    const redisSentinels = await Promise.all(
      [wrong, right].map(async (port) => `redis://127.0.0.1:${await startNaming(port)}`),
    )
    const { redis, close } = plainClient({ redis: 'redis://orders', redisSentinels, redisCluster: [] }, undefined)
    redis.on('error', () => undefined)
    try {
      expect(await redis.get('where')).to.equal('here')
    } finally {
      close()
    }
  })
})

describe('the way of the settings to a master that sentinels know', () => {
  const optionsOf = (redis: string, ...redisSentinels: string[]): object =>
    connectOptionsOf({ redis, redisSentinels, redisCluster: [] }, undefined)
  const encrypted = { tls: {}, enableTLSForSentinelMode: true }

  it('has the accounts, ports and database of both', () => {
    expect(
      optionsOf('redis://ada:a%40b@Orders_1/2', 'redis://:s%23@10.0.0.1', 'redis://:s%23@[::1]:26380'),
    ).to.deep.equal({
      ...{ name: 'Orders_1', username: 'ada', password: 'a@b', db: 2, sentinelPassword: 's#' },
      sentinels: [
        { host: '10.0.0.1', port: 26_379 },
        { host: '::1', port: 26_380 },
      ],
      ioredis: { sentinelTLS: undefined },
    })
  })

  it('encrypts the connections to the servers, to the sentinels, or both', () => {
    expect(optionsOf('rediss://orders', 'redis://a')).to.have.deep.property('ioredis', {
      ...encrypted,
      sentinelTLS: undefined,
    })
    expect(optionsOf('redis://orders', 'rediss://a')).to.have.deep.property('ioredis', { sentinelTLS: {} })
    expect(optionsOf('rediss://orders', 'rediss://a')).to.have.deep.property('ioredis', {
      ...encrypted,
      sentinelTLS: {},
    })
  })
})
