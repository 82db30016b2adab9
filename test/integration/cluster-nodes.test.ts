import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { createServer, type AddressInfo } from 'node:net'
import { ConnectionError, codecs } from '../../src/index.js'
import { eventually, once, timers } from '../support/events.js'
import { requireServerBin, startCluster } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup, rejection } from './fixtures.js'

const LIMITS = { connectTimeout: 500, commandTimeout: 500 }

// An unhandled rejection or an uncaught exception fails these tests: see test/support/hooks.ts.
describe('nodes of a cluster', () => {
  let timersBefore: number

  before(function () {
    requireServerBin(this)
  })
  beforeEach(async () => {
    await Promise.resolve() // by now mocha has armed its own
    timersBefore = timers()
  })
  afterEach(async () => {
    await cleanUp()
    // ioredis keeps one for two seconds for a connection that it ends when it has ended already
    await eventually(() => expect(timers()).to.be.at.most(timersBefore))
  })

  for (const isBorrowed of [false, true]) {
    const whose = isBorrowed ? 'a Cluster of the user' : 'an own Cluster'
    it(`a slot moves to a node that has died: calls of ${whose} reject, and the process lives`, async function () {
      this.timeout(30_000)
      const setup = await startCluster({ masters: 2 })
      const { nodes, servers } = setup
      onCleanup(() => setup.stop())
      const name = uniqueName()
      const [from, to] = nodes.map(({ port }) => new Redis(port, { retryStrategy: () => null }))
      onCleanup(() => [from, to].forEach((redis) => redis!.disconnect()))
      const slot = await from!.cluster('KEYSLOT', name)
      const isSwapped = slot >= 8_192
      const [source, target] = isSwapped ? [to!, from!] : [from!, to!]
      const [sourceId, targetId] = [await source.cluster('MYID'), await target.cluster('MYID')]

      const own = isBorrowed ? new Cluster(nodes, { lazyConnect: true }) : undefined
      own?.on('error', () => {})
      onCleanup(() => own?.disconnect())
      const client = makeClient({ ...(own === undefined ? { cluster: nodes } : { redis: own }), ...LIMITS })
      const queue = client.getQueue<string>(name, { codec: codecs.string() })
      expect(await queue.size()).to.equal(0)

      await target.cluster('SETSLOT', slot, 'IMPORTING', sourceId)
      await source.cluster('SETSLOT', slot, 'MIGRATING', targetId)
      await servers[isSwapped ? 0 : 1]!.kill()
      for (let i = 0; i < 3; i++) expect(await rejection(queue.size())).to.be.instanceOf(ConnectionError)
    })
  }

  const TABLES = {
    'with slots up to 999,999,999': '*1\r\n*3\r\n:0\r\n:999999999\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n',
    'that is nil': '$-1\r\n',
    'of integers': '*2\r\n:1\r\n:2\r\n',
    'whose nodes are nil': '*1\r\n*3\r\n:0\r\n:16383\r\n$-1\r\n',
  }
  for (const [what, table] of Object.entries(TABLES)) {
    it(`a table of slots ${what} is asked for again, and ends nothing`, async () => {
      let asked = 0
      const server = createServer((socket) => {
        socket.on('error', () => {})
        socket.on('data', (bytes) => {
          for (const command of bytes
            .toString()
            .split(/^\*\d+\r\n/m)
            .slice(1)) {
            const isTable = /slots/i.test(command)
            if (isTable) asked++
            socket.write(isTable ? table : /hello/i.test(command) ? "-ERR unknown command 'HELLO'\r\n" : '+OK\r\n')
          }
        })
        onCleanup(() => socket.destroy())
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      onCleanup(() => server.close())
      const { port } = server.address() as AddressInfo

      const client = makeClient({ cluster: [{ host: '127.0.0.1', port }], ...LIMITS })
      const queue = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
      for (let i = 0; i < 2; i++) expect(await rejection(queue.size())).to.be.instanceOf(ConnectionError)
      expect(asked, 'looks').to.be.at.least(2)
    })
  }
})
