/** Sentinels that name a server which is not the master: the others know better. */
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { createServer, type AddressInfo } from 'node:net'
import { ConnectionError, codecs } from '../../src/index.js'
import { RequestReader } from '../liveness/request-reader.js'
import { once } from '../support/events.js'
import { freePort } from '../support/redis-server.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup, rejection } from './fixtures.js'

const LIMITS = { connectTimeout: 2_000, commandTimeout: 2_000 }

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`

/** Answers commands by a table, others with OK, and passes nothing on. */
async function startFake(replies: Readonly<Record<string, string>>): Promise<number> {
  const server = createServer((socket) => {
    const reader = new RequestReader((command) => void socket.write(replies[command] ?? '+OK\r\n'))
    socket.on('error', () => {})
    socket.on('data', (bytes) => reader.push(bytes))
    onCleanup(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onCleanup(() => server.close())
  return (server.address() as AddressInfo).port
}

const startSentinel = (masterPort: number): Promise<number> =>
  startFake({
    HELLO: "-ERR unknown command 'HELLO'\r\n",
    'SENTINEL GET-MASTER-ADDR-BY-N': `*2\r\n${bulk('127.0.0.1')}${bulk(String(masterPort))}`,
    'SENTINEL SENTINELS': '*0\r\n',
    SUBSCRIBE: `*3\r\n${bulk('subscribe')}${bulk('+switch-master')}:1\r\n`,
    PING: '+PONG\r\n',
  })

const startReplica = (): Promise<number> =>
  startFake({
    HELLO: "-ERR unknown command 'HELLO'\r\n",
    INFO: bulk('redis_version:7.2.0\r\nrun_id:0123\r\nrole:slave\r\n'),
  })

/** One to which commands for queues mean nothing. */
const startNamedSentinel = (): Promise<number> =>
  startFake({
    HELLO: "-ERR unknown command 'HELLO'\r\n",
    INFO: bulk('redis_version:7.2.0\r\nrun_id:0123\r\nredis_mode:sentinel\r\n'),
    EVALSHA: "-ERR unknown command 'evalsha'\r\n",
    SUBSCRIBE: `*3\r\n${bulk('subscribe')}${bulk('x')}:1\r\n`,
    PING: '+PONG\r\n',
  })

const startNil = (): Promise<number> => startFake({ HELLO: "-ERR unknown command 'HELLO'\r\n", INFO: '$-1\r\n' })

describe('Sentinels that lie', function () {
  this.timeout(30_000)
  afterEach(cleanUp)

  it('a url leads to a sentinel: the error reports it', async () => {
    const client = makeClient({ host: '127.0.0.1', port: await startNamedSentinel(), connectTimeout: 300 })
    const error = await rejection(client.getQueue(uniqueName()).size())
    expect(error).to.be.instanceOf(ConnectionError)
    expect(error.message).to.include('this is a sentinel')
  })

  const WRONG: Readonly<Record<string, () => Promise<number>>> = {
    'a dead server': freePort,
    'a replica': startReplica,
    'a sentinel': startNamedSentinel,
    'a server whose INFO is nil': startNil,
  }
  for (const [what, start] of Object.entries(WRONG)) {
    // a client of the user stays at a sentinel, and ends the process after a nil: both are up to ioredis
    for (const isBorrowed of start === startNamedSentinel || start === startNil ? [false] : [false, true]) {
      const whose = isBorrowed ? ', with a client of the user' : ''
      it(`the first one names ${what}: the client asks the others${whose}`, async () => {
        const { port } = new URL(redisUrl())
        const wrong = await start()
        const ports = await Promise.all([wrong, Number(port), Number(port)].map(startSentinel))
        const sentinels = ports.map((each) => ({ host: '127.0.0.1', port: each }))
        const lent = isBorrowed ? new Redis({ sentinels, name: 'the-master' }) : undefined
        lent?.on('error', () => {})
        onCleanup(() => lent?.disconnect())
        const client = makeClient({
          ...(lent === undefined ? { sentinels, name: 'the-master' } : { redis: lent }),
          ...LIMITS,
        })
        const name = uniqueName()
        const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
        const delayed = client.getDelayedQueue(queue)
        client.on('error', () => {})
        await delayed.offer('there and back', 20)
        expect(await queue.poll(5_000)).to.equal('there and back')
      })
    }
  }
})
