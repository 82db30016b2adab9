/** Sentinels that name a server which is not the master: the others know better. */
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { createHook } from 'node:async_hooks'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { ConnectionError, codecs } from '../../src/index.js'
import { RequestReader } from '../liveness/request-reader.js'
import type { ClientOptions, WarningEvent } from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { freePort, requireServerBin, startRedis } from '../support/redis-server.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import {
  cleanUp,
  connectionsNamed,
  expectRoundTrip,
  makeClient,
  makePair,
  onCleanup,
  rawTo,
  rejection,
  type Pair,
} from './fixtures.js'

const LIMITS = { connectTimeout: 2_000, commandTimeout: 2_000 }

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`

/** Answers the commands of each connection by a table of its own, others with OK, and passes nothing on. */
async function startFakes(tableOf: (socket: Socket) => (command: string) => string | undefined): Promise<number> {
  const server = createServer((socket) => {
    const replyTo = tableOf(socket)
    const reader = new RequestReader((command) => void socket.write(replyTo(command) ?? '+OK\r\n'))
    socket.on('error', () => {})
    socket.on('data', (bytes) => reader.push(bytes))
    onCleanup(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onCleanup(() => server.close())
  return (server.address() as AddressInfo).port
}

const startFake = (replies: Readonly<Record<string, string>>): Promise<number> =>
  startFakes(() => (command) => replies[command])

/** The channels to which a client subscribes on a connection to a sentinel, in this order. */
const CHANNELS = ['+switch-master', '+monitor']

const startSentinel = (masterPort: number): Promise<number> =>
  startFakes(() => {
    const channels = CHANNELS.values()
    return (command) => {
      const replies: Record<string, string> = {
        HELLO: "-ERR unknown command 'HELLO'\r\n",
        'SENTINEL GET-MASTER-ADDR-BY-N': `*2\r\n${bulk('127.0.0.1')}${bulk(String(masterPort))}`,
        'SENTINEL SENTINELS': '*0\r\n',
        PING: '+PONG\r\n',
      }
      if (command !== 'SUBSCRIBE') return replies[command]
      return `*3\r\n${bulk('subscribe')}${bulk(String(channels.next().value))}:1\r\n`
    }
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

/** Sentinels whose answers a test changes: those to connections that ask once, and those to connections with a subscription, whose questions and pings each of them counts. */
class Sentinels {
  readonly named: number[]
  readonly namedToSubscribers: number[]
  /** What each names in its next answer to a connection with a subscription. */
  readonly namedOnce: (number | undefined)[] = []
  refuseHello = false
  readonly asked = [0, 0, 0]
  readonly #subscribers: readonly Set<Socket>[] = [new Set(), new Set(), new Set()]
  #ports: readonly number[] = []

  private constructor(master: number) {
    this.named = [master, master, master]
    this.namedToSubscribers = [master, master, master]
  }

  static async start(master: number): Promise<Sentinels> {
    const made = new Sentinels(master)
    made.#ports = await Promise.all(made.asked.map((_, at) => made.#start(at)))
    return made
  }

  /** A client of these, whose connections have a name; `lost` are its events when connections break. */
  async pair(connectionName: string, options: ClientOptions = {}): Promise<Pair & { readonly lost: unknown[] }> {
    const sentinels = this.#ports.map((port) => ({ host: '127.0.0.1', port }))
    const ioredis = { ...options.ioredis, connectionName }
    const pair = makePair('redisson', { sentinels, name: 'the-master', pingInterval: 100, ...options, ioredis })
    await expectRoundTrip(pair)
    await this.ask(1)
    const lost: unknown[] = []
    pair.client.on('reconnecting', (event) => lost.push(event))
    return { ...pair, lost }
  }

  /** One of them says that there is another master. */
  announce(at: number, host: string, port: number): void {
    const message = `the-master 127.0.0.1 1 ${host} ${port}`
    for (const socket of this.#subscribers[at] ?? [])
      socket.write(`>3\r\n${bulk('message')}${bulk('+switch-master')}${bulk(message)}`)
  }

  /** Resolves when each has answered a connection with a subscription so many times. */
  async ask(times: number): Promise<void> {
    const before = [...this.asked]
    await eventually(() => this.asked.forEach((count, at) => expect(count).to.be.at.least((before[at] ?? 0) + times)))
  }

  #start(at: number): Promise<number> {
    return startFakes((socket) => {
      let [isSubscriber, isResp3] = [false, false]
      const channels = CHANNELS.values()
      return (command) => {
        if (command === 'SUBSCRIBE') {
          isSubscriber = true
          this.#subscribers[at]?.add(socket)
        }
        if (command === 'HELLO') isResp3 = !this.refuseHello
        const isAsked = command.startsWith('SENTINEL GET')
        if (isSubscriber && (command === 'PING' || isAsked)) this.asked[at]!++
        const usual = (isSubscriber ? this.namedToSubscribers : this.named)[at]
        const port = String((isSubscriber && isAsked ? this.namedOnce[at] : undefined) ?? usual)
        if (isSubscriber && isAsked) this.namedOnce[at] = undefined
        const replies: Record<string, string> = {
          HELLO: isResp3 ? `%1\r\n${bulk('proto')}:3\r\n` : "-ERR unknown command 'HELLO'\r\n",
          'SENTINEL GET-MASTER-ADDR-BY-N': `*2\r\n${bulk('127.0.0.1')}${bulk(port)}`,
          'SENTINEL SENTINELS': '*0\r\n',
          PING: isSubscriber && !isResp3 ? `*2\r\n${bulk('pong')}${bulk('')}` : '+PONG\r\n',
        }
        if (command !== 'SUBSCRIBE') return replies[command]
        return `${isResp3 ? '>' : '*'}3\r\n${bulk('subscribe')}${bulk(String(channels.next().value))}:1\r\n`
      }
    })
  }
}

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

  describe('for a while', () => {
    let other: number
    let connectionName: string
    let sentinels: Sentinels
    const master = Number(new URL(redisUrl()).port)
    /** In the first three seconds no answers count. */
    const LAG_ASKS = 32

    before(function () {
      requireServerBin(this)
    })
    beforeEach(async () => {
      const server = await startRedis()
      onCleanup(() => server.stop())
      other = server.port
      connectionName = uniqueName('lied-to')
      sentinels = await Sentinels.start(master)
    })

    const connectionsAt = (port: number): Promise<string[]> => connectionsNamed(connectionName, rawTo(port))

    async function cutAt(port: number): Promise<void> {
      for (const line of await connectionsAt(port)) {
        const [, id = ''] = /^id=(\d+)/.exec(line) ?? []
        await rawTo(port).client('KILL', 'ID', id)
      }
    }

    for (const how of ['protocol 3', 'protocol 2', 'a HELLO that they refuse at the start'])
      it(`and announce nothing: the client returns from the other server, with its waits, by ${how}`, async () => {
        sentinels.refuseHello = how.startsWith('a HELLO')
        const options = how === 'protocol 2' ? { ioredis: { protocol: 2 } } : {}
        const { delayed, queue } = await sentinels.pair(connectionName, options)
        sentinels.refuseHello = false
        const waiting = queue.take()
        const allAt = (port: number, left: number) =>
          eventually(async () => {
            expect(await connectionsAt(left), 'at the server that it left').to.deep.equal([])
            expect((await connectionsAt(port)).join('\n'))
              .to.include('cmd=blmpop')
              .and.include('sub=1')
          }, 8_000)
        await eventually(async () => expect((await connectionsAt(master)).join('\n')).to.include('cmd=blmpop'))
        sentinels.named.fill(other)
        sentinels.namedToSubscribers.fill(other)
        await cutAt(master)
        await allAt(other, master)
        sentinels.named.fill(master)
        sentinels.namedToSubscribers.fill(master)
        await allAt(master, other)
        await delayed.offer('at the master', 10)
        expect(await waiting).to.equal('at the master')
      })

    it('one of three: no connection ends', async () => {
      const { lost } = await sentinels.pair(connectionName)
      await sentinels.ask(LAG_ASKS)
      sentinels.named[2] = sentinels.namedToSubscribers[2] = other
      await sentinels.ask(8)
      expect(lost).to.deep.equal([])
    })

    it('all at once, but each in one answer only: no connection ends', async () => {
      const { lost } = await sentinels.pair(connectionName)
      await sentinels.ask(LAG_ASKS)
      sentinels.namedOnce.splice(0, 3, other, other, other)
      await sentinels.ask(LAG_ASKS + 8)
      expect(sentinels.namedOnce).to.deep.equal([undefined, undefined, undefined])
      expect(lost).to.deep.equal([])
    })

    it('to those that ask again: connections to the master end less and less often, with one warning', async () => {
      const pair = await sentinels.pair(connectionName)
      const warnings: WarningEvent[] = []
      pair.client.on('warning', (event) => warnings.push(event))
      sentinels.namedToSubscribers.fill(await freePort())
      await eventually(() => expect(warnings).to.have.lengthOf(1), 10_000)
      await sentinels.ask(20)
      expect(warnings.map(({ code }) => code)).to.deep.equal(['REDELAYED_SERVERS'])
      expect(warnings[0]!.message).to.include('natMap')
      // after 0, 0.2, 0.6, 1.4 and 3 s, each of up to three connections
      expect(pair.lost).to.have.lengthOf.within(2, 15)
      await expectRoundTrip(pair)
    })

    it('to those that ask again, of a master with a name: no connection ends, because a name can have other addresses each time', async () => {
      const port = await freePort()
      const natMap = { [`127.0.0.1:${port}`]: { host: 'localhost', port } }
      const { lost } = await sentinels.pair(connectionName, { ioredis: { natMap } })
      await sentinels.ask(LAG_ASKS)
      sentinels.namedToSubscribers.fill(port)
      await sentinels.ask(8)
      expect(lost).to.deep.equal([])
    })

    it('by a name, and then name the master: no connection ends', async () => {
      const { lost } = await sentinels.pair(connectionName)
      sentinels.announce(0, 'localhost', other) // is looked up while the next one comes
      sentinels.announce(0, '127.0.0.1', master)
      await sentinels.ask(5)
      expect(lost).to.deep.equal([])
    })

    it('with a flood of announced names: the process looks up few of them', async () => {
      const { lost } = await sentinels.pair(connectionName)
      let lookups = 0
      const hook = createHook({ init: (_id, type) => void (type === 'GETADDRINFOREQWRAP' && lookups++) }).enable()
      onCleanup(() => void hook.disable())
      for (let n = 0; n < 2_000; n++) sentinels.announce(0, `name-${n}.invalid`, 6379)
      await sentinels.ask(3)
      expect(lookups).to.be.within(1, 100)
      expect(lost).to.deep.equal([])
    })
  })
})
