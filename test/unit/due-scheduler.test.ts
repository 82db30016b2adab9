import { expect } from 'chai'
import fc from 'fast-check'
import { FineWaits } from '../../src/timing/fine-waits.js'
import { RemoteClock } from '../../src/timing/remote-clock.js'
import type { ScriptOptions } from '../../src/scheduler/due-machine.js'
import { DueScheduler, type ScriptResult } from '../../src/scheduler/due-scheduler.js'
import { FakeClock } from '../support/fake-clock.js'
import { randomFrom } from '../support/random.js'

/** How far the Redis clock is ahead of the local one. */
const AHEAD = 1_700_000_000_000.5

/** A failure that can be over at any moment. */
const BRIEF = new Error('busy')

interface Call extends ScriptOptions {
  readonly at: number
  reply(result?: Partial<ScriptResult>): Promise<void>
  fail(error?: Error): Promise<void>
}

/** A scheduler whose transfers the test answers one by one. */
function setUp({ auto, isFine = false }: { auto?: (call: Call) => void; isFine?: boolean } = {}) {
  const clock = new FakeClock(1000.25)
  const fineWaits = isFine ? new FineWaits(clock) : undefined
  const calls: Call[] = []
  const errors: Error[] = []
  const state = { random: 0.5, running: 0, mostRunning: 0 }
  const redisNow = () => clock.now() + AHEAD
  const settled = () => clock.advance(0)
  const scheduler = new DueScheduler({
    script: (options) => {
      state.mostRunning = Math.max(state.mostRunning, ++state.running)
      return new Promise((resolve, reject) => {
        const call: Call = {
          ...options,
          at: clock.now(),
          async reply(result = {}) {
            state.running--
            const defaults: ScriptResult = {
              moved: 0,
              next: null,
              now: redisNow(),
              subscribers: 1,
              leader: 'none',
              leaseUntil: 0,
              isStuck: false,
            }
            // not spread: a getter must stay one
            resolve(Object.defineProperties(defaults, Object.getOwnPropertyDescriptors(result)))
            await settled()
          },
          async fail(error = new Error('the server is away')) {
            state.running--
            reject(error)
            await settled()
          },
        }
        calls.push(call)
        auto?.(call)
      })
    },
    isBrief: (error) => error === BRIEF,
    onError: (error) => errors.push(error),
    clock,
    remote: new RemoteClock(clock),
    random: () => state.random,
    fineWaits,
  })
  return { scheduler, clock, calls, errors, state, redisNow, settled }
}

/** As `setUp`, after a first transfer whose reply had the Redis clock and the number of clients. */
async function started(result: Partial<ScriptResult> = {}, isFine = false) {
  const setup = setUp({ isFine })
  setup.scheduler.onSubscribed()
  await setup.calls[0]!.reply(result)
  expect(setup.calls).to.have.length(1)
  setup.calls.length = 0
  return setup
}

