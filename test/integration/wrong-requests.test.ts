import { expect } from 'chai'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { DurabilityError, codecs, type ClientOptions, type ReconnectingEvent } from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup, rawKeys } from './fixtures.js'

/** The changed form of a request; the proxy changes one. */
type Change = (request: string) => string
type Role = ReconnectingEvent['connection']

/** The database of the client's options, and the one that one changed byte selects. */
const [WANTED, WRONG] = [2, 3]
const selectsWrong: Change = (request) => request.replace(/(\r\nselect\r\n\$1\r\n)\d/i, `$1${WRONG}`)
const CLIENT_INFO = /\r\nCLIENT\r\n\$4\r\nINFO\r\n/i

/** In front of the Redis of the tests. */
async function startRequestProxy() {
  const { hostname, port } = new URL(redisUrl())
  const sockets = new Set<Socket>()
  const state = { port: 0, pieces: [] as string[], change: undefined as Change | undefined, changed: 0 }
  const server = createServer((client) => {
    const upstream = connect({ port: Number(port || 6379), host: hostname })
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
    upstream.pipe(client)
    client.on('data', (bytes) => {
      const request = bytes.toString('latin1')
      state.pieces.push(request)
      const changed = state.change?.(request) ?? request
      if (changed === request) return void upstream.write(bytes)
      state.change = undefined
      state.changed++
      upstream.write(changed, 'latin1')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanup(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  state.port = (server.address() as AddressInfo).port
  return state
}

describe('A wrong byte in a request', () => {
  afterEach(cleanUp)

  async function setUp(options: ClientOptions = {}) {
    const proxy = await startRequestProxy()
    const client = makeClient({ host: '127.0.0.1', port: proxy.port, db: WANTED, consumersDeliver: false, ...options })
    const refused: Role[] = []
    client.on('error', () => {})
    client.on('reconnecting', ({ connection, error }) => {
      if (/is at database 3 and not at 2$/.test(String(error?.message))) refused.push(connection)
    })
    const name = uniqueName()
    const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
    const delayed = client.getDelayedQueue(queue, { deliver: false })
    return { proxy, name, queue, delayed, refused }
  }

  async function answersClientInfo(): Promise<boolean> {
    return rawClient()
      .call('CLIENT', 'INFO')
      .then(
        () => true,
        () => false,
      )
  }

  const uses: Record<'commands' | 'blocking' | 'durable', (on: Awaited<ReturnType<typeof setUp>>) => Promise<unknown>> =
    {
      commands: ({ queue }) => queue.offer('it'),
      blocking: ({ queue }) => queue.take(),
      durable: ({ delayed }) => delayed.offer('it', 600_000, { durability: { replicas: 1, timeoutMs: 1 } }),
    }
  for (const role of ['commands', 'blocking', 'durable'] as const)
    it(`the number of the database, on a connection for ${role}: it is refused, and the next one is at the right database`, async function () {
      if (!(await answersClientInfo())) this.skip()
      const on = await setUp()
      if (role !== 'commands') await on.queue.offer('it')
      on.proxy.change = selectsWrong
      await uses[role](on).catch((error: Error) => {
        expect(error, error.message).to.be.instanceOf(DurabilityError) // no replica is there
      })
      expect({ changed: on.proxy.changed, refused: on.refused }).to.deep.equal({ changed: 1, refused: [role] })
      const left = role === 'durable' ? await on.delayed.size() : await on.queue.size()
      expect(left).to.equal(role === 'blocking' ? 0 : 1)
      const at = (db: number) =>
        rawClient().eval(`redis.call('SELECT', ${db}) return redis.call('KEYS', ARGV[1])`, 0, `*${on.name}*`)
      expect(await at(WRONG)).to.deep.equal([])
      if (role !== 'blocking') expect(await at(WANTED)).to.not.deep.equal([])
      await on.queue.clear()
      await on.delayed.clear()
    })

  it('a user without the right to CLIENT INFO uses the database as before', async function () {
    const user = uniqueName('user').replaceAll(':', '-')
    const created = await rawClient()
      .call('ACL', 'SETUSER', user, 'on', '>secret', '~*', '&*', '+@all', '-client', '+client|id')
      .catch(() => undefined)
    if (created === undefined) this.skip()
    onCleanup(() => rawClient().call('ACL', 'DELUSER', user))
    const { proxy, queue, refused } = await setUp({ username: user, password: 'secret' })
    await queue.offer('it')
    expect(await queue.take()).to.equal('it')
    expect(proxy.pieces.join('')).to.match(CLIENT_INFO)
    expect(refused).to.deep.equal([])
  })

  it('no connection asks for its database where that is 0', async () => {
    const { proxy, queue } = await setUp({ db: 0 })
    await queue.offer('it')
    expect(await queue.take()).to.equal('it')
    expect(proxy.pieces.join('')).to.match(/\r\nCLIENT\r\n\$2\r\nID\r\n/i)
    expect(proxy.pieces.join('')).to.not.match(CLIENT_INFO)
  })

  it('a connection asks for its database together with what it asks anyway', async () => {
    const { proxy, queue } = await setUp()
    await queue.size()
    const piece = proxy.pieces.find((each) => CLIENT_INFO.test(each))
    expect(piece).to.match(/\r\ninfo\r\n\$6\r\nserver\r\n/i)
  })

  it('the name of a channel: all channels are subscribed again on another connection', async () => {
    const proxy = await startRequestProxy()
    const client = makeClient({ host: '127.0.0.1', port: proxy.port })
    const broken: string[] = []
    client.on('reconnecting', ({ connection, error }) => broken.push(`${connection}: ${String(error?.message)}`))
    const names = [uniqueName(), uniqueName()] as const
    const subscribe = async (name: string): Promise<void> => {
      const subscribed = once<{ queue: string }>(client, 'subscribed', ({ queue }) => queue === name)
      client.getDelayedQueue(client.getBlockingQueue<string>(name, { codec: codecs.string() }))
      await subscribed
    }
    await subscribe(names[0])
    proxy.change = (request) => request.replace(/(\r\nsubscribe\r\n.*)\}/is, '$1~')
    await subscribe(names[1])
    expect(proxy.changed).to.equal(1)
    expect(broken).to.have.lengthOf(1)
    expect(broken[0]).to.match(/^subscriber: .*a subscription that was not asked for/)
    const channels = names.map((name) => rawKeys(name).channel)
    await eventually(async () =>
      expect(await rawClient().pubsub('NUMSUB', ...channels)).to.deep.equal([channels[0], 1, channels[1], 1]),
    )
  })
})
