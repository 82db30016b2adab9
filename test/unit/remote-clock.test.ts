import { expect } from 'chai'
import fc from 'fast-check'
import { RemoteClock } from '../../src/timing/remote-clock.js'
import { FakeClock } from '../support/fake-clock.js'

// a power of two, so that sums with small fractions are exact
const AHEAD = 2 ** 40

describe('RemoteClock', () => {
  /** A request that took `there` ms to the server and `back` ms until its reply was read. */
  function ask(clock: FakeClock, remote: RemoteClock, there: number, back: number, ahead = AHEAD): void {
    const sentAt = clock.now()
    clock.jump(there)
    const remoteNow = clock.now() + ahead
    clock.jump(back)
    remote.observe(remoteNow, sentAt)
  }

  it('knows nothing before the first reply: everything is now', () => {
    const clock = new FakeClock(123)
    expect(new RemoteClock(clock).toLocal(AHEAD + 5_000_000)).to.equal(123)
  })

  it('places remote times at most as late as the reply took back, and never early', () => {
    const clock = new FakeClock(1000)
    const remote = new RemoteClock(clock)
    ask(clock, remote, 2, 3)
    expect(remote.toLocal(AHEAD + 2000)).to.equal(2003)
  })

  it('is not spoilt by a reply that is read late', () => {
    const clock = new FakeClock(1000)
    const remote = new RemoteClock(clock)
    ask(clock, remote, 0.25, 0.25)
    ask(clock, remote, 0.25, 500)
    ask(clock, remote, 400, 0.25)
    ask(clock, remote, 300, 300)
    expect(remote.toLocal(AHEAD + 5000)).to.equal(5000.25)
  })

  it('becomes better with a quicker reply, when the first was slow', () => {
    const clock = new FakeClock(1000)
    const remote = new RemoteClock(clock)
    ask(clock, remote, 1, 100)
    expect(remote.toLocal(AHEAD + 5000)).to.equal(5100)
    ask(clock, remote, 0.5, 0.5)
    expect(remote.toLocal(AHEAD + 5000)).to.equal(5000.5)
  })

  for (const [what, change] of [
    ['forth', 3_600_000],
    ['back', -3_600_000],
    ['back by little', -5],
    ['forth by little', 5],
  ] as const) {
    it(`follows a remote clock that is set ${what}`, () => {
      const clock = new FakeClock(1000)
      const remote = new RemoteClock(clock)
      ask(clock, remote, 0.5, 0.5)
      ask(clock, remote, 0.5, 0.5, AHEAD + change)
      expect(remote.toLocal(AHEAD + change + 9000)).to.be.closeTo(9000.5, 1e-3)
    })
  }

  it('follows drift', () => {
    const clock = new FakeClock(1000)
    const remote = new RemoteClock(clock)
    for (let n = 0; n < 1000; n++) {
      ask(clock, remote, 0.25, 0.25, AHEAD + n * 0.05)
      clock.jump(1000)
      const error = remote.toLocal(clock.now() + AHEAD + n * 0.05) - clock.now()
      expect(error).to.be.within(-0.3, 0.55)
    }
  })

  it('is never early, and never later than the quickest reply took, while both clocks run alike', () => {
    const millis = fc.double({ min: 0, max: 50, noNaN: true })
    fc.assert(
      fc.property(fc.array(fc.tuple(millis, millis), { minLength: 1, maxLength: 30 }), (replies) => {
        const clock = new FakeClock(1000)
        const remote = new RemoteClock(clock)
        let quickest = Infinity
        for (const [there, back] of replies) {
          ask(clock, remote, there, back)
          quickest = Math.min(quickest, there + back)
          const late = remote.toLocal(AHEAD + 10_000) - 10_000
          // dates in milliseconds are doubles with steps of 0.00024, and each observation can round by some of them
          expect(late).to.be.at.least(-0.02)
          expect(late).to.be.at.most(quickest + 0.02)
        }
      }),
    )
  })
})
