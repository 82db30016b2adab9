import { expect } from 'chai'
import type { ReconnectingEvent } from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { requireServerBin, startCluster, type ClusterSetup, type RedisServer } from '../support/redis-server.js'
import { cleanUp, makePair, onCleanup, rawTo, type Pair } from './fixtures.js'

const NO_SWEEP = { sweepInterval: 3_600_000 }
const LATER = 600_000
/** For connections to servers that are killed. */
const MORTAL = { retryStrategy: () => null }

describe('Cluster, a master and its replica', function () {
  let setup: ClusterSetup
  let master: RedisServer
  let replica: RedisServer
  let timersBefore: number

  this.timeout(40_000)
  before(function () {
    requireServerBin(this)
  })
  beforeEach(async () => {
    await Promise.resolve() // by now mocha has armed its own
    timersBefore = timers()
    setup = await startCluster({ masters: 1, replicas: 1 })
    onCleanup(() => setup.stop())
    ;[master, replica] = setup.servers as [RedisServer, RedisServer]
    // with the replica among its nodes ioredis goes on believing in the cluster when the master is gone; a replica is
    // listed from the first write on
    const plain = rawTo(master.port, MORTAL)
    await plain.set('a write', '')
    for (const { port } of setup.nodes) {
      const node = rawTo(port, MORTAL)
      await eventually(async () => expect((await node.cluster('SLOTS'))[0]).to.have.lengthOf(4), 15_000)
    }
  })
  afterEach(async () => {
    await cleanUp()
    // that which ioredis sets for a subscriber of its own whose node has died
    await eventually(() => expect(timers()).to.be.at.most(timersBefore))
  })

  /** A client that does nothing by itself, with connections to the master. */
  async function idle(): Promise<Pair> {
    // told of the master alone, so that ioredis never connects to the replica, and does not notice when it dies
    const pair = makePair('list', { cluster: setup.nodes.slice(0, 1), connectTimeout: 1_000, ...NO_SWEEP })
    const subscribed = once(pair.client, 'subscribed')
    await pair.delayed.offer('connected', LATER)
    await subscribed
    return pair
  }

  /** Resolves when the client has tried so often in a row to open this connection. */
  const tried = ({ client }: Pair, wanted: ReconnectingEvent['connection'], times: number) =>
    once<ReconnectingEvent>(
      client,
      'reconnecting',
      ({ connection, attempt }) => connection === wanted && attempt >= times,
      15_000,
    )

  const takeOver = () => eventually(() => rawTo(replica.port).cluster('FAILOVER', 'TAKEOVER'))

  it('when the replica takes over, an idle subscriber finds it', async () => {
    const pair = await idle()
    const missed = tried(pair, 'subscriber', 3)
    await master.kill('SIGKILL')
    await missed
    const again = once(pair.client, 'subscribed', undefined, 10_000)
    await takeOver()
    await again
    const channels = await rawTo(replica.port).pubsub('CHANNELS', pair.keys.channel)
    expect(channels).to.deep.equal([pair.keys.channel])
  })

  it('when no master was known for a while, an idle subscriber comes back with the servers', async () => {
    const pair = await idle()
    const missed = tried(pair, 'subscriber', 2)
    await Promise.all(setup.servers.map((server) => server.kill('SIGKILL')))
    await missed
    const again = once(pair.client, 'subscribed', undefined, 10_000)
    await Promise.all(setup.servers.map((server) => server.restart()))
    await again
  })
})

/** How many keep the process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
}
