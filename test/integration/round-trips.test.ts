import { expect } from 'chai'
import { codecs, type ClientOptions } from '../../src/index.js'
import { requireServerBin, startCluster, startRedis } from '../support/redis-server.js'
import { startReplica } from '../support/replicas.js'
import { once } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, onCleanup, rawTo } from './fixtures.js'

/** Each way. Opening a connection and asking for the slots takes two round trips, longer than the second that ioredis gives them. */
const DELAY_MS = 300

describe('Long round trips', function () {
  this.timeout(60_000)
  before(function () {
    requireServerBin(this)
  })
  afterEach(cleanUp)

  async function proxiesOf(ports: readonly number[], delayMs = DELAY_MS): Promise<TcpProxy[]> {
    const proxies = await Promise.all(ports.map((targetPort) => startProxy({ targetPort })))
    for (const proxy of proxies) {
      onCleanup(() => proxy.stop())
      proxy.delay(delayMs)
    }
    return proxies
  }

  async function delivers(options: ClientOptions): Promise<void> {
    const client = makeClient({ connectTimeout: 25_000, commandTimeout: 25_000, ...options })
    const queue = client.getBlockingQueue<string>(uniqueName(), { codec: codecs.string() })
    await client.getDelayedQueue(queue).offer('a', 10)
    expect(await queue.poll(25_000)).to.equal('a')
  }

  async function startProxiedCluster(delayMs: number) {
    const setup = await startCluster({ masters: 2 })
    onCleanup(() => setup.stop())
    const ports = setup.nodes.map(({ port }) => port)
    const proxies = await proxiesOf(ports, delayMs)
    const at = proxies.map(({ port }) => ({ host: '127.0.0.1', port }))
    const natMap = Object.fromEntries(ports.map((port, i) => [`127.0.0.1:${port}`, at[i]]))
    return { proxies, options: { cluster: at, ioredis: { natMap } } }
  }

  it('a cluster is found and used', async () => {
    const { options } = await startProxiedCluster(DELAY_MS)
    await delivers(options)
  })

  it('the nodes of a cluster that answer are used while another one is silent', async () => {
    const { proxies, options } = await startProxiedCluster(0)
    proxies[0]!.muteNew('accept')
    const client = makeClient({ connectTimeout: 25_000, commandTimeout: 25_000, ...options })
    // slot 12182, which the second node has
    expect(await client.getQueue<string>('foo', { codec: codecs.string() }).size()).to.equal(0)
  })

  it('the master of replicated nodes is found and used', async () => {
    const master = await startRedis()
    onCleanup(() => master.stop())
    const replica = await startReplica(master)
    onCleanup(() => replica.stop())
    const proxies = await proxiesOf([master.port, replica.port])
    await delivers({ replicated: proxies.map(({ port }) => ({ host: '127.0.0.1', port })) })
  })

  it('a replica that becomes the master is found although another node is silent', async () => {
    const master = await startRedis()
    onCleanup(() => master.stop())
    const replica = await startReplica(master)
    onCleanup(() => replica.stop())
    const [silent] = await proxiesOf([master.port], 0)
    silent!.muteNew('accept')
    // the silent node is awaited for longer than the test may take
    const client = makeClient({
      replicated: [silent!, replica].map(({ port }) => ({ host: '127.0.0.1', port })),
      connectTimeout: 300_000,
    })
    const size = client.getQueue<string>(uniqueName(), { codec: codecs.string() }).size()
    await once(silent!.events, 'muted')
    await rawTo(replica.port).replicaof('NO', 'ONE')
    expect(await size).to.equal(0)
  })

  it('the master of replicated nodes is found behind one that refuses at once', async () => {
    const master = await startRedis()
    onCleanup(() => master.stop())
    const replica = await startReplica(master)
    onCleanup(() => replica.stop())
    const [far] = await proxiesOf([master.port])
    const [near] = await proxiesOf([replica.port], 0)
    await delivers({ replicated: [near!, far!].map(({ port }) => ({ host: '127.0.0.1', port })) })
  })
})
