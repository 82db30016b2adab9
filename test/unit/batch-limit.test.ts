import { expect } from 'chai'
import { BatchLimit } from '../../src/scheduler/batch-limit.js'
import { FakeClock } from '../support/fake-clock.js'

/** A server whose clock stands still in scripts: `each` milliseconds per entry, `latency` for the way there and back. */
function drain(limit: BatchLimit, entries: number, each: number, latency: number): number[] {
  const worked: number[] = []
  for (let left = entries; left > 0;) {
    const moved = Math.min(left, limit.value)
    left -= moved
    worked.push(moved * each)
    limit.observe({ moved, workedUs: 0 }, latency + moved * each)
  }
  return worked
}

describe('BatchLimit', () => {
  it('starts at 100 and leaves the limit to the script where the clock moves', () => {
    const limit = new BatchLimit(new FakeClock())
    expect(limit.value).to.equal(100)
    limit.observe({ moved: 1, workedUs: 40 }, 0.3)
    expect(limit.value).to.equal(10_000)
  })

  for (const [what, each, latency] of [
    ['quick entries', 0.002, 0.2],
    ['quick entries and a slow network', 0.002, 40],
    ['slow entries', 0.6, 0.2],
    ['slow entries and a slow network', 0.6, 40],
  ] as const) {
    it(`comes near 2 ms a script and stays there with ${what}`, () => {
      const limit = new BatchLimit(new FakeClock())
      drain(limit, 1, each, latency) // the quickest reply
      const worked = drain(limit, 100_000, each, latency).slice(5, -1)
      expect(Math.max(...worked)).to.be.at.most(Math.max(4.1, 10 * each))
      const mean = worked.reduce((sum, ms) => sum + ms, 0) / worked.length
      expect(mean).to.be.at.least(1)
    })
  }

  it('recovers within a minute when the network has become slower', async () => {
    const clock = new FakeClock()
    const limit = new BatchLimit(clock)
    drain(limit, 1, 0.002, 0)
    drain(limit, 10_000, 0.002, 40)
    expect(limit.value).to.equal(10)
    await clock.advance(60_000)
    drain(limit, 20_000, 0.002, 40)
    expect(limit.value).to.be.within(500, 2_000)
  })

  for (const [what, each, entries] of [
    ['quick', 0.002, 100_000],
    ['slow', 0.6, 2_000],
  ] as const)
    it(`stays near 2 ms a script when there is more to move for an hour, also after each measurement, with ${what} entries`, async () => {
      const clock = new FakeClock()
      const limit = new BatchLimit(clock)
      drain(limit, 1, each, 0.2)
      drain(limit, entries, each, 0.2)
      for (let minute = 0; minute < 60; minute++) {
        await clock.advance(60_000)
        expect(Math.max(...drain(limit, entries, each, 0.2))).to.be.at.most(Math.max(4.1, 11 * each))
      }
    })

  it('goes on with its limit after a measurement', async () => {
    const clock = new FakeClock()
    const limit = new BatchLimit(clock)
    drain(limit, 100_000, 0.002, 0.2)
    const before = limit.value
    await clock.advance(60_000)
    limit.observe({ moved: 1, workedUs: 0 }, 0.2)
    expect(limit.value, 'measures').to.equal(1)
    limit.observe({ moved: 1, workedUs: 0 }, 0.2)
    expect(limit.value).to.equal(before)
  })

  it('does not grow while there is little to move', () => {
    const limit = new BatchLimit(new FakeClock())
    for (let i = 0; i < 100; i++) limit.observe({ moved: 1, workedUs: 0 }, 0.2 + (i % 3) * 0.1)
    expect(limit.value).to.equal(100)
  })

  it('never falls below 10 nor rises above 10,000', () => {
    const slow = new BatchLimit(new FakeClock())
    drain(slow, 1, 1, 0)
    drain(slow, 1_000, 100, 0)
    expect(slow.value).to.equal(10)
    const quick = new BatchLimit(new FakeClock())
    drain(quick, 1_000_000, 0, 0)
    expect(quick.value).to.equal(10_000)
  })
})
