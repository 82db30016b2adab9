/** Waiting at the right end, on several queues, and for moves; after RedissonBlockingDequeTest and RedissonBlockingQueueTest. */
import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { CrossSlotError, InvalidArgumentError, WrongTypeError, codecs, type BlockingDeque } from '../../src/index.js'
import { nextTurn } from '../../src/timing/pause.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startCluster, startRedis, type ClusterSetup } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  cleanUp,
  connectionsNamed,
  expectError,
  javaOffer,
  makeClient,
  numbers,
  onCleanup,
  rawTo,
  redisNow,
  rejection,
  track,
  untilBlocked,
} from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient

class Reason extends Error {}

describe('BlockingDeque waits', () => {
  let name: string
  let other: string
  let third: string
  let connection: string
  let deque: BlockingDeque<string>
  const stored = (of = name) => raw().lrange(of, 0, -1)

  beforeEach(() => {
    name = uniqueName()
    other = uniqueName('other')
    third = uniqueName('third')
    connection = name.replaceAll(':', '-')
    deque = makeClient({ ioredis: { connectionName: connection } }).getBlockingDeque<string>(name, string)
  })
  afterEach(cleanUp)

  it('putFirst, putLast, takeFirst and takeLast', async () => {
    await deque.putFirst('b')
    await deque.putFirst('a')
    await deque.putLast('c')
    expect([await deque.takeLast(), await deque.takeFirst(), await deque.take()]).to.deep.equal(['c', 'a', 'b'])
  })

  it('takeFirst and takeLast wait, each at its end, at the same time', async () => {
    const [first, last] = [deque.takeFirst(), deque.takeLast()]
    await untilBlocked(connection, 2)
    await raw().rpush(name, 'a', 'b')
    expect([await first, await last].sort()).to.deep.equal(['a', 'b'])
    expect(await stored()).to.deep.equal([])
  })

  it('waiting takes at the right end get the last element', async () => {
    const waits = numbers(3).map(() => deque.takeLast())
    await untilBlocked(connection)
    await raw().rpush(name, 'a', 'b', 'c')
    expect(await Promise.all(waits)).to.deep.equal(['c', 'b', 'a'])
  })

  it('pollFirst and pollLast: at once, with a timeout, with a unit', async () => {
    expect([await deque.pollLast(), await deque.pollLast(0), await deque.pollFirst(0)]).to.deep.equal([
      null,
      null,
      null,
    ])
    const started = performance.now()
    expect([await deque.pollLast(40), await deque.pollFirst(40, 'milliseconds')]).to.deep.equal([null, null])
    expect(performance.now() - started).to.be.within(78, 1_000)
    await deque.addLast('a', 'b', 'c', 'd')
    expect([await deque.pollLast(1, 'seconds'), await deque.pollFirst(1_000)]).to.deep.equal(['d', 'a'])
    expect([await deque.pollLast(), await deque.pollFirst()]).to.deep.equal(['c', 'b'])
    expect(deque.remainingCapacity()).to.equal(2_147_483_647)
  })

  it('takeLast delivers due messages of its queue', async () => {
    const due = Math.floor(await redisNow()) + 60
    await javaOffer(name, 'due', due)
    expect(await deque.takeLast()).to.equal('due')
  })

  it('subscribeOnFirstElements and subscribeOnLastElements, and unsubscribe', async () => {
    const heard: string[] = []
    await deque.addLast(...(numbers(10) as [string]))
    const id = deque.subscribeOnLastElements((value) => void heard.push(value))
    await eventually(() => expect(heard).to.deep.equal(numbers(10).reverse()))
    expect([deque.unsubscribe(id), deque.unsubscribe(id)]).to.deep.equal([true, false])
    await eventually(async () => expect((await connectionsNamed(connection)).join()).to.not.match(/ flags=[^ ]*b/))
    await deque.addLast('a', 'b')
    const other = deque.subscribeOnFirstElements((value) => void heard.push(value))
    await eventually(() => expect(heard.slice(10)).to.deep.equal(['a', 'b']))
    expect(deque.unsubscribe(other)).to.equal(true)
    const same = (): void => {}
    const third = deque.subscribeOnLastElements(same)
    const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['subscribed'] }
    await expectError([InvalidArgumentError, wanted], () => deque.subscribeOnFirstElements(same))
    deque.unsubscribe(third)
  })

  type Wait = (signal: AbortSignal) => Promise<unknown>
  const waits: [what: string, wait: Wait][] = [
    ['takeLast', (signal) => deque.takeLast({ signal })],
    ['pollLast(timeout)', (signal) => deque.pollLast(60_000, { signal })],
    ['pollFromAny', (signal) => deque.pollFromAny(1, 'minutes', [other, third], { signal })],
    ['pollLastFromAny', (signal) => deque.pollLastFromAny(1, 'minutes', [other], { signal })],
    ['takeLastAndOfferFirstTo', (signal) => deque.takeLastAndOfferFirstTo(other, { signal })],
    ['move', (signal) => deque.move(1, 'minutes', { from: 'first', to: other, at: 'last' }, { signal })],
  ]
  for (const [what, wait] of waits) {
    it(`${what}: an abort ends it with the reason, and later elements stay`, async () => {
      const controller = new AbortController()
      const waiting = wait(controller.signal)
      await untilBlocked(connection)
      const reason = new Reason(what)
      controller.abort(reason)
      expect(await rejection(waiting)).to.equal(reason)
      await raw().rpush(name, 'a')
      expect(await rejection(wait(AbortSignal.abort(reason)))).to.equal(reason)
      expect([await stored(), await stored(other)]).to.deep.equal([['a'], []])
    })

    it(`${what}: 60 aborts that come together with an element lose and double nothing`, async () => {
      const results: unknown[] = []
      for (const value of numbers(60)) {
        const controller = new AbortController()
        const waiting = wait(controller.signal).catch((error: unknown) => error)
        for (let i = 0; i < Number(value) % 20; i++) await new Promise((resolve) => setImmediate(resolve))
        const pushed = Number(value) % 2 === 0 ? raw().rpush(name, value) : undefined
        controller.abort(new Reason('race'))
        await (pushed ?? raw().rpush(name, value))
        results.push(await waiting)
      }
      const returned = results.filter((result) => !(result instanceof Reason))
      const moved = await stored(other)
      // a move that was not aborted leaves its element in the other queue
      const taken = /move|Offer/.test(what) ? moved : returned
      if (taken === moved) expect([...returned].sort()).to.deep.equal([...moved].sort())
      expect([...taken, ...(await stored())].sort()).to.deep.equal(numbers(60).sort())
      expect(results.length - returned.length, 'aborted').to.be.greaterThan(0)
    })
  }

  describe('on any of several queues', () => {
    it('pollFromAny serves its own queue first, then the others as named', async () => {
      for (const queue of [third, other, name]) await raw().rpush(queue, `of ${queue}`)
      const order = await Promise.all([1, 2, 3].map(() => deque.pollFromAny(0, 'seconds', third, other, third, name)))
      expect(order).to.deep.equal([`of ${name}`, `of ${third}`, `of ${other}`])
      expect(await deque.pollFromAny(0, 'seconds', third, other)).to.equal(null)
    })

    it('pollFromAny without names is poll, and gives null when the time is over', async () => {
      await deque.offer('a')
      expect(await deque.pollFromAny(10, 'seconds')).to.equal('a')
      const started = performance.now()
      expect(await deque.pollFromAny(50, 'milliseconds', other)).to.equal(null)
      expect(performance.now() - started).to.be.within(49, 1_000)
    })

    it('pollFromAny waits on all of them with one command, and takes one element of one queue', async () => {
      for (const queue of [name, other, third]) {
        const waiting = deque.pollFromAny(10, 'seconds', other, third)
        await untilBlocked(connection)
        const blocked = (await connectionsNamed(connection)).filter((line) => / flags=[^ ]*b/.test(line))
        expect(blocked).to.have.lengthOf(1)
        await raw().rpush(queue, 'a', 'b')
        expect(await waiting).to.equal('a')
        expect(await raw().lpop(queue)).to.equal('b')
      }
    })

    it('pollFromAnyWithName and pollLastFromAnyWithName name the queue', async () => {
      await raw().rpush(other, 'a', 'b', 'c')
      expect(await deque.pollFromAnyWithName(1, 'seconds', third, other)).to.deep.equal({ name: other, value: 'a' })
      expect(await deque.pollLastFromAnyWithName(1, 'seconds', third, other)).to.deep.equal({ name: other, value: 'c' })
      const waiting = deque.pollLastFromAnyWithName(5, 'seconds', third)
      await untilBlocked(connection)
      await raw().rpush(third, 'x', 'y')
      expect(await waiting).to.deep.equal({ name: third, value: 'y' })
      expect(await deque.pollFromAnyWithName(20, 'milliseconds', name)).to.equal(null)
    })

    it('pollFirstFromAny and pollLastFromAny with a count give a map of the first that has any', async () => {
      await raw().rpush(other, ...numbers(5))
      const first = await deque.pollFirstFromAny(1, 'seconds', 2, third, other)
      expect([...(first ?? [])]).to.deep.equal([[other, ['0', '1']]])
      const last = await deque.pollLastFromAny(1, 'seconds', 2, [third, other])
      expect([...(last ?? [])]).to.deep.equal([[other, ['4', '3']]])
      expect(await deque.pollFirstFromAny(20, 'milliseconds', 2, third)).to.equal(null)

      const waiting = deque.pollLastFromAny(5, 'seconds', 2, third)
      await untilBlocked(connection)
      await raw().rpush(third, 'x', 'y', 'z')
      expect([...((await waiting) ?? [])]).to.deep.equal([[third, ['z', 'y']]])
      for (const count of [0, 10_001, 1.5]) {
        const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['count'] }
        await expectError([InvalidArgumentError, wanted], () => deque.pollFirstFromAny(1, 'seconds', count, third))
      }
    })

    it('pollFirstFromAny and pollLastFromAny without a count give the value, as RBlockingDeque', async () => {
      await raw().rpush(other, 'a', 'b', 'c')
      expect(await deque.pollFirstFromAny(1, 'seconds', third, other)).to.equal('a')
      expect(await deque.pollLastFromAny(1, 'seconds', [third, other])).to.equal('c')
      expect(await deque.pollLastFromAny(20, 'milliseconds', third)).to.equal(null)
    })

    it('a timeout below a second is kept, where Redisson waits for ever', async () => {
      const started = performance.now()
      expect(await deque.pollFirstFromAny(100, 'milliseconds', 1, other)).to.equal(null)
      expect(performance.now() - started).to.be.within(99, 1_000)
    })

    it('delivers the due messages of all of them', async () => {
      await javaOffer(third, 'due', Math.floor(await redisNow()) + 50)
      expect(await deque.pollFromAny(5, 'seconds', other, third)).to.equal('due')
    })

    it('shares connections with other waits, and each gets its own', async () => {
      const client = makeClient({ blockingConnections: 1, ioredis: { connectionName: `${connection}-shared` } })
      const [one, two] = [client.getBlockingQueue<string>(name, string), client.getBlockingQueue<string>(other, string)]
      const waits = [two.take(), one.pollFromAny(10, 'seconds', other, third), one.take()].map(track)
      await untilBlocked(`${connection}-shared`)
      await raw().rpush(other, 'to the take that came first', 'to any')
      expect(await waits[0]!.promise).to.equal('to the take that came first')
      expect(await waits[1]!.promise).to.equal('to any')
      expect(waits[2]!.settled).to.equal(false)
      await raw().rpush(name, 'to the last')
      expect(await waits[2]!.promise).to.equal('to the last')
    })

    it('2,000 elements on five queues to ten waits on all of them: none lost, none doubled', async () => {
      const names = numbers(5).map(() => uniqueName('any'))
      const client = makeClient()
      const [first = '', ...rest] = names
      const taken: string[] = []
      const consumers = numbers(10).map(async () => {
        for (;;) {
          const value = await client
            .getBlockingDeque<string>(first, string)
            .pollFromAny(1_000, 'milliseconds', ...(rest as [string]))
          if (value === null) return
          taken.push(value)
        }
      })
      for (const value of numbers(2_000)) await raw().rpush(names[Number(value) % 5]!, value)
      await Promise.all(consumers)
      expect(taken.sort()).to.deep.equal(numbers(2_000).sort())
    }).timeout(20_000)

    it('a queue of another type fails the wait that names it, and no other', async () => {
      const good = track(deque.take())
      await untilBlocked(connection)
      await raw().set(other, 'in the way')
      await expectError([WrongTypeError, { code: 'ERR_WRONG_TYPE', queue: other }], () =>
        deque.pollFromAny(5, 'seconds', other),
      )
      expect(good.settled).to.equal(false)
      await raw().rpush(name, 'a')
      expect(await good.promise).to.equal('a')
    })

    it('refuses invalid names and timeouts', async () => {
      const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name }
      for (const call of [
        () => deque.pollFromAny(1, 'seconds', ''),
        () => deque.pollFromAny(1, 'seconds', 5 as unknown as string),
        () => deque.pollFromAny(-1, 'seconds', other),
        () => deque.pollFromAny(1, 'fortnights' as 'days', other),
        () => deque.pollFromAny(1, 'seconds', [other], 5 as unknown as object),
      ]) {
        await expectError([InvalidArgumentError, wanted], call)
      }
    })

    it('on a server before Redis 7', async function () {
      requireServerBin(this)
      const server = await startRedis({ args: ['--rename-command', 'BLMPOP', ''] })
      onCleanup(() => server.stop())
      const plain = rawTo(server.port)
      const named = { url: server.url, ioredis: { connectionName: 'old' } }
      const old = makeClient(named).getBlockingDeque<string>('one', string)
      const waiting = old.pollLastFromAny(5, 'seconds', 3, 'two')
      await untilBlocked('old', 1, plain)
      const two = makeClient({ url: server.url }).getQueue<string>('two', string)
      await two.addAll(numbers(5))
      expect([...((await waiting) ?? [])]).to.deep.equal([['two', ['4', '3', '2']]])
      const left = old.pollFirstFromAny(5, 'seconds', 3, 'two')
      expect([...((await left) ?? [])]).to.deep.equal([['two', ['0', '1']]])
      const last = old.takeLast()
      await old.offer('a')
      expect(await last).to.equal('a')
    })
  })

  describe('for moves', () => {
    it('pollLastAndOfferFirstTo: at once, within the timeout, or null', async () => {
      const started = performance.now()
      expect(await deque.pollLastAndOfferFirstTo(other, 60)).to.equal(null)
      expect(performance.now() - started).to.be.within(59, 1_000)
      expect([await deque.pollLastAndOfferFirstTo(other, 0), await deque.pollLastAndOfferFirstTo(other)]).to.deep.equal(
        [null, null],
      )
      await raw().rpush(other, 'x')
      const waiting = deque.pollLastAndOfferFirstTo(other, 5, 'seconds')
      await untilBlocked(connection)
      await raw().rpush(name, 'a', 'b')
      expect(await waiting).to.equal('b')
      expect([await stored(), await stored(other)]).to.deep.equal([['a'], ['b', 'x']])
    })

    it('takeLastAndOfferFirstTo waits as long as it takes', async () => {
      const waiting = track(deque.takeLastAndOfferFirstTo(other))
      await untilBlocked(connection)
      expect(waiting.settled).to.equal(false)
      await deque.put('a')
      expect(await waiting.promise).to.equal('a')
      expect(await stored(other)).to.deep.equal(['a'])
    })

    it('move waits at any end', async () => {
      for (const [from, at, moved, there] of [
        ['first', 'first', 'a', ['a', 'x']],
        ['first', 'last', 'a', ['x', 'a']],
        ['last', 'first', 'b', ['b', 'x']],
        ['last', 'last', 'b', ['x', 'b']],
      ] as const) {
        await raw().del(name, other)
        await raw().rpush(other, 'x')
        const waiting = deque.move(5, 'seconds', { from, to: other, at })
        await untilBlocked(connection)
        await raw().rpush(name, 'a', 'b')
        expect(await waiting).to.equal(moved)
        expect(await stored(other)).to.deep.equal(there)
      }
      expect(await deque.move(0, 'seconds', { from: 'first', to: other, at: 'last' })).to.be.a('string')
      expect(await deque.move(30, 'milliseconds', { from: 'first', to: other, at: 'last' })).to.equal(null)
    })

    it('six different moves at once share the connections, and each gets its element', async () => {
      const client = makeClient({ blockingConnections: 2 })
      const queues = numbers(6).map(() => client.getBlockingQueue<string>(uniqueName('from'), string))
      const waits = queues.map((queue) => queue.takeLastAndOfferFirstTo(other))
      // the last first: none may have to wait until those before it are served
      for (const [index, queue] of [...queues.entries()].reverse()) {
        const started = performance.now()
        await raw().rpush(queue.name, queue.name)
        expect(await waits[index]).to.equal(queue.name)
        expect(performance.now() - started).to.be.below(6_000)
      }
      expect((await stored(other)).sort()).to.deep.equal(queues.map((queue) => queue.name).sort())
    }).timeout(20_000)

    it('a target of another type fails the move, and leaves the element', async () => {
      await raw().set(other, 'in the way')
      const wanted = { code: 'ERR_WRONG_TYPE', queue: name }
      const waiting = rejection(deque.takeLastAndOfferFirstTo(other))
      await untilBlocked(connection)
      await raw().rpush(name, 'a')
      expect(await waiting).to.include(wanted)
      expect(await stored()).to.deep.equal(['a'])
    })

    it('a shutdown ends waits at the right end, on several queues, and for moves', async () => {
      const client = makeClient({ ioredis: { connectionName: `${connection}-end` } })
      const mine = client.getBlockingDeque<string>(name, string)
      const ends = [
        mine.takeLast(),
        mine.pollFromAny(1, 'minutes', other),
        mine.takeLastAndOfferFirstTo(other),
        mine.move(1, 'minutes', { from: 'first', to: other, at: 'last' }),
      ].map(rejection)
      await untilBlocked(`${connection}-end`, 3)
      await client.shutdown()
      for (const error of await Promise.all(ends)) expect(error).to.include({ code: 'ERR_SHUTDOWN', queue: name })
    })
  })
})