describe('DueScheduler', () => {
  it('does nothing before it is woken or subscribed', async () => {
    const { clock, calls } = setUp()
    await clock.advance(100_000)
    expect(calls).to.deep.equal([])
    expect(clock.pending).to.deep.equal([])
  })

  it('runs at once after a subscription, and as a sweep', async () => {
    const { scheduler, calls } = setUp()
    scheduler.onSubscribed()
    expect(calls).to.have.length(1)
    await calls[0]!.reply()
    scheduler.wake()
    expect(calls).to.have.length(2)
  })

  it('announces what it finds when its timer fired, and not when it was only woken', async () => {
    const { scheduler, clock, calls, redisNow } = await started({})
    scheduler.onKnown(redisNow() + 10)
    await clock.advance(10)
    expect(calls.map(({ announce }) => announce)).to.deep.equal([true])
    await calls[0]!.reply()
    scheduler.wake()
    expect(calls.map(({ announce }) => announce)).to.deep.equal([true, false])
  })

  it('runs the script at once for a due time that it cannot place yet', async () => {
    const { scheduler, clock, calls } = setUp()
    scheduler.onAnnounced(AHEAD + 5_000_000)
    await clock.advance(1)
    expect(calls).to.have.length(1)
  })

  describe('due times', () => {
    it('waits for the due time in the reply, by the Redis clock', async () => {
      const { clock, calls, redisNow } = await started({ next: AHEAD + 1000.25 + 100 })
      await clock.advance(99.9)
      expect(calls).to.deep.equal([])
      await clock.advance(0.1)
      expect(calls).to.have.length(1)
      expect(redisNow()).to.equal(AHEAD + 1000.25 + 100)
    })

    it('waits finely as the leader and as the only client, and not where it lets the leader go first', async () => {
      const next = AHEAD + 1000.25 + 20.75
      for (const [result, timer] of [
        [{ subscribers: 1, leader: 'none' }, 20],
        [{ subscribers: 5, leader: 'self' }, 20],
        [{ subscribers: 5, leader: 'none' }, 21],
        [{ subscribers: 5, leader: 'other', leaseUntil: next }, 21],
      ] as const) {
        const { scheduler, clock } = await started({ ...result, next }, true)
        expect(clock.pending).to.deep.equal([timer])
        await scheduler.stop()
      }
    })

    it('sends so that it arrives at the due time when it takes as long as the last one', async () => {
      const { scheduler, clock, calls, redisNow } = setUp()
      scheduler.wake()
      await clock.advance(3)
      const ranAt = redisNow()
      await clock.advance(4)
      await calls[0]!.reply({ now: ranAt, next: ranAt + 100 })
      await clock.advance(92.9)
      expect(calls).to.have.length(1)
      await clock.advance(0.1)
      expect(calls).to.have.length(2)
      expect(calls[1]!.at + 3 + AHEAD).to.equal(ranAt + 100)
    })

    it('sends again at once when it arrived a moment early', async () => {
      const { clock, calls, redisNow } = await started({ next: AHEAD + 1000.25 + 100 })
      await clock.advance(100)
      const due = redisNow()
      await clock.advance(0.5)
      await calls[0]!.reply({ now: due - 0.25, next: due })
      expect(calls).to.have.length(2)
      expect(clock.pending).to.deep.equal([])
    })

    it('runs exactly once for a due time 5 ms ahead', async () => {
      const { clock, calls, redisNow } = await started({ next: AHEAD + 1000.25 + 5 })
      for (let i = 0; i < 100; i++) await clock.advance(0.1)
      expect(calls).to.have.length(1)
      await calls[0]!.reply({ moved: 1 })
      for (let i = 0; i < 100; i++) await clock.advance(0.1)
      expect(calls).to.have.length(1)
      expect(calls[0]!.at + AHEAD).to.be.within(AHEAD + 1005.25, redisNow())
    })

    it('continues at once while more is due', async () => {
      const { scheduler, clock, calls, redisNow } = setUp()
      scheduler.wake()
      for (let i = 0; i < 5; i++) await calls[i]!.reply({ moved: 100, next: redisNow() - i })
      expect(calls).to.have.length(6)
      await calls[5]!.reply({ moved: 1, next: null })
      await clock.advance(10_000)
      expect(calls).to.have.length(6)
    })

    it('continues at once when the next one is due exactly now', async () => {
      const { scheduler, calls, redisNow } = setUp()
      scheduler.wake()
      await calls[0]!.reply({ moved: 1, next: redisNow() })
      expect(calls).to.have.length(2)
    })

    it('keeps an earlier due time that it knows when a reply has a later one', async () => {
      const { scheduler, clock, calls, redisNow } = await started()
      scheduler.wake()
      const ranAt = redisNow()
      await clock.advance(2)
      scheduler.onAnnounced(ranAt + 20) // an offer that the reply under way does not know
      await clock.advance(2)
      await calls[0]!.reply({ now: ranAt + 1, next: ranAt + 5000 })
      await clock.advance(20)
      expect(calls).to.have.length(2)
    })

    it('keeps an earlier due time when a reply says that nothing is left', async () => {
      const { scheduler, clock, calls, redisNow } = await started()
      scheduler.wake()
      scheduler.onAnnounced(redisNow() + 20)
      await calls[0]!.reply({ next: null })
      await clock.advance(21)
      expect(calls).to.have.length(2)
    })

    it('takes an earlier due time from a reply', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ next: AHEAD + 1000.25 + 5000 })
      scheduler.wake()
      await calls[0]!.reply({ next: redisNow() + 10 })
      await clock.advance(10)
      expect(calls).to.have.length(2)
    })

    it('follows a message to a later due time: the head is gone', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ next: AHEAD + 1000.25 + 20 })
      scheduler.onAnnounced(redisNow() + 500)
      await clock.advance(499)
      expect(calls).to.deep.equal([])
      await clock.advance(1)
      expect(calls).to.have.length(1)
    })

    it('follows a message to an earlier due time: there is a new head', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ next: AHEAD + 1000.25 + 500 })
      scheduler.onAnnounced(redisNow() + 20)
      await clock.advance(20)
      expect(calls).to.have.length(1)
    })

    it('does not let an own offer raise an earlier due time', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ next: AHEAD + 1000.25 + 20 })
      scheduler.onKnown(redisNow() + 500)
      await clock.advance(20)
      expect(calls).to.have.length(1)
    })

    it('waits for days without an early run, in steps that Node can wait', async () => {
      const DAY = 86_400_000
      for (const days of [24, 25, 30, 60, 365]) {
        const { clock, calls, redisNow } = await started({ next: AHEAD + 1000.25 + days * DAY })
        for (let day = 0; day < days; day++) {
          expect(Math.max(...clock.pending)).to.be.at.most(2 ** 31 - 1)
          expect(calls).to.deep.equal([])
          await clock.advance(DAY)
        }
        expect(calls).to.have.length(1)
        expect(redisNow()).to.equal(AHEAD + 1000.25 + days * DAY)
      }
    })

    it('arms nothing for an infinite due time', async () => {
      const { clock } = await started({ next: Infinity })
      expect(clock.pending).to.deep.equal([])
    })
  })

  describe('one at a time', () => {
    it('runs once more, and only once, when woken while a transfer is under way', async () => {
      const { scheduler, calls, state } = setUp()
      scheduler.wake()
      for (let i = 0; i < 5; i++) scheduler.wake()
      scheduler.onSubscribed()
      expect(calls).to.have.length(1)
      await calls[0]!.reply()
      expect(calls).to.have.length(2)
      await calls[1]!.reply()
      expect(calls).to.have.length(2)
      expect(state.mostRunning).to.equal(1)
    })

    it('runs once more when the timer fires while a transfer is under way, and announces that time', async () => {
      const { scheduler, clock, calls, redisNow } = await started()
      scheduler.wake()
      scheduler.onAnnounced(redisNow() + 5)
      await clock.advance(10)
      expect(calls).to.have.length(1)
      await calls[0]!.reply()
      expect(calls.map(({ announce }) => announce)).to.deep.equal([false, true])
      await calls[1]!.reply()
      expect(calls).to.have.length(2)
    })

    it('still announces when a sweep asks after the timer', async () => {
      const { scheduler, clock, calls, redisNow } = await started()
      scheduler.wake()
      scheduler.onAnnounced(redisNow() + 5)
      await clock.advance(10)
      scheduler.wake()
      await calls[0]!.reply()
      expect(calls.map(({ announce }) => announce)).to.deep.equal([false, true])
    })

    it('does not lose a wake-up between the end of the loop and the end of the promise', async () => {
      const { scheduler, calls, redisNow } = setUp()
      scheduler.wake()
      await calls[0]!.reply({
        // the loop reads it last, so the microtask runs when the loop is over
        get next() {
          queueMicrotask(() => scheduler.wake())
          return redisNow() + 1000
        },
      })
      expect(calls).to.have.length(2)
    })

    it('never overlaps, whatever happens', async () => {
      const action = fc.oneof(
        fc.constant('wake' as const),
        fc.constant('subscribed' as const),
        fc.constant('reply' as const),
        fc.constant('more' as const),
        fc.constant('fail' as const),
        fc.constant('announce' as const),
        fc.constant('known' as const),
        fc.constant('advance' as const),
      )
      await fc.assert(
        fc.asyncProperty(
          fc.array(action, { maxLength: 80, size: 'max' }),
          fc.integer({ min: 1, max: 9 }),
          async (actions, subscribers) => {
            const { scheduler, clock, calls, state, redisNow } = setUp()
            let answered = 0
            for (const name of actions) {
              const open = calls[answered]
              if (name === 'wake') scheduler.wake()
              else if (name === 'subscribed') scheduler.onSubscribed()
              else if (name === 'announce') scheduler.onAnnounced(redisNow() + 5)
              else if (name === 'known') scheduler.onKnown(redisNow() + 7)
              else if (name === 'advance') await clock.advance(13)
              else if (open !== undefined) {
                answered++
                if (name === 'fail') await open.fail()
                else await open.reply({ subscribers, next: name === 'more' ? redisNow() : redisNow() + 11 })
              }
              expect(state.mostRunning).to.be.at.most(1)
            }
          },
        ),
        { numRuns: 200 },
      )
    })
  })

  describe('scripts that find something due and change nothing', () => {
    it('follow each other at once for ten times, and then after a growing wait up to 5 s', async () => {
      const { scheduler, clock, calls, state, redisNow } = setUp()
      state.random = 0
      scheduler.wake()
      const stuck = () => calls.at(-1)!.reply({ isStuck: true, next: redisNow() })
      for (let n = 0; n < 10; n++) await stuck()
      expect(calls).to.have.length(11)
      for (const wait of [50, 100, 200, 400, 800, 1600, 2500, 2500]) {
        const before = calls.length
        await stuck()
        scheduler.wake()
        scheduler.onAnnounced(redisNow() + 1)
        await clock.advance(wait - 0.5)
        expect(calls, `within ${wait} ms`).to.have.length(before)
        await clock.advance(0.5)
        expect(calls, `after ${wait} ms`).to.have.length(before + 1)
      }
    })

    for (const [what, reply] of [
      ['one that changes something', { isStuck: false }],
      ['one that finds nothing due', { next: null }],
    ] as const) {
      it(`are counted from the start after ${what}`, async () => {
        const { scheduler, calls, redisNow } = setUp()
        scheduler.wake()
        for (let round = 0; round < 3; round++) {
          for (let n = 0; n < 10; n++) await calls.at(-1)!.reply({ isStuck: true, next: redisNow() })
          await calls.at(-1)!.reply({ next: redisNow(), ...reply })
          scheduler.wake()
        }
        expect(calls).to.have.length(34)
      })
    }

    it('never wait while entries are set aside, though none is moved', async () => {
      const { scheduler, calls, redisNow } = setUp()
      scheduler.wake()
      for (let n = 0; n < 50; n++) await calls.at(-1)!.reply({ moved: 0, next: redisNow() })
      expect(calls).to.have.length(51)
    })
  })

  describe('failures', () => {
    it('are reported, and followed by another attempt after a growing wait up to 5 s', async () => {
      for (const [random, waits] of [
        [0, [50, 100, 200, 400, 800, 1600, 2500, 2500, 2500]],
        [0.5, [75, 150, 300, 600, 1200, 2400, 3750, 3750, 3750]],
      ] as const) {
        const { scheduler, clock, calls, errors, state } = setUp()
        state.random = random
        scheduler.wake()
        for (const [n, wait] of waits.entries()) {
          const error = new Error(`failure ${n}`)
          await calls[n]!.fail(error)
          expect(errors.at(-1)).to.equal(error)
          await clock.advance(wait - 0.5)
          expect(calls).to.have.length(n + 1)
          await clock.advance(0.5)
          expect(calls).to.have.length(n + 2)
        }
      }
    })

    it('that can be over at any moment are followed by a short wait, however many they are', async () => {
      const { scheduler, clock, calls, state } = setUp()
      for (const random of [0, 0.5, 0.999]) {
        state.random = random
        scheduler.wake()
        for (let n = 0; n < 20; n++) {
          const before = calls.length
          await calls.at(-1)!.fail(BRIEF)
          await clock.advance(124)
          expect(calls).to.have.length(before)
          await clock.advance(126)
          expect(calls).to.have.length(before + 1)
        }
      }
    })

    it('start from the shortest wait again after a success', async () => {
      const { scheduler, clock, calls } = setUp()
      scheduler.wake()
      for (let n = 0; n < 4; n++) {
        await calls[n]!.fail()
        await clock.advance(5000)
      }
      await calls[4]!.reply()
      scheduler.wake()
      await calls[5]!.fail()
      await clock.advance(75)
      expect(calls).to.have.length(7)
    })

    it('hold back wake-ups, messages and known due times until the wait is over', async () => {
      const { scheduler, clock, calls, redisNow } = await started()
      scheduler.wake()
      await calls[0]!.fail()
      await clock.advance(10)
      scheduler.wake()
      scheduler.onAnnounced(redisNow() - 5)
      await clock.advance(10)
      scheduler.onAnnounced(redisNow() + 5)
      scheduler.onKnown(redisNow() + 3)
      await clock.advance(54)
      expect(calls).to.have.length(1)
      await clock.advance(1)
      expect(calls).to.have.length(2)
    })

    it('drop a wake-up that came while the transfer failed: the next attempt comes after the wait', async () => {
      const { scheduler, clock, calls } = setUp()
      scheduler.wake()
      scheduler.wake()
      await calls[0]!.fail()
      await clock.advance(74)
      expect(calls).to.have.length(1)
      await clock.advance(1)
      expect(calls).to.have.length(2)
      await calls[1]!.reply()
      expect(calls).to.have.length(2)
    })

    it('are forgotten when the channel is subscribed again', async () => {
      const { scheduler, clock, calls } = setUp()
      scheduler.wake()
      for (let n = 0; n < 6; n++) {
        await calls[n]!.fail()
        await clock.advance(n < 5 ? 5000 : 1)
      }
      expect(calls).to.have.length(6)
      scheduler.onSubscribed()
      expect(calls).to.have.length(7)
    })

    it('do not hold back a subscription that comes in the middle of one', async () => {
      const { scheduler, calls, errors } = setUp()
      scheduler.wake()
      const reported = errors.push.bind(errors)
      errors.push = (error) => {
        scheduler.onSubscribed()
        return reported(error)
      }
      await calls[0]!.fail()
      expect(calls).to.have.length(2)
    })

    it('of any kind reach the listener as errors', async () => {
      const { scheduler, calls, errors } = setUp()
      scheduler.wake()
      await calls[0]!.fail('just text' as unknown as Error)
      expect(errors[0]).to.be.an('error')
    })
  })

  describe('with other clients', () => {
    const due = AHEAD + 1000.25 + 100

    it('waits 3 ms and a random part that grows with their number before it follows', async () => {
      for (const [subscribers, random, wait, announce] of [
        [2, 0, 3, true],
        [2, 0.5, 3.25, true],
        [20, 0.39, 4.95, true],
        [20, 0.5, 5.5, false],
        [20, 0.999, 7.995, false],
        [100, 0.07, 4.75, true],
        [100, 0.5, 15.5, false],
        [5000, 0.5, 15.5, false],
        [5000, 0.999, 27.975, false],
      ] as const) {
        const { clock, calls, state } = await started({ subscribers, next: due })
        state.random = random
        await clock.advance(100 + wait - 0.1)
        expect(calls, `${subscribers} clients`).to.deep.equal([])
        await clock.advance(1.2) // a timer waits for whole milliseconds
        expect(calls, `${subscribers} clients`).to.have.length(1)
        // the first of many followers announce also when they moved nothing
        expect(calls[0]!.announce, `${subscribers} clients`).to.equal(announce)
      }
    })

    it('does not wait when it is alone', async () => {
      const { clock, calls } = await started({ subscribers: 1, next: due })
      await clock.advance(100)
      expect(calls).to.have.length(1)
    })

    it('does not wait when the server counts no subscriber', async () => {
      const { clock, calls } = await started({ subscribers: 0, next: due })
      await clock.advance(100)
      expect(calls).to.have.length(1)
    })

    it('is called off by the announcement of the one that was faster', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20, next: due })
      await clock.advance(102)
      scheduler.onAnnounced(redisNow() + 200)
      await clock.advance(199)
      expect(calls).to.deep.equal([])
      await clock.advance(10)
      expect(calls).to.have.length(1)
    })

    it('is not cancelled by an announcement of messages that are already due', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20, next: due })
      await clock.advance(102)
      scheduler.onAnnounced(redisNow() - 1)
      await clock.advance(4)
      expect(calls).to.have.length(1)
    })

    it('goes first when it moved something last time', async () => {
      const { clock, calls } = await started({ subscribers: 20, moved: 1, next: due })
      await clock.advance(100)
      expect(calls).to.have.length(1)
    })

    it('still goes first after a sweep that found nothing', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20, moved: 1, next: due })
      scheduler.wake()
      await calls[0]!.reply({ subscribers: 20, moved: 0, next: redisNow() + 100 })
      await clock.advance(100)
      expect(calls).to.have.length(2)
    })

    it('keeps the first place over a sweep that finds nothing', async () => {
      const { scheduler, clock, calls } = await started({ subscribers: 20, moved: 1, next: due })
      scheduler.wake()
      await calls[0]!.reply({ subscribers: 20, next: due })
      await clock.advance(100)
      expect(calls).to.have.length(2)
    })

    it('gets the first place by a sweep that moved something', async () => {
      const { scheduler, clock, calls } = await started({ subscribers: 20 })
      scheduler.wake()
      await calls[0]!.reply({ subscribers: 20, moved: 1, next: due })
      await clock.advance(100)
      expect(calls).to.have.length(2)
    })

    it('keeps the first place when its script came a moment early', async () => {
      const { clock, calls, redisNow } = await started({ subscribers: 20, moved: 1, next: due })
      await clock.advance(100)
      const ranAt = redisNow() - 1
      await calls[0]!.reply({ subscribers: 20, moved: 0, next: redisNow(), now: ranAt })
      await clock.advance(1)
      expect(calls).to.have.length(2)
      await calls[1]!.reply({ subscribers: 20, moved: 1, next: redisNow() + 100 })
      calls.length = 0
      await clock.advance(101)
      expect(calls).to.have.length(1)
    })

    it('yields when the reply says that another client leads, also when it moved something', async () => {
      for (const moved of [0, 1]) {
        const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20, moved: 1, next: due })
        await clock.advance(100)
        const [next, leaseUntil] = [redisNow() + 100, redisNow() + 5]
        await calls[0]!.reply({ subscribers: 20, moved, next, leader: 'other', leaseUntil })
        await clock.advance(102)
        expect(calls, `moved ${moved}`).to.have.length(1)
        scheduler.onAnnounced(redisNow() + 100)
        await clock.advance(99)
        expect(calls, `moved ${moved}`).to.have.length(1)
      }
    })

    it('follows at the end of the lease of another client, not at a due time before it', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20 })
      scheduler.wake()
      await calls[0]!.reply({ subscribers: 20, next: redisNow() + 2, leader: 'other', leaseUntil: redisNow() + 20 })
      await clock.advance(20 + 5)
      expect(calls).to.have.length(1)
      await clock.advance(2)
      expect(calls).to.have.length(2)
    })

    it('leads when its reply names it as the leader, even if it moved nothing', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20 })
      scheduler.wake()
      await calls[0]!.reply({ subscribers: 20, next: redisNow() + 10, leader: 'self', leaseUntil: redisNow() + 20 })
      await clock.advance(10)
      expect(calls).to.have.length(2)
    })

    it('yields after a failure', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20, moved: 1, next: due })
      scheduler.wake()
      await calls[0]!.fail()
      await clock.advance(75)
      expect(calls).to.have.length(2)
      await calls[1]!.reply({ subscribers: 20, next: redisNow() + 100 })
      await clock.advance(102)
      expect(calls).to.have.length(2)
      await clock.advance(10)
      expect(calls).to.have.length(3)
    })

    it('is not deferred by an announcement while it leads, before or after its reply', async () => {
      for (const isBefore of [true, false]) {
        const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20, moved: 1, next: due })
        await clock.advance(100)
        const leaseUntil = Math.floor(redisNow()) + 5
        if (isBefore) scheduler.onAnnounced(leaseUntil)
        await calls[0]!.reply({ subscribers: 20, moved: 1, next: redisNow() + 2, leader: 'self', leaseUntil })
        if (!isBefore) scheduler.onAnnounced(leaseUntil)
        scheduler.onAnnounced(leaseUntil + 1)
        await clock.advance(2)
        expect(calls).to.have.length(2)
        expect(calls[1], 'it needs no new lease').to.include({ announce: true, renew: false })
      }
    })

    it('is called by an announcement before its deadline while it leads, and renews its lease: the followers know that time', async () => {
      for (const isRunning of [true, false]) {
        const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20, moved: 1, next: due })
        await clock.advance(100)
        const at = redisNow() + 2
        const reply = {
          subscribers: 20,
          moved: 1,
          next: redisNow() + 4,
          leader: 'self',
          leaseUntil: redisNow() + 9,
        } as const
        if (isRunning) scheduler.onAnnounced(at)
        await calls[0]!.reply(reply)
        if (!isRunning) scheduler.onAnnounced(at)
        await clock.advance(2)
        expect(calls).to.have.length(2)
        expect(calls[1]).to.include({ renew: true })
        await calls[1]!.reply(reply)
        await clock.advance(2)
        expect(calls[2]).to.include({ renew: false })
      }
    })

    it('does not run for an announcement that came while another client took over', async () => {
      const { scheduler, clock, calls, redisNow } = await started({ subscribers: 20, moved: 1, next: due })
      await clock.advance(100)
      scheduler.onAnnounced(redisNow() + 50)
      await calls[0]!.reply({ subscribers: 20, next: redisNow() + 60, leader: 'other', leaseUntil: redisNow() + 9 })
      scheduler.onAnnounced(redisNow() + 60)
      await clock.advance(62)
      expect(calls).to.have.length(1)
    })

    it('does not follow when a sweep has run the script meanwhile', async () => {
      const { scheduler, clock, calls } = await started({ subscribers: 20, next: due })
      await clock.advance(101)
      scheduler.wake()
      await calls[0]!.reply({ subscribers: 20 })
      await clock.advance(1000)
      expect(calls).to.have.length(1)
    })
  })

  describe('stop', () => {
    it('waits for the transfer under way, and nothing comes after', async () => {
      const { scheduler, clock, calls, redisNow, settled } = await started({ next: AHEAD + 1000.25 + 50 })
      scheduler.wake()
      scheduler.wake()
      let stopped = false
      void scheduler.stop().then(() => (stopped = true))
      await settled()
      expect(stopped).to.equal(false)
      await calls[0]!.reply({ moved: 1, next: redisNow() - 1 })
      expect(stopped).to.equal(true)

      scheduler.wake()
      scheduler.onSubscribed()
      scheduler.onAnnounced(redisNow() + 1)
      scheduler.onKnown(redisNow() + 1)
      expect(clock.pending).to.deep.equal([])
      await clock.advance(100_000)
      expect(calls).to.have.length(1)
    })

    it('arms nothing with the reply of the transfer under way', async () => {
      const { scheduler, clock, calls, redisNow } = await started()
      scheduler.wake()
      const stopping = scheduler.stop()
      await calls[0]!.reply({ next: redisNow() + 50 })
      await stopping
      expect(clock.pending).to.deep.equal([])
    })

    it('says nothing about a transfer that fails afterwards, and does not try again', async () => {
      const { scheduler, clock, calls, errors } = setUp()
      scheduler.wake()
      const stopping = scheduler.stop()
      await calls[0]!.fail()
      await stopping
      expect(errors).to.deep.equal([])
      expect(clock.pending).to.deep.equal([])
    })

    it('ends the waits for a due time, for others, and after a failure', async () => {
      for (const wait of [50, 101]) {
        const { scheduler, clock, calls } = await started({ subscribers: 9, next: AHEAD + 1000.25 + 100 })
        await clock.advance(wait)
        await scheduler.stop()
        expect(clock.pending).to.deep.equal([])
        await clock.advance(1000)
        expect(calls).to.deep.equal([])
      }
      const { scheduler, clock, calls } = setUp()
      scheduler.wake()
      await calls[0]!.fail()
      await scheduler.stop()
      await clock.advance(10_000)
      expect(calls).to.have.length(1)
    })

    it('can be called twice', async () => {
      const { scheduler, clock } = await started()
      await scheduler.stop()
      await scheduler.stop()
      expect(clock.pending).to.deep.equal([])
    })
  })

  describe('many clients on one queue', () => {
    /** One Redis with one queue; requests and messages take a millisecond or so. */
    class Redis {
      readonly #random: () => number
      readonly #clock: FakeClock
      readonly #deliver: (due: number) => void
      pending: number[] = []
      scripts = 0
      announcements = 0
      readonly callers: DueScheduler[] = []
      readonly lateness: number[] = []
      lease: { readonly holder: unknown; readonly until: number } = { holder: undefined, until: 0 }
      subscribers = 0
      down = false

      constructor(clock: FakeClock, random: () => number, deliver: (due: number) => void) {
        this.#clock = clock
        this.#random = random
        this.#deliver = deliver
      }

      get now(): number {
        return this.#clock.now() + AHEAD
      }

      offer(due: number): void {
        this.pending.push(due)
        this.pending.sort((x, y) => x - y)
        if (this.pending[0] === due) this.#deliver(due)
      }

      /** The essence of transfer.lua. */
      async transfer(client: unknown, { announce, renew }: ScriptOptions): Promise<ScriptResult> {
        await this.#latency()
        if (this.down) throw new Error('down')
        this.scripts++
        let moved = 0
        while (this.pending[0] !== undefined && this.pending[0] <= this.now) {
          this.lateness.push(this.now - this.pending.shift()!)
          moved++
        }
        const [next = null] = this.pending
        const { now, subscribers } = this
        let { holder, until } = this.lease.until > now ? this.lease : { holder: undefined, until: 0 }
        const wanted = moved > 0 ? Math.max(3, Math.min(25, Math.floor(subscribers / 4))) : 0
        const isOther = holder !== undefined && holder !== client
        let isKnown = moved === 0 && next !== null && next < until
        if (wanted > 0 && !isOther) {
          isKnown = holder === client && !renew && next !== null && until - Math.max(next, now) >= wanted / 2
          if (!isKnown) ({ holder, until } = this.lease = { holder: client, until: Math.floor(now) + wanted })
        }
        if ((moved > 0 || announce) && !isKnown) {
          this.announcements++
          this.#deliver(Math.floor(next === null ? now + 3_600_000 : Math.max(next, until)))
        }
        await this.#latency()
        const leader = holder === undefined ? 'none' : holder === client ? 'self' : 'other'
        return { moved, next, now, subscribers, leader, leaseUntil: until, isStuck: false }
      }

      #latency(): Promise<void> {
        return new Promise((resolve) => this.#clock.setTimeout(resolve, 1 + 0.4 * this.#random()))
      }
    }

    function crowd(size: number, seed: number, { announcements = true } = {}) {
      const clock = new FakeClock(0.75)
      const random = randomFrom(seed)
      const schedulers = new Set<DueScheduler>()
      const arrivals = new Map<DueScheduler, number>()
      const redis = new Redis(clock, random, (due) => {
        if (!announcements) return
        for (const scheduler of schedulers) {
          // those of one connection arrive in order
          const arrival = Math.max(arrivals.get(scheduler) ?? 0, clock.now() + 1 + 0.4 * random())
          arrivals.set(scheduler, arrival)
          clock.setTimeout(() => scheduler.onAnnounced(due), arrival - clock.now())
        }
      })
      const errors: Error[] = []
      for (let i = 0; i < size; i++) {
        const scheduler: DueScheduler = new DueScheduler({
          fineWaits: undefined,
          script: (options) => {
            redis.callers.push(scheduler)
            return redis.transfer(scheduler, options)
          },
          isBrief: () => false,
          onError: (error) => errors.push(error),
          clock,
          remote: new RemoteClock(clock),
          random,
        })
        schedulers.add(scheduler)
      }
      redis.subscribers = size
      return { clock, redis, schedulers, random, errors }
    }

    /** Due times far enough apart that each is an event of its own. */
    async function run(seed: number, options: { announcements?: boolean } = {}) {
      const { clock, redis, schedulers, random } = crowd(20, seed, options)
      const start = redis.now
      for (let i = 1; i <= 50; i++) redis.offer(Math.floor(start) + i * 100 + Math.floor(40 * random()))
      for (const scheduler of schedulers) scheduler.onSubscribed()
      await clock.advance(50)
      redis.scripts = 0
      await clock.advance(51 * 100)
      return redis
    }

    it('need at most 4 scripts per due time, and 20 or more without announcements', async () => {
      const seed = Date.now() % 1_000_000
      const announced = await run(seed)
      const unannounced = await run(seed, { announcements: false })
      const scripts = { seed, announced: announced.scripts / 50, unannounced: unannounced.scripts / 50 }
      expect(announced.lateness, JSON.stringify(scripts)).to.have.length(50)
      expect(unannounced.lateness, JSON.stringify(scripts)).to.have.length(50)
      expect(scripts.announced, JSON.stringify(scripts)).to.be.within(1, 4)
      expect(scripts.unannounced, JSON.stringify(scripts)).to.be.at.least(20)
    })

    it('deliver in time, never early, also when the first one goes away', async () => {
      const seed = Date.now() % 1_000_000
      const { clock, redis, schedulers } = crowd(20, seed)
      const start = Math.floor(redis.now)
      for (let i = 1; i <= 18; i++) redis.offer(start + i * 100)
      for (const scheduler of schedulers) scheduler.onSubscribed()
      for (let i = 1; i <= 18; i++) {
        await clock.advance(100)
        // whichever went first is among those that stop sooner or later
        const [gone] = schedulers
        schedulers.delete(gone!)
        void gone!.stop()
        redis.subscribers--
      }
      await clock.advance(100)
      expect(redis.lateness, `seed ${seed}`).to.have.length(18)
      // 3 ms and the spread of 20 clients, two ways of 1.4 ms, and rounding up
      expect(Math.max(...redis.lateness), `seed ${seed}`).to.be.below(3 + 5 + 2 * 1.4 + 2)
      expect(Math.min(...redis.lateness), `seed ${seed}`).to.be.at.least(0)
    })

    /** A message every millisecond from 100 ms on, for 40 clients. */
    function busy(seed: number, count: number) {
      const setup = crowd(40, seed)
      const { redis, schedulers } = setup
      const start = Math.floor(redis.now)
      for (let at = 0; at < count; at++) redis.offer(start + 100 + at)
      for (const scheduler of schedulers) scheduler.onSubscribed()
      return setup
    }

    it('receive leases where a message is due every millisecond, and no follower gets in the way of the leader', async () => {
      const seed = Date.now() % 1_000_000
      const { clock, redis, schedulers } = busy(seed, 300)
      await clock.advance(150)
      redis.scripts = redis.announcements = 0
      for (const scheduler of [...schedulers].slice(0, 20)) {
        await clock.advance(10)
        scheduler.wake() // a sweep takes over
      }
      const figures = `seed ${seed}, ${redis.scripts} scripts, ${redis.announcements} announcements`
      // one client at a time, whose round trip is 2 to 3 ms, and now and then another one until it hears of the next
      expect(redis.scripts, figures).to.be.within(200 / 4, 200 / 2 + 40)
      // a span of 10 ms is renewed when less than half of it would be left, and by each that takes over
      expect(redis.announcements, figures).to.be.within(200 / 10, 200 / 3 + 20)
      await clock.advance(100)
      expect(redis.lateness, figures).to.have.length(300)
    })

    it('take over when the first one goes away in a span that it took care of', async () => {
      const seed = Date.now() % 1_000_000
      const { clock, redis, schedulers } = busy(seed, 300)
      await clock.advance(200)
      const [first] = redis.callers.slice(-1)
      schedulers.delete(first!)
      void first!.stop()
      redis.subscribers--
      const before = redis.lateness.length
      await clock.advance(300)
      const late = redis.lateness.slice(before)
      const figures = `seed ${seed}, ${JSON.stringify(late.slice(0, 30))}`
      expect(redis.lateness, figures).to.have.length(300)
      // the span, 3 ms and the spread, two ways and rounding up
      expect(Math.max(...late), figures).to.be.within(3, 10 + 3 + 10 + 2 * 1.4 + 2)
    })

    it('get everything out after failures and lost messages, with the help of sweeps', async () => {
      const seed = Date.now() % 1_000_000
      const { clock, redis, schedulers, random, errors } = crowd(5, seed)
      for (const scheduler of schedulers) scheduler.onSubscribed()
      let offered = 0
      for (let second = 0; second < 60; second++) {
        redis.down = random() < 0.3
        for (let i = 0; i < 5; i++, offered++) redis.offer(Math.floor(redis.now + 3000 * random()))
        if (second % 5 === 0) for (const scheduler of schedulers) scheduler.wake()
        await clock.advance(1000)
      }
      redis.down = false
      for (let i = 0; i < 3; i++) {
        await clock.advance(5000)
        for (const scheduler of schedulers) scheduler.wake()
      }
      expect(errors.length, `seed ${seed}`).to.be.greaterThan(0)
      expect(redis.lateness, `seed ${seed}`).to.have.length(offered)
      expect(redis.pending, `seed ${seed}`).to.deep.equal([])
    })
  })
})
