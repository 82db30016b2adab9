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

  it('says when to send so that it arrives at the time', () => {
    const clock = new FakeClock(1000)
    const remote = new RemoteClock(clock)
    ask(clock, remote, 2, 3)
    expect(remote.toLocal(AHEAD + 2000)).to.equal(1998)
  })

  it('is not spoilt by a reply that is read late or a command that is slow on its way', () => {
    const clock = new FakeClock(1000)
    const remote = new RemoteClock(clock)
    ask(clock, remote, 0.25, 0.25)
    ask(clock, remote, 0.25, 500)
    ask(clock, remote, 400, 0.25)
    ask(clock, remote, 300, 300)
    expect(remote.toLocal(AHEAD + 5000)).to.equal(4999.75)
  })

  it('becomes better with a quicker command, when the first was slow', () => {
    const clock = new FakeClock(1000)
    const remote = new RemoteClock(clock)
    ask(clock, remote, 100, 1)
    expect(remote.toLocal(AHEAD + 5000)).to.equal(4900)
    ask(clock, remote, 0.5, 0.5)
    expect(remote.toLocal(AHEAD + 5000)).to.equal(4999.5)
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
      expect(remote.toLocal(AHEAD + change + 9000)).to.be.closeTo(8999.5, 1e-3)
    })
  }

  it('follows drift', () => {
    const clock = new FakeClock(1000)
    const remote = new RemoteClock(clock)
    for (let n = 0; n < 1000; n++) {
      ask(clock, remote, 0.25, 0.25, AHEAD + n * 0.05)
      clock.jump(1000)
      const error = remote.toLocal(clock.now() + AHEAD + n * 0.05) - clock.now()
      expect(error).to.be.within(-0.3, 0.3)
    }
  })

  it('lets nothing run early that takes as long as the quickest so far, while both clocks run alike', () => {
    const millis = fc.double({ min: 0, max: 50, noNaN: true })
    fc.assert(
      fc.property(fc.array(fc.tuple(millis, millis), { minLength: 1, maxLength: 30 }), (commands) => {
        const clock = new FakeClock(1000)
        const remote = new RemoteClock(clock)
        let quickest = Infinity
        for (const [there, back] of commands) {
          ask(clock, remote, there, back)
          quickest = Math.min(quickest, there)
          const late = remote.toLocal(AHEAD + 10_000) + quickest - 10_000
          // dates in milliseconds are doubles with steps of 0.00024, and each observation can round by some of them
          expect(late).to.be.within(-0.02, 0.02)
        }
      }),
    )
  })
})