describe('waiting on several queues in a cluster', function () {
  let setup: ClusterSetup

  before(async function () {
    this.timeout(30_000)
    requireServerBin(this)
    setup = await startCluster()
  })
  after(() => setup?.stop())
  afterEach(cleanUp)

  /** Resolves when a command waits at a master. */
  async function untilWaiting(masters: readonly Redis[]): Promise<void> {
    await eventually(async () => {
      const infos = await Promise.all(masters.map((master) => master.info('clients')))
      expect(infos.join()).to.match(/blocked_clients:[1-9]/)
    })
  }

  it('whichever slot gets one first gives it, within a few turns', async () => {
    const client = makeClient({ cluster: setup.nodes })
    const masters = setup.servers.map(({ port }) => rawTo(port))
    const [first = '', ...rest] = numbers(6).map(() => uniqueName('slot'))
    const queue = client.getBlockingQueue<string>(first, string)
    for (const name of [first, ...rest]) {
      const waiting = track(queue.pollFromAnyWithName(20, 'seconds', ...(rest as [string])))
      await untilWaiting(masters)
      expect(waiting.settled).to.equal(false)
      const started = performance.now()
      await client.getQueue<string>(name, string).offer('a')
      expect(await waiting.promise).to.deep.equal({ name, value: 'a' })
      expect(performance.now() - started).to.be.below(2_500)
    }
    expect(await queue.pollFromAny(250, 'milliseconds', ...(rest as [string]))).to.equal(null)
  }).timeout(30_000)

  it('one element is taken though all slots get one at the same time; aborts lose nothing', async () => {
    const client = makeClient({ cluster: setup.nodes })
    const masters = setup.servers.map(({ port }) => rawTo(port))
    const names = numbers(5).map(() => uniqueName('slot'))
    const queues = names.map((name) => client.getBlockingQueue<string>(name, string))
    const [first = '', ...rest] = names
    const queue = client.getBlockingQueue<string>(first, string)
    const [taken, left]: [string[], string[]] = [[], []]
    const drain = async () => void left.push(...(await Promise.all(queues.map((one) => one.drainTo()))).flat())
    let offered = 0
    for (let round = 0; round < 12; round++) {
      await drain() // otherwise it would not wait
      const controller = new AbortController()
      const waiting = queue
        .pollFromAny(20, 'seconds', rest, { signal: controller.signal })
        .catch((error: unknown) => error)
      // on the way to the servers at first, then while they wait
      if (round < 6) for (let turn = 0; turn < round; turn++) await nextTurn()
      else await untilWaiting(masters)
      const pushes = queues.map((one) => one.offer(String(offered++)))
      if (round % 2 === 1) controller.abort(new Reason('race'))
      await Promise.all(pushes)
      const result = await waiting
      if (typeof result === 'string') taken.push(result)
      else expect(result).to.be.an.instanceOf(Reason)
      if (round % 2 === 0) expect(result).to.be.a('string')
    }
    await drain()
    expect([...taken, ...left].sort()).to.deep.equal(numbers(offered).sort())
  }).timeout(30_000)

  it('names of one slot share a command', async () => {
    const client = makeClient({ cluster: setup.nodes })
    const tag = uniqueName()
    const queue = client.getBlockingDeque<string>(`one{${tag}}`, string)
    const waiting = queue.pollLastFromAny(10, 'seconds', 2, `two{${tag}}`)
    await client.getQueue<string>(`two{${tag}}`, string).addAll(['a', 'b', 'c'])
    expect([...((await waiting) ?? [])].map(([name]) => name)).to.deep.equal([`two{${tag}}`])
    const moved = queue.takeLastAndOfferFirstTo(`three{${tag}}`)
    await queue.offer('x')
    expect(await moved).to.equal('x')
    // also when moves have worked before, so that what fails is waited out
    const wanted = { code: 'ERR_CROSS_SLOT', queue: queue.name }
    await expectError([CrossSlotError, wanted], () => queue.takeLastAndOfferFirstTo(uniqueName()))
  })
}).timeout(20_000)
