import { expect } from 'chai'
import fc from 'fast-check'
import { systemClock, type Clock } from '../../src/timing/clock.js'
import { DeadlineTimer, MAX_TIMEOUT_MS } from '../../src/timing/deadline-timer.js'
import { FineWaits } from '../../src/timing/fine-waits.js'
import { FakeClock } from '../support/fake-clock.js'

const DAY = 86_400_000

function setUp(clock: FakeClock = new FakeClock(1000.25), seen: Clock = clock) {
  const fired: number[] = []
  const timer = new DeadlineTimer(seen, () => fired.push(clock.now()))
  return { clock, timer, fired }
}

describe('DeadlineTimer', () => {
  it('fires once, at its deadline', async () => {
    const { clock, timer, fired } = setUp()
    timer.replace(1050.25)
    expect(timer.deadline).to.equal(1050.25)
    await clock.advance(49.9)
    expect(fired).to.deep.equal([])
    await clock.advance(10_000)
    expect(fired).to.deep.equal([1050.25])
    expect(timer.deadline).to.equal(Infinity)
    expect(clock.pending).to.deep.equal([])
  })

  it('keeps the earlier of two deadlines with lower', async () => {
    const { clock, timer, fired } = setUp()
    timer.lower(1100)
    timer.lower(1500)
    expect(timer.deadline).to.equal(1100)
    timer.lower(1050)
    timer.lower(1050)
    timer.lower(1080)
    expect(timer.deadline).to.equal(1050)
    expect(clock.pending).to.have.length(1)
    await clock.advance(10_000)
    expect(fired).to.have.length(1)
    expect(fired[0]).to.be.within(1050, 1051.25)
  })

  it('forgets the old deadline with replace, be it earlier or later', async () => {
    const { clock, timer, fired } = setUp()
    timer.replace(1100)
    timer.replace(1500)
    await clock.advance(400)
    expect(fired).to.deep.equal([])
    timer.replace(1450)
    expect(clock.pending).to.have.length(1)
    await clock.advance(50)
    expect(fired).to.have.length(1)
  })

  it('is disarmed by clear, and by a deadline that is not a time', async () => {
    const { clock, timer, fired } = setUp()
    for (const disarm of [() => timer.clear(), () => timer.replace(Infinity), () => timer.replace(NaN)]) {
      timer.replace(1100)
      disarm()
      expect(timer.deadline).to.equal(Infinity)
      expect(clock.pending).to.deep.equal([])
    }
    timer.clear()
    timer.lower(Infinity)
    timer.lower(NaN)
    await clock.advance(1000)
    expect(fired).to.deep.equal([])
  })

  it('can be armed again after clear', async () => {
    const { clock, timer, fired } = setUp()
    timer.replace(1100)
    timer.clear()
    timer.lower(1200)
    await clock.advance(1000)
    expect(fired).to.have.length(1)
    expect(fired[0]).to.be.within(1200, 1201)
  })

  it('can be armed while it fires', async () => {
    const clock = new FakeClock()
    const fired: number[] = []
    const timer: DeadlineTimer = new DeadlineTimer(clock, () => {
      fired.push(clock.now())
      if (fired.length < 3) timer.lower(clock.now() + 10)
    })
    timer.lower(10)
    await clock.advance(100)
    expect(fired).to.deep.equal([10, 20, 30])
  })

  it('fires soon for a deadline in the past, but not within the call', async () => {
    const { clock, timer, fired } = setUp()
    timer.replace(-Infinity)
    expect(fired).to.deep.equal([])
    await clock.advance(1)
    timer.replace(5)
    expect(fired).to.have.length(1)
    await clock.advance(1)
    expect(fired).to.have.length(2)
  })

  for (const days of [24, 25, 30, 60, 1000]) {
    it(`waits ${days} days in steps that Node can wait`, async () => {
      const { clock, timer, fired } = setUp()
      timer.replace(1000.25 + days * DAY)
      let steps = 0
      while (clock.pending[0] !== undefined) {
        expect(clock.pending[0]).to.be.at.most(MAX_TIMEOUT_MS)
        expect(fired).to.deep.equal([])
        await clock.advance(clock.pending[0])
        steps++
      }
      expect(fired).to.deep.equal([1000.25 + days * DAY])
      expect(steps).to.be.below(days)
    })
  }

  it('can be lowered in the middle of a long wait', async () => {
    const { clock, timer, fired } = setUp()
    timer.replace(60 * DAY)
    await clock.advance(30 * DAY)
    timer.lower(30 * DAY + 5000)
    await clock.advance(4500)
    expect(fired).to.have.length(1)
  })

  it('waits once more when the timer of the platform fires early', async () => {
    const clock = new FakeClock(0.6)
    // as Node, whose timers count whole milliseconds from the start of the loop's turn
    const early: Clock = {
      now: () => clock.now(),
      setTimeout: (callback, ms) => clock.setTimeout(callback, Math.max(1, ms - 0.9)),
      clearTimeout: (handle) => clock.clearTimeout(handle),
    }
    const { timer, fired } = setUp(clock, early)
    for (let i = 1; i <= 50; i++) {
      const deadline = clock.now() + i * 1.37
      timer.replace(deadline)
      await clock.advance(i * 1.37 + 3)
      expect(fired).to.have.length(i)
      expect(fired.at(-1)).to.be.within(deadline, deadline + 2)
    }
  })

  for (const [what, ms] of [
    ['two seconds', 2_000],
    ['a minute', 60_000],
    ['a day', DAY],
    ['a month', 30 * DAY],
  ] as const) {
    it(`is at most a millisecond late after ${what} where waits end late by a thousandth`, async () => {
      const clock = new FakeClock(0.6)
      const slack: Clock = {
        now: () => clock.now(),
        setTimeout: (callback, wait) =>
          clock.setTimeout(callback, Math.min(wait + Math.min(wait / 1000, 100), MAX_TIMEOUT_MS)),
        clearTimeout: (handle) => clock.clearTimeout(handle),
      }
      const { timer, fired } = setUp(clock, slack)
      timer.replace(ms)
      await clock.advance(ms + 200)
      expect(fired).to.have.length(1)
      expect(fired[0]).to.be.within(ms, ms + 1.1)
    })
  }

  it('fires late, and once, after the process was suspended', async () => {
    const { clock, timer, fired } = setUp()
    timer.replace(1100)
    clock.jump(100_000)
    await clock.advance(0)
    expect(fired).to.have.length(1)
  })

  describe('with fine waits', () => {
    const setUpFine = (clock = new FakeClock(1000.25)) => {
      const fired: number[] = []
      const waits = new FineWaits(clock)
      return { clock, fired, waits, timer: new DeadlineTimer(clock, () => fired.push(clock.now()), waits) }
    }
    const turns = async (count = 3) => {
      for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
    }

    it('waits whole milliseconds by a timer, and the rest by turns of the event loop', async () => {
      const { clock, timer, fired } = setUpFine()
      timer.replace(1050.95, true)
      expect(clock.pending).to.deep.equal([50])
      await clock.advance(50)
      expect(clock.pending).to.deep.equal([])
      await turns()
      expect(fired).to.deep.equal([])
      clock.jump(0.7)
      await turns()
      expect(fired).to.deep.equal([1050.95])
      expect(timer.deadline).to.equal(Infinity)
    })

    it('rounds up where the owner does not ask for a fine wait, and where none is allowed', async () => {
      const { clock, timer, fired, waits } = setUpFine()
      timer.replace(1050.95)
      expect(clock.pending).to.deep.equal([51])
      Object.defineProperty(waits, 'areAllowed', { value: false })
      timer.replace(1050.95, true)
      expect(clock.pending).to.deep.equal([51])
      await clock.advance(51)
      expect(fired).to.deep.equal([1051.25])
    })

    it('goes on by a timer when the time of fine waits is over', async () => {
      const { clock, timer, fired, waits } = setUpFine()
      const early: (() => void)[] = []
      waits.begin = (_, end) => {
        early.push(end)
        return () => undefined
      }
      timer.replace(1000.75, true)
      Object.defineProperty(waits, 'areAllowed', { value: false })
      early[0]!()
      expect(fired).to.deep.equal([])
      expect(clock.pending).to.deep.equal([1])
      await clock.advance(1)
      expect(fired).to.deep.equal([1001.25])
    })

    it('can be disarmed and replaced during a fine wait', async () => {
      const { clock, timer, fired } = setUpFine()
      timer.replace(1000.75, true)
      timer.clear()
      clock.jump(10)
      await turns()
      expect(fired).to.deep.equal([])
      timer.replace(clock.now() + 0.5, true)
      timer.replace(clock.now() + 30.5, true)
      expect(clock.pending).to.deep.equal([30])
      clock.jump(5)
      await turns()
      expect(fired).to.deep.equal([])
      timer.clear()
    })

    it('never fires before the deadline by the clock of the process', async () => {
      for (let i = 0; i < 30; i++) {
        const deadline = systemClock.now() + (i % 4) + i / 30
        const late = await new Promise<number>((resolve) => {
          const timer = new DeadlineTimer(
            systemClock,
            () => resolve(systemClock.now() - deadline),
            new FineWaits(systemClock),
          )
          timer.replace(deadline, true)
        })
        expect(late).to.be.at.least(0)
      }
    })
  })

  it('never fires early nor more than a millisecond late, whatever its deadlines', async () => {
    const action = fc.record({
      how: fc.constantFrom('lower' as const, 'replace' as const, 'clear' as const, 'wait' as const),
      ms: fc.double({ min: -5, max: 100, noNaN: true }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        const clock = new FakeClock(0.5)
        let deadline = Infinity
        const timer = new DeadlineTimer(clock, () => {
          expect(clock.now()).to.be.at.least(deadline)
          // FakeClock, as Node, waits no less than a millisecond
          expect(clock.now()).to.be.at.most(Math.max(deadline, armedAt) + 1.001)
          deadline = Infinity
        })
        let armedAt = 0
        for (const { how, ms } of actions) {
          const time = clock.now() + ms
          if (how === 'wait') await clock.advance(Math.abs(ms))
          else if (how === 'clear') {
            timer.clear()
            deadline = Infinity
          } else {
            if (how === 'replace' || time < deadline) [deadline, armedAt] = [time, clock.now()]
            timer[how](time)
          }
          expect(timer.deadline).to.equal(deadline)
        }
        await clock.advance(200)
        expect(deadline).to.equal(Infinity)
      }),
    )
  })
})
