import { expect } from 'chai'
import { ConnectionError, RedelayedError, ShutdownError, WrongTypeError } from '../../src/errors.js'
import type { PrefetchBuffer } from '../../src/queues/context.js'
import { FailingShards } from '../../src/sharding/failing-shards.js'
import type { ShardSource } from '../../src/sharding/shard-source.js'
import { ShardedConsumer } from '../../src/sharding/sharded-consumer.js'
import { FakeClock } from '../support/fake-clock.js'

interface Waiting {
  readonly max: number
  readonly resolve: (elements: string[]) => void
  readonly reject: (error: Error) => void
}

/** A list that says what is asked of it; like the real one it never pops for a wait that has ended. */
class FakeShard implements ShardSource<string> {
  list: string[] = []
  waits: number[] = []
  aborts = 0
  /** The error of every call. */
  broken: Error | undefined
  /** The turns that its answers take. */
  distance = 0
  /** Calls that put back wait for this. */
  gate: Promise<void> = Promise.resolve()
  #waiting: Waiting | undefined

  get isWaitedFor(): boolean {
    return this.#waiting !== undefined
  }

  async wait(max: number, signal: AbortSignal): Promise<string[]> {
    this.waits.push(max)
    expect(this.#waiting, 'one wait at a time').to.equal(undefined)
    if (this.broken) throw this.broken
    if (this.list.length > 0) {
      for (let turn = 0; turn < this.distance; turn++) await new Promise((resolve) => setImmediate(resolve))
      return this.list.splice(0, max)
    }
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.aborts++
        this.onAbort(waiting)
      }
      const settle = (): void => {
        this.#waiting = undefined
        signal.removeEventListener('abort', onAbort)
      }
      const waiting: Waiting = {
        max,
        resolve: (elements) => (settle(), resolve(elements)),
        reject: (error) => (settle(), reject(error)),
      }
      this.#waiting = waiting
      signal.addEventListener('abort', onAbort)
    })
  }

  onAbort: (waiting: Waiting) => void = ({ reject }) => reject(new Error('aborted'))

  push(...elements: string[]): void {
    this.list.push(...elements)
    this.#waiting?.resolve(this.list.splice(0, this.#waiting.max))
  }

  async drain(max: number): Promise<string[]> {
    if (this.broken) throw this.broken
    return this.list.splice(0, max)
  }

  async putBack(elements: readonly string[]): Promise<void> {
    await this.gate
    if (this.broken) throw this.broken
    this.list.unshift(...elements)
  }
}

const refused = new ConnectionError('refused', 'not-applied')
const cut = new ConnectionError('cut', 'unknown')

interface More {
  readonly asksOneFirst?: boolean
  readonly areClaims?: boolean
  readonly failing?: FailingShards
  readonly bytesOf?: () => number
  readonly clock?: FakeClock
}

function setUp(count: number, { clock = new FakeClock(), ...more }: More = {}) {
  const shards = Array.from({ length: count }, () => new FakeShard())
  const buffers = new Set<PrefetchBuffer>()
  const failures: [number, string][] = []
  const lost: [number, number][] = []
  const state = { isShutDown: false }
  const consumer = new ShardedConsumer<string>({
    sources: shards,
    buffers,
    clock,
    random: () => 0,
    closedError: () => new ShutdownError('closed'),
    isShutDown: () => state.isShutDown,
    onFailure: (shard, error) => failures.push([shard, error.message]),
    onLost: (shard, elements) => lost.push([shard, elements]),
    ...more,
  })
  /** The result of a call, once everything that can happen now has happened. */
  const outcome = async (call: Promise<string[]>): Promise<unknown> => {
    let result: unknown = 'waits'
    call.then(
      (elements) => (result = elements),
      (error: unknown) => (result = error),
    )
    await clock.advance(0)
    return result
  }
  const take = (max = 1, options: { timeoutMs?: number; signal?: AbortSignal } = {}) => consumer.take(max, options)
  return { clock, shards, buffers, failures, lost, state, consumer, outcome, take }
}

