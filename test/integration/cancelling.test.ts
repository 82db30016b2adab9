import { expect } from 'chai'
import { codecs, type BlockingQueue } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startRedis } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, numbers, onCleanup, rawTo, rejection, track, untilBlocked } from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient

class Reason extends Error {}

describe('cancelling a wait', () => {
  let name: string
  let connection: string
  let queue: BlockingQueue<string>

  beforeEach(() => {
    name = uniqueName()
    connection = name.replaceAll(':', '-')
    queue = makeClient({ ioredis: { connectionName: connection } }).getBlockingQueue<string>(name, string)
  })
  afterEach(cleanUp)

  type Wait = (on: BlockingQueue<string>, signal: AbortSignal) => Promise<unknown>
  const waits: [what: string, wait: Wait][] = [
    ['take', (on, signal) => on.take({ signal })],
    ['poll(timeout)', (on, signal) => on.poll(60_000, { signal })],
    ['poll(timeout, unit)', (on, signal) => on.poll(1, 'minutes', { signal })],
    ['takeMany', (on, signal) => on.takeMany(5, { signal })],
    ['elements', (on, signal) => on.elements({ signal }).next()],
  ]
  for (const [what, wait] of waits) {
    it(`${what}: a signal aborted before takes nothing`, async () => {
      await queue.put('a')
      const reason = new Reason('before')
      expect(await rejection(wait(queue, AbortSignal.abort(reason)))).to.equal(reason)
      expect(await raw().lrange(name, 0, -1)).to.deep.equal(['a'])
    })

    it(`${what}: an abort during the wait rejects with its reason, and later elements stay`, async () => {
      const controller = new AbortController()
      const waiting = wait(queue, controller.signal)
      await untilBlocked(connection)
      const reason = new Reason('during')
      controller.abort(reason)
      expect(await rejection(waiting)).to.equal(reason)
      await raw().rpush(name, 'a')
      expect(await raw().lrange(name, 0, -1)).to.deep.equal(['a'])
    })
  }

  it('a poll that does not wait takes nothing either when the signal is aborted', async () => {
    await queue.put('a')
    const signal = AbortSignal.abort(new Reason('before'))
    expect(await rejection(queue.poll(0, { signal }))).to.be.an.instanceOf(Reason)
    expect(await rejection(queue.takeMany(1, { timeout: 0, signal }))).to.be.an.instanceOf(Reason)
    expect(await raw().lrange(name, 0, -1)).to.deep.equal(['a'])
  })

  it('an abort within the turn of the call, and one while the connection is opened, take nothing', async () => {
    for (const turns of numbers(12).map(Number)) {
      const fresh = makeClient().getBlockingQueue<string>(name, string)
      const controller = new AbortController()
      const waiting = rejection(fresh.take({ signal: controller.signal }))
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
      controller.abort(new Reason('early'))
      expect(await waiting).to.be.an.instanceOf(Reason)
    }
    await raw().rpush(name, 'a')
    expect(await queue.poll(1_000)).to.equal('a')
  })

  it('a signal whose reason is not an Error rejects with one', async () => {
    const controller = new AbortController()
    const waiting = queue.take({ signal: controller.signal })
    controller.abort('a text')
    expect(await rejection(waiting)).to.be.an.instanceOf(Error)
    expect(await rejection(queue.take({ signal: AbortSignal.timeout(20) }))).to.have.property('name', 'TimeoutError')
  })

  it('aborting after the end changes nothing, and leaves no listener', async () => {
    const controller = new AbortController()
    const added: string[] = []
    const { signal } = controller
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => (added.push(args[0]), add(...args))
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (added.pop(), remove(...args))
    for (const value of numbers(20)) {
      await queue.put(value)
      expect(await queue.take({ signal })).to.equal(value)
    }
    expect(await queue.poll(5, { signal })).to.equal(null)
    expect(added).to.deep.equal([])
    controller.abort()
    await queue.put('a')
    expect(await queue.take()).to.equal('a')
  })

  it('one signal for many waits ends all of them, and is listened to once', async () => {
    const controller = new AbortController()
    const client = makeClient({ blockingConnections: 2 })
    const waits = numbers(50).map(() => {
      const own = client.getBlockingQueue<string>(uniqueName(), string)
      return own.take({ signal: controller.signal }).catch((error: unknown) => error)
    })
    await queue.size()
    controller.abort(new Reason('all'))
    for (const ended of await Promise.all(waits)) expect(ended).to.be.an.instanceOf(Reason)
  })

  it('of many waits on one queue ends the one and leaves the others in their order', async () => {
    const controller = new AbortController()
    const waiting = [queue.take(), queue.take({ signal: controller.signal }), queue.take()].map(track)
    await untilBlocked(connection)
    controller.abort(new Reason('one'))
    expect(await rejection(waiting[1]!.promise)).to.be.an.instanceOf(Reason)
    expect(waiting.map(({ settled }) => settled)).to.deep.equal([false, true, false])
    await raw().rpush(name, 'a', 'b')
    expect([await waiting[0]!.promise, await waiting[2]!.promise]).to.deep.equal(['a', 'b'])
  })

  // whichever comes first, the element is either returned by the aborted call or still in the queue
  for (const busy of [false, true]) {
    const where = busy ? 'one that other waits keep busy' : 'a connection of its own'
    it(`200 elements that come together with the abort, on ${where}: none lost, none doubled`, async () => {
      const client = makeClient({ blockingConnections: 1, ioredis: { connectionName: `${connection}-race` } })
      const racing = client.getBlockingQueue<string>(name, string)
      const elsewhere = client.getBlockingQueue<string>(uniqueName(), string)
      const other = busy ? track(elsewhere.take()) : undefined
      if (busy) await untilBlocked(`${connection}-race`)

      const returned: string[] = []
      let aborted = 0
      for (const value of numbers(200)) {
        const controller = new AbortController()
        const waiting = racing.take({ signal: controller.signal }).catch((error: unknown) => error)
        // every phase: before the command is sent, on its way, waiting at the server
        const turns = Number(value) % 20
        for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
        const pushed = Number(value) % 2 === 0 ? raw().rpush(name, value) : undefined
        controller.abort(new Reason('race'))
        await (pushed ?? raw().rpush(name, value))
        const result = await waiting
        if (result instanceof Reason) aborted++
        else returned.push(result as string)
      }
      const left = await racing.drainTo()
      expect([...returned, ...left].sort()).to.deep.equal(numbers(200).sort())
      expect(aborted, 'aborted').to.be.greaterThan(10)
      expect(returned.length, 'returned').to.be.greaterThan(10)
      expect(other?.settled).to.equal(busy ? false : undefined)
    })
  }

  it('a wait that was popped for resolves with the element though it was aborted', async () => {
    const controller = new AbortController()
    const waiting = queue.take({ signal: controller.signal })
    await untilBlocked(connection)
    // in one turn, and ahead of CLIENT UNBLOCK, which needs another connection: the element wins
    await raw().rpush(name, 'a')
    controller.abort(new Reason('too late'))
    expect(await waiting.catch((error: unknown) => error)).to.equal('a')
  })

  it('a user who may not unblock connections waits a second or two longer, the first time too', async function () {
    requireServerBin(this)
    const server = await startRedis()
    onCleanup(() => server.stop())
    await rawTo(server.port).acl('SETUSER', 'limited', 'on', '>secret', '~*', '&*', '+@all', '-client|unblock')
    const client = makeClient({ url: server.url, username: 'limited', password: 'secret' })
    const waits = client.getBlockingQueue<string>(name, string)
    expect(await waits.size()).to.equal(0) // a connection that could unblock is there
    const started = performance.now()
    expect(await waits.poll(200)).to.equal(null)
    expect(performance.now() - started).to.be.below(5_000)
  })

  describe('on a server without CLIENT UNBLOCK', function () {
    before(function () {
      requireServerBin(this)
    })

    it('an aborted take ends within a second or two, and loses nothing', async () => {
      const server = await startRedis({ args: ['--rename-command', 'CLIENT', ''] })
      onCleanup(() => server.stop())
      const plain = rawTo(server.port, { disableClientInfo: true })
      const untilOneBlocks = () =>
        eventually(async () => expect(await plain.info('clients')).to.match(/^blocked_clients:1\r?$/m))
      const waits = makeClient({ url: server.url }).getBlockingQueue<string>(name, string)

      const first = new AbortController()
      const given = waits.take({ signal: first.signal })
      await untilOneBlocks()
      first.abort(new Reason('the wait goes on at the server'))
      await plain.rpush(name, 'a')
      expect(await given).to.equal('a')

      const second = new AbortController()
      const ended = rejection(waits.take({ signal: second.signal }))
      await untilOneBlocks()
      const started = performance.now()
      second.abort(new Reason('short'))
      expect(await ended).to.be.an.instanceOf(Reason)
      expect(performance.now() - started).to.be.below(2_500)
      await plain.rpush(name, 'b')
      expect(await plain.lrange(name, 0, -1)).to.deep.equal(['b'])
    })
  })
})
