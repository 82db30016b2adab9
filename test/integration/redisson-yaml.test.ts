import { javaCodecs, createClientFromRedissonYaml, type RedissonYamlOptions } from '../../src/java/index.js'
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RedelayedClient } from '../../src/index.js'
import { requireServerBin, startCluster, startRedis, startSentinel } from '../support/redis-server.js'
import { startProxy } from '../support/tcp-proxy.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, onCleanup, rawTo } from './fixtures.js'

describe('createClientFromRedissonYaml', function () {
  before(function () {
    requireServerBin(this)
  })
  afterEach(cleanUp)

  const quiet = { onWarning: () => {} }

  function fromYaml(text: string, options: RedissonYamlOptions = quiet): RedelayedClient {
    const client = createClientFromRedissonYaml(text, options)
    onCleanup(() => client.shutdown())
    return client
  }

  async function roundTrip(client: RedelayedClient, name = uniqueName()): Promise<void> {
    const queue = client.getBlockingQueue<string>(name)
    const waiting = queue.take()
    await client.getDelayedQueue(queue).offer('münz', 20)
    expect(await waiting).to.equal('münz')
  }

  it('a file with a password, a database, a codec, variables and a name mapper', async () => {
    const server = await startRedis({ args: ['--requirepass', 'geheim: "x"'] })
    onCleanup(() => server.stop())
    const folder = mkdtempSync(join(tmpdir(), 'redelayed-yaml-'))
    onCleanup(() => rmSync(folder, { recursive: true }))
    const path = join(folder, 'redisson.yaml')
    writeFileSync(
      path,
      `
singleServerConfig:
  address: "redis://127.0.0.1:\${REDIS_PORT}"
  password: \${REDIS_PASSWORD}
  database: \${REDIS_DB:-3}
  clientName: orders-service
  connectionPoolSize: 64
  nameMapper: !<com.acme.TenantMapper> {}
codec: !<org.redisson.client.codec.StringCodec> {}
threads: 16
`,
    )
    const warnings: string[] = []
    const client = fromYaml(path, {
      variables: { REDIS_PORT: String(server.port), REDIS_PASSWORD: 'geheim: "x"' },
      nameMappers: { 'com.acme.TenantMapper': { map: (name) => `t:${name}`, unmap: (name) => name.slice(2) } },
      onWarning: (warning) => warnings.push(warning),
    })
    await roundTrip(client)
    await client.getQueue<string>('plain').offer('as text')
    const plain = rawTo(server.port, { password: 'geheim: "x"', db: 3 })
    expect(await plain.lrange('t:plain', 0, -1)).to.deep.equal(['as text'])
    expect(await plain.client('LIST')).to.include('name=orders-service')
    expect(warnings).to.have.length(2)
  })

  it('without a codec in the file: Kryo 5, as the Java side', async () => {
    const server = await startRedis()
    onCleanup(() => server.stop())
    const client = fromYaml(`singleServerConfig: { address: "redis://127.0.0.1:${server.port}" }`)
    await client.getQueue<string>('q').offer('hello')
    const bytes = await rawTo(server.port).lindexBuffer('q', 0)
    expect(javaCodecs.kryo5().decode(bytes!)).to.equal('hello')
  })

  it('Sentinel', async () => {
    const setup = await startSentinel()
    onCleanup(() => setup.stop())
    const addresses = setup.sentinels.map(({ host, port }) => `"redis://${host}:${port}"`)
    await roundTrip(
      fromYaml(`sentinelServersConfig: { sentinelAddresses: [${addresses.join(', ')}], masterName: ${setup.name} }`),
    )
  }).timeout(30_000)

  it('replicated, and master and slaves', async () => {
    const [replica, master] = [await startRedis(), await startRedis()]
    onCleanup(() => Promise.all([replica.stop(), master.stop()]))
    await rawTo(replica.port).call('REPLICAOF', '127.0.0.1', master.port)
    const [first, second] = [replica, master].map(({ port }) => `redis://127.0.0.1:${port}`)
    await roundTrip(fromYaml(`replicatedServersConfig:\n  nodeAddresses:\n  - "${first}"\n  - "${second}"\n`))
    await roundTrip(fromYaml(`masterSlaveServersConfig: { masterAddress: "${second}", slaveAddresses: ["${first}"] }`))
  })

  it('a cluster whose nodes announce addresses that only a NAT map makes reachable', async () => {
    const setup = await startCluster()
    onCleanup(() => setup.stop())
    const proxies = await Promise.all(setup.nodes.map(({ port }) => startProxy({ targetPort: port })))
    onCleanup(() => Promise.all(proxies.map((proxy) => proxy.stop())))
    const map = setup.nodes.map(({ port }, index) => `"127.0.0.1:${port}": "127.0.0.1:${proxies[index]!.port}"`)
    const client = fromYaml(`
clusterServersConfig:
  nodeAddresses: ["redis://127.0.0.1:${proxies[0]!.port}"]
  natMapper: !<org.redisson.config.HostPortNatMapper> { hostsPortMap: { ${map.join(', ')} } }
`)
    // the slot of a queue is drawn: 12 of them miss one of three masters in one run of 43
    for (let queues = 0; queues < 200 && proxies.some(({ accepted }) => accepted === 0); queues++)
      await roundTrip(client)
    for (const proxy of proxies) expect(proxy.accepted).to.be.greaterThan(0)
  }).timeout(30_000)
}).timeout(20_000)