describe('the consumer of a sharded queue', () => {
  it('waits at every shard once, and gives elements to the waiting calls in order', async () => {
    const { shards, take, outcome } = setUp(3)
    const first = take()
    const second = take()
    expect(await outcome(first)).to.equal('waits')
    expect(shards.map(({ waits }) => waits)).to.deep.equal([[1], [1], [1]])
    shards[1]!.push('a')
    expect(await outcome(first)).to.deep.equal(['a'])
    expect(await outcome(second)).to.equal('waits')
    shards[1]!.push('b')
    expect(await outcome(second)).to.deep.equal(['b'])
  })

  it('asks every shard for its share of the wanted elements, rounded up', async () => {
    const { shards, take, outcome } = setUp(4)
    await outcome(take(10))
    expect(shards.map(({ waits }) => waits)).to.deep.equal([[3], [3], [3], [3]])
  })

  it('elements that come without a waiting call go to the next calls first', async () => {
    const { shards, take, outcome, consumer } = setUp(3)
    for (const [i, shard] of shards.entries()) shard.list.push(`${i}a`, `${i}b`)
    const taken = [await take(), await take(), await consumer.drain(1)].flat()
    expect(taken.toSorted()).to.deep.equal(['0a', '1a', '2a'])
    expect(shards.map(({ waits }) => waits.length)).to.deep.equal([1, 1, 1])
    expect(await outcome(take(3))).to.have.length(1)
  })

  it('never has more in hand than one for each shard beyond what was asked', async () => {
    const { shards, take, outcome } = setUp(5)
    for (const shard of shards) shard.list.push('a', 'b', 'c', 'd', 'e', 'f')
    expect(await outcome(take())).to.have.length(1)
    expect(shards.flatMap(({ list }) => list)).to.have.length(25)
  })

  it('a consumer in a loop leaves the waits of the other shards alone', async () => {
    const { shards, take, clock, outcome } = setUp(2)
    for (let i = 0; i < 20; i++) {
      const taken = take()
      await clock.advance(40)
      shards[0]!.push('a')
      expect(await outcome(taken)).to.deep.equal(['a'])
      await clock.advance(49)
    }
    expect(shards[1]!.waits).to.deep.equal([1])
    expect(shards[1]!.aborts).to.equal(0)
  })

  it('when no call asks any more the waits end after a moment, and what was popped without one goes back in its order', async () => {
    const { shards, take, clock, buffers, consumer } = setUp(3)
    shards[0]!.list.push('a')
    shards[1]!.list.push('b1', 'b2', 'b3', 'b4')
    expect(await take(5)).to.deep.equal(['a'])
    expect(shards[1]!.list).to.deep.equal(['b3', 'b4'])
    expect([...buffers]).to.deep.equal([consumer])
    expect(consumer.holding).to.equal(true)
    await clock.advance(49)
    expect(shards[2]!.aborts).to.equal(0)
    await clock.advance(1)
    expect(shards[1]!.list).to.deep.equal(['b1', 'b2', 'b3', 'b4'])
    expect(shards[2]!.isWaitedFor).to.equal(false)
    expect(buffers.size).to.equal(0)
    expect(clock.pending).to.deep.equal([])
  })

  it('an element that the abort of a wait brings goes back too', async () => {
    const { shards, take, clock } = setUp(2)
    shards[0]!.list.push('a')
    await take()
    shards[1]!.onAbort = ({ resolve }) => resolve(['late'])
    await clock.advance(50)
    expect(shards[1]!.list).to.deep.equal(['late'])
  })

  it('a slow consumer sees the shards by turns, although one of them is always the first to answer', async () => {
    const { shards, take, clock } = setUp(3)
    for (const [i, shard] of shards.entries()) {
      shard.distance = i
      shard.list.push(...'abcd'.split('').map((each) => `${i}${each}`))
    }
    const taken: string[] = []
    for (let i = 0; i < 12; i++) {
      taken.push(...(await take()))
      await clock.advance(1_000)
    }
    for (let round = 0; round < 4; round++) {
      const shardsSeen = taken.slice(3 * round, 3 * round + 3).map((element) => element[0])
      expect(new Set(shardsSeen).size, taken.join()).to.equal(3)
    }
  })

  it('a shard that is asked first holds the others up for a moment only', async () => {
    const { shards, take, clock, outcome } = setUp(3)
    for (const shard of shards) shard.list.push('a')
    await take()
    await clock.advance(50)
    for (const shard of shards) shard.list.length = 0
    const taken = take()
    await clock.advance(4)
    expect(shards.filter(({ isWaitedFor }) => isWaitedFor)).to.have.length(1)
    await clock.advance(1)
    expect(shards.every(({ isWaitedFor }) => isWaitedFor)).to.equal(true)
    shards.forEach((shard) => shard.push('b'))
    expect(await outcome(taken)).to.deep.equal(['b'])
  })

  it('nothing is taken from a shard while its elements are on their way back', async () => {
    const { shards, take, clock, outcome } = setUp(2)
    shards[0]!.list.push('a')
    shards[1]!.list.push('b1', 'b2')
    const [first] = await take()
    let open = (): void => {}
    for (const shard of shards) shard.gate = new Promise((resolve) => (open = resolve))
    await clock.advance(50)
    const other = first === 'a' ? shards[1]! : shards[0]!
    const left = first === 'a' ? 'b1' : 'a'
    const waits = other.waits.length
    const taken = take(2)
    expect(await outcome(taken)).to.equal('waits')
    expect(other.waits.length).to.equal(waits)
    open()
    expect(await outcome(taken)).to.deep.equal([left])
  })

  it('a timeout gives nothing, an abort its reason; what was on its way goes to the next call', async () => {
    const { shards, take, clock, outcome } = setUp(2)
    const timed = take(1, { timeoutMs: 30 })
    const controller = new AbortController()
    const aborted = take(1, { signal: controller.signal })
    await clock.advance(30)
    expect(await outcome(timed)).to.deep.equal([])
    const reason = new Error('why')
    controller.abort(reason)
    expect(await outcome(aborted)).to.equal(reason)
    shards[0]!.push('late')
    expect(await outcome(take())).to.deep.equal(['late'])
    expect(await outcome(take(1, { signal: controller.signal }))).to.equal(reason)
  })

  it('a timeout longer than a timer of Node is waited for', async () => {
    const { take, clock, outcome } = setUp(1)
    const timed = take(1, { timeoutMs: 2 ** 31 + 1_000 })
    await clock.advance(2 ** 31)
    expect(await outcome(timed)).to.equal('waits')
    await clock.advance(1_000)
    expect(await outcome(timed)).to.deep.equal([])
  })

  it('a look at the lists sees what a wait that lingers has just popped', async () => {
    const { shards, take, consumer, outcome } = setUp(2)
    shards[0]!.list.push('a')
    await take()
    shards[1]!.onAbort = ({ resolve }) => resolve(['b'])
    expect(await outcome(consumer.drain(5))).to.deep.equal(['b'])
  })

  it('a look at the lists begins at another shard each time, and takes up to so many', async () => {
    const { shards, consumer } = setUp(3)
    for (const [i, shard] of shards.entries()) shard.list.push(...'aaaa'.split('').map(() => `${i}`))
    const firsts = [await consumer.drain(1), await consumer.drain(1), await consumer.drain(1)].flat()
    expect(firsts.toSorted()).to.deep.equal(['0', '1', '2'])
    expect(await consumer.drain(5)).to.have.length(5)
    expect(await consumer.drain(Infinity)).to.have.length(4)
    expect(await consumer.drain(1)).to.deep.equal([])
  })

  describe('when a shard fails', () => {
    it('the others continue, and it is tried again, each time later', async () => {
      const { shards, take, clock, failures } = setUp(2)
      shards[0]!.broken = refused
      const taken: string[] = []
      let rounds = 0
      for (; clock.now() < 10_000; rounds++) {
        const next = take()
        await clock.advance(20)
        shards[1]!.push(`${rounds}`)
        taken.push(...(await next))
      }
      expect(taken).to.have.length(rounds)
      expect(shards[0]!.waits.length, 'attempts').to.be.within(5, 10)
      expect(failures.length).to.equal(shards[0]!.waits.length - 1)
      expect(failures[0]).to.deep.equal([0, 'refused'])
      shards[0]!.broken = undefined
      shards[0]!.list.push('back')
      const last = take()
      await clock.advance(5_000)
      expect(await last).to.deep.equal(['back'])
    })

    it('none works: each waiting call gets an error of its own, and no loop spins', async () => {
      const { shards, take, clock, outcome } = setUp(2)
      for (const shard of shards) shard.broken = refused
      const errors = [await outcome(take()), await outcome(take())]
      expect(errors[0]).to.be.an.instanceOf(ConnectionError)
      expect(errors[1], 'waits for the next attempt').to.equal('waits')
      await clock.advance(10_000)
      for (let i = 0; i < 20; i++) {
        const again = take().catch((error: unknown) => error)
        await clock.advance(5_000)
        expect(await again).to.be.an.instanceOf(RedelayedError)
      }
      expect(shards[0]!.waits.length).to.be.below(30)
    })

    it('none works: a time that ends between two attempts is no empty answer', async () => {
      const { shards, take, clock, outcome } = setUp(3)
      for (const shard of shards) shard.broken = refused
      expect(await outcome(take(1, { timeoutMs: 30 }))).to.be.an.instanceOf(ConnectionError)
      const errors = new Set<unknown>()
      for (let i = 0; i < 50; i++) {
        const waits = shards[0]!.waits.length
        const calls = [take(1, { timeoutMs: 30 }), take(5, { timeoutMs: 30 })].map((call) =>
          call.catch((error: unknown) => error),
        )
        await clock.advance(30)
        for (const call of calls) {
          const error = await call
          expect(error, `call ${i}`).to.be.an.instanceOf(ConnectionError)
          errors.add(error)
        }
        expect(shards[0]!.waits.length - waits, 'attempts').to.be.at.most(1)
      }
      expect(errors.size, 'each its own').to.equal(100)
    })

    it('one that works again and is empty makes an empty answer', async () => {
      const { shards, take, clock, outcome } = setUp(2)
      for (const shard of shards) shard.broken = refused
      expect(await outcome(take(1, { timeoutMs: 30 }))).to.be.an.instanceOf(ConnectionError)
      shards[1]!.broken = undefined
      const timed = take(1, { timeoutMs: 5_000 })
      await clock.advance(4_999)
      expect(shards[1]!.isWaitedFor).to.equal(true)
      await clock.advance(1)
      expect(await outcome(timed)).to.deep.equal([])
    })

    it('so it does for short times with pauses between them', async () => {
      const { shards, take, clock, outcome } = setUp(2)
      for (const shard of shards) shard.broken = refused
      expect(await outcome(take(1, { timeoutMs: 5 }))).to.be.an.instanceOf(ConnectionError)
      for (const shard of shards) shard.broken = undefined
      await clock.advance(10_000)
      const answers: unknown[] = []
      for (let i = 0; i < 3; i++) {
        const timed = take(1, { timeoutMs: 5 }).catch((error: unknown) => error)
        await clock.advance(1_000)
        answers.push(await timed)
      }
      expect(answers[0], 'the outcome is unknown').to.be.an.instanceOf(ConnectionError)
      expect(answers.slice(1)).to.deep.equal([[], []])
    })

    it('a read of the lists continues with the others, and fails when it finds nothing', async () => {
      const { shards, consumer, outcome } = setUp(3)
      shards[1]!.broken = refused
      shards[2]!.list.push('a', 'b')
      expect(await consumer.drain(Infinity)).to.deep.equal(['a', 'b'])
      expect(await outcome(consumer.drain(1))).to.equal(refused)
    })

    it('a read of the lists asks no more after two slow connection errors, and the next one asks the others first', async () => {
      const { shards, consumer, clock, outcome } = setUp(4)
      shards[3]!.list.push('a')
      const asked: number[] = []
      for (const [at, shard] of shards.entries()) {
        const drain = shard.drain.bind(shard)
        shard.drain = async (max) => {
          asked.push(at)
          if (at === 3) return drain(max)
          clock.jump(500)
          throw cut
        }
      }
      expect(await outcome(consumer.drain(1))).to.equal(cut)
      expect(asked).to.deep.equal([0, 1])
      expect(await consumer.drain(1)).to.deep.equal(['a'])
      expect(asked.slice(2)).to.deep.equal([2, 3])
    })

    it('a read of the lists goes on after any number of quick errors', async () => {
      for (const error of [cut, new WrongTypeError()]) {
        const { shards, consumer } = setUp(4)
        for (const shard of shards.slice(0, 3)) shard.broken = error
        shards[3]!.list.push('a')
        expect(await consumer.drain(1)).to.deep.equal(['a'])
      }
    })

    /** Puts elements into all shards; the given ones answer their next calls with an error, after so many milliseconds. */
    const failOnce = ({ shards, clock }: ReturnType<typeof setUp>, failing: readonly number[], ms: number) => {
      for (const [at, shard] of shards.entries()) {
        shard.list = Array.from({ length: 1_000 }, () => `${at}`)
        const drain = shard.drain.bind(shard)
        if (failing.includes(at)) {
          shard.drain = async () => {
            clock.jump(ms)
            shard.drain = drain
            throw cut
          }
        }
      }
    }

    for (const failing of [[1], [1, 2], [0, 1, 2, 3]]) {
      it(`reads of the lists reach shards that work again, although the others have elements, after ${failing.length} of 4 failed`, async () => {
        const all = setUp(4)
        failOnce(all, failing, 0)
        const taken: string[] = []
        for (let call = 0; call < 60; call++) {
          taken.push(...(await all.consumer.drain(1).catch(() => [])))
          await all.clock.advance(10)
        }
        for (const shard of failing) expect(taken.slice(-16)).to.include(`${shard}`)
      })
    }

    for (const silence of [150, 2_000]) {
      it(`reads of the lists spend at most a quarter of their time on shards that are silent for ${silence} ms while others have elements`, async () => {
        const { shards, consumer, clock } = setUp(4)
        let silentMs = 0
        const empty: number[] = []
        shards[0]!.list = Array.from({ length: 20_000 }, () => 'a')
        for (const shard of shards.slice(1)) {
          shard.drain = async () => {
            clock.jump(silence)
            silentMs += silence
            throw cut
          }
        }
        for (let call = 0; clock.now() < 100_000; call++) {
          await consumer.drain(1).catch(() => empty.push(call))
          await clock.advance(10)
        }
        expect(silentMs).to.be.within(10_000, 30_000)
        expect(empty, 'only the call that finds out').to.have.length.at.most(1)
      })
    }

    it('a call that holds claims waits for no failing shard in its pause, and reports one that failed again', async () => {
      const all = setUp(3, { areClaims: true })
      const { shards, consumer, clock, failures } = all
      failOnce(all, [0, 1], 2_000)
      for (let call = 0; call < 2; call++) await consumer.drain(1).catch(() => undefined)
      await clock.advance(20_000)
      let asked = 0
      for (const shard of shards.slice(0, 2)) {
        shard.drain = async () => {
          asked++
          clock.jump(2_000)
          throw cut
        }
      }
      shards[2]!.list = ['a', 'b', 'c']
      const before = failures.length
      expect(await consumer.drain(5)).to.deep.equal(['a', 'b', 'c'])
      expect(asked, 'only the one that had its turn').to.equal(1)
      expect(failures).to.have.length(before + 1)
    })

    for (const areClaims of [false, true])
      it(`one call gets the elements of all shards that work again, ${areClaims ? 'of claims' : 'of lists'}`, async () => {
        const all = setUp(4, { areClaims })
        failOnce(all, [1, 2], 2_000)
        for (let call = 0; call < 4; call++) await all.consumer.drain(1).catch(() => undefined)
        await all.clock.advance(3_600_000)
        expect(new Set(await all.consumer.drain(Infinity))).to.have.all.keys('0', '1', '2', '3')
      })

    it('an error of a shard is reported once in five seconds, also by consumers that share the failing shards', async () => {
      const failing = new FailingShards()
      const reports: number[] = []
      const clock = new FakeClock()
      for (let at = 0; at < 6_000; at += 150) {
        const { consumer, shards, failures } = setUp(2, { failing, clock })
        shards[0]!.drain = () => Promise.reject(new Error('of another type'))
        shards[1]!.list = ['a']
        expect(await consumer.drain(1)).to.deep.equal(['a'])
        reports.push(...failures.map(([shard]) => shard))
        await clock.advance(150)
      }
      expect(reports).to.deep.equal([0, 0])
    })

    it('one read of the lists at a time asks a silent shard first', async () => {
      const all = setUp(3)
      const { shards, consumer, clock, outcome } = all
      failOnce(all, [0], 2_000)
      await consumer.drain(1)
      await clock.advance(10_000)
      const asked: ((error: Error) => void)[] = []
      shards[0]!.drain = () => new Promise((_, reject) => asked.push(reject))
      const loops = Array.from({ length: 3 }, () => consumer.drain(1))
      expect(await outcome(loops[0]!)).to.equal('waits')
      for (let call = 0; call < 20; call++) {
        await clock.advance(100)
        expect(await outcome(consumer.drain(1))).to.have.length(1)
      }
      expect(asked).to.have.length(1)
      asked[0]!(cut)
      expect(await Promise.all(loops)).to.have.length(3)
      await clock.advance(10_000)
      expect(await outcome(consumer.drain(1)), 'after the pause').to.equal('waits')
      expect(asked).to.have.length(2)
    })

    it('reads of the lists ask a shard again 30 s after it failed, however long a call waited for the error', async () => {
      const all = setUp(3)
      failOnce(all, [0], 100_000)
      await all.consumer.drain(1)
      await all.clock.advance(29_000)
      expect(await all.consumer.drain(1)).to.not.include('0')
      await all.clock.advance(1_001)
      expect(await all.consumer.drain(1)).to.deep.equal(['0'])
    })

    it('a shard that failed at once does not wait for the turns of silent ones', async () => {
      const all = setUp(4)
      failOnce(all, [1], 10_000)
      const { shards, consumer, clock } = all
      const drain = shards[3]!.drain.bind(shards[3])
      shards[3]!.drain = async () => {
        shards[3]!.drain = drain
        throw new WrongTypeError()
      }
      for (let call = 0; call < 4; call++) await consumer.drain(1)
      await clock.advance(100)
      expect(await consumer.drain(1)).to.deep.equal(['3'])
    })

    it('a call gives the turn to a failing shard that can be asked now', async () => {
      const { shards, consumer, take, clock, outcome } = setUp(3, { asksOneFirst: true })
      shards[0]!.broken = refused
      await outcome(take(1, { timeoutMs: 5_000 }))
      await clock.advance(5_000) // the next attempt is at 5,650 ms
      shards[1]!.broken = refused
      shards[2]!.list = ['a', 'b']
      expect(await consumer.drain(2)).to.deep.equal(['a', 'b'])
      await clock.advance(150)
      for (const shard of shards) shard.waits = []
      await outcome(take())
      expect(shards.map(({ waits }) => waits)).to.deep.equal([[], [1], []])
    })

    it('a call probes no failing shard when the kept elements are enough for it', async () => {
      const all = setUp(3, { bytesOf: () => 1 })
      const { shards, consumer, take, clock } = all
      failOnce(all, [], 0)
      shards[0]!.broken = refused
      await consumer.drain(1)
      await take()
      expect(consumer.holding).to.equal(true)
      shards[0]!.broken = undefined
      clock.jump(150)
      expect(await consumer.drain(5, 1)).to.have.length(1)
      expect(consumer.holding).to.equal(false)
      expect(await consumer.drain(1)).to.deep.equal(['0'])
    })

    it('a consumer that knows the failing shards of another one asks the others first', async () => {
      const failing = new FailingShards()
      const [first, second] = [setUp(3, { failing }), setUp(3, { failing })]
      failOnce(first, [0], 2_000)
      failOnce(second, [], 0)
      expect(await first.consumer.drain(1)).to.deep.equal(['1'])
      expect([...(await second.consumer.drain(1)), ...(await second.consumer.drain(1))]).to.not.include('0')
    })

    it('elements that cannot be put back are kept for the next call, and retried after growing delays', async () => {
      const { shards, take, clock, consumer, lost } = setUp(2)
      shards[0]!.list.push('a')
      shards[1]!.list.push('b')
      const [first] = await take()
      for (const shard of shards) shard.broken = refused
      await clock.advance(20_000)
      expect(consumer.holding).to.equal(true)
      const [second] = await take()
      expect([first, second].toSorted()).to.deep.equal(['a', 'b'])
      expect(lost).to.deep.equal([])
    })

    it('elements of a failed return go to the calls that wait by now', async () => {
      const { shards, take, clock, outcome } = setUp(2)
      shards[0]!.list.push('a')
      shards[1]!.list.push('b')
      const [first] = await take()
      let open = (): void => {}
      for (const shard of shards) shard.gate = new Promise((resolve) => (open = resolve))
      await clock.advance(50)
      for (const shard of shards) shard.broken = refused
      const taken = take()
      expect(await outcome(taken)).to.equal('waits')
      open()
      expect([first, ...((await outcome(taken)) as string[])].toSorted()).to.deep.equal(['a', 'b'])
    })

    it('drops elements that may have been put back, so that none comes twice', async () => {
      const { shards, take, clock, consumer, lost } = setUp(2)
      shards[0]!.list.push('a')
      shards[1]!.list.push('b')
      await take()
      for (const shard of shards) shard.broken = cut
      await clock.advance(50)
      expect(lost.map(([, count]) => count)).to.deep.equal([1])
      expect(consumer.holding).to.equal(false)
    })
  })

  describe('where one shard is asked first', () => {
    const oneFirst = { asksOneFirst: true }
    const asked = (shards: readonly FakeShard[]) => shards.map(({ waits }) => waits)

    it('it is asked for all that is wanted, and the others for nothing while it has some', async () => {
      const { shards, take, outcome, clock } = setUp(4, oneFirst)
      for (const shard of shards) shard.list.push('a', 'b', 'c')
      expect(await outcome(take(2))).to.deep.equal(['a', 'b'])
      await clock.advance(4)
      expect(asked(shards).flat()).to.deep.equal([2])
      expect(shards.flatMap(({ list }) => list)).to.have.length(10)
    })

    it('the others are asked for their shares when it has none at once', async () => {
      const { shards, take, outcome, clock } = setUp(4, oneFirst)
      const taken = take(8)
      await clock.advance(4)
      expect(asked(shards).flat()).to.deep.equal([8])
      await clock.advance(1)
      expect(asked(shards)).to.deep.equal([[8], [2], [2], [2]])
      shards[3]!.push('a', 'b')
      expect(await outcome(taken)).to.deep.equal(['a', 'b'])
    })

    it('every shard is asked first at some time', async () => {
      const { shards, take, clock } = setUp(4, oneFirst)
      for (const shard of shards) shard.list.push('a', 'b', 'c', 'd')
      for (let i = 0; i < 8; i++) {
        await take()
        await clock.advance(60) // the waits are over
      }
      expect(asked(shards)).to.deep.equal([
        [1, 1],
        [1, 1],
        [1, 1],
        [1, 1],
      ])
    })

    it('a call that comes while waits are under way joins them', async () => {
      const { shards, take, outcome, clock } = setUp(3, oneFirst)
      const first = take()
      await clock.advance(5)
      shards[2]!.push('a')
      expect(await outcome(first)).to.deep.equal(['a'])
      const second = take()
      await clock.advance(10)
      shards[1]!.push('b')
      expect(await outcome(second)).to.deep.equal(['b'])
      expect(asked(shards)).to.deep.equal([[1], [1], [1, 1]])
    })

    it('one that fails is not asked first, and its failure sends the call to the others', async () => {
      const { shards, take, outcome, clock } = setUp(3, oneFirst)
      shards[0]!.broken = refused
      const first = take()
      await clock.advance(5)
      shards[1]!.push('a')
      expect(await outcome(first)).to.deep.equal(['a'])
      await clock.advance(60)
      shards[1]!.list.push('b')
      shards[2]!.list.push('c')
      expect(await outcome(take())).to.have.length(1)
    })

    it('a shard that works again is asked first again, although the others have elements at once', async () => {
      const { shards, take, clock } = setUp(3, { asksOneFirst: true })
      for (const shard of shards) shard.list = Array.from({ length: 1_000 }, () => 'a')
      shards[0]!.broken = refused
      const first = take()
      await clock.advance(5)
      await first
      shards[0]!.broken = undefined
      for (let call = 0; call < 60; call++) {
        await take()
        await clock.advance(5)
      }
      expect(shards[0]!.waits.length).to.be.greaterThan(5)
    })
  })

  describe('closing', () => {
    it('ends waiting calls, but gives them the elements that their waits have popped', async () => {
      const { shards, take, consumer, outcome } = setUp(2)
      const first = take()
      const second = take().catch((error: unknown) => error)
      await outcome(first)
      shards[1]!.onAbort = ({ resolve }) => resolve(['a'])
      await consumer.close()
      expect(await first).to.deep.equal(['a'])
      expect(await second).to.be.an.instanceOf(ShutdownError)
      expect(await outcome(take())).to.be.an.instanceOf(ShutdownError)
      expect(await outcome(consumer.drain(1))).to.be.an.instanceOf(ShutdownError)
    })

    for (const asksOneFirst of [false, true]) {
      const how = asksOneFirst ? 'asking one shard first' : 'asking all shards'
      it(`a wait that a shutdown of the client refuses ends the calls at once, ${how}, and is no failure of the shard`, async () => {
        const { shards, take, outcome, failures, clock } = setUp(3, { asksOneFirst })
        for (const shard of shards) shard.broken = new ShutdownError('the client was shut down')
        for (let call = 0; call < 4; call++) expect(await outcome(take())).to.be.an.instanceOf(ShutdownError)
        expect(failures).to.deep.equal([])
        await clock.advance(100)
        expect(clock.pending).to.deep.equal([])
      })
    }

    it('calls that begin during a shutdown of the client do not wait until a failed shard may be asked again', async () => {
      const { shards, state, take, outcome } = setUp(2)
      for (const shard of shards) shard.broken = refused
      expect(await outcome(take())).to.be.an.instanceOf(ConnectionError)
      state.isShutDown = true
      expect(await outcome(take())).to.be.an.instanceOf(ShutdownError)
    })

    it('puts back elements that no call got, once, however often it is closed; no timer is left', async () => {
      const { shards, take, consumer, clock, buffers } = setUp(3)
      for (const shard of shards) shard.list.push('a', 'b')
      expect(await take()).to.deep.equal(['a'])
      await Promise.all([consumer.close(), consumer.close()])
      await consumer.close()
      expect(shards.map(({ list }) => list.join('')).toSorted()).to.deep.equal(['ab', 'ab', 'b'])
      expect(clock.pending).to.deep.equal([])
      expect(buffers.size).to.equal(0)
    })

    it('waits for elements that are being put back', async () => {
      const { shards, take, consumer, clock } = setUp(2)
      for (const shard of shards) shard.list.push('a')
      await take()
      let open = (): void => {}
      const gate = new Promise<void>((resolve) => (open = resolve))
      for (const shard of shards) shard.gate = gate
      await clock.advance(50)
      let closed = false
      const closing = consumer.close().then(() => (closed = true))
      await clock.advance(0)
      expect(closed).to.equal(false)
      open()
      await closing
      expect(shards.flatMap(({ list }) => list)).to.deep.equal(['a'])
    })

    it('reports elements that it could not put back', async () => {
      const { shards, take, consumer, lost } = setUp(3)
      for (const shard of shards) shard.list.push('a')
      await take()
      for (const shard of shards) shard.broken = refused
      await consumer.close()
      expect(lost.map(([, count]) => count)).to.deep.equal([1, 1])
    })
  })
})
