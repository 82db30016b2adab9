import { expect } from 'chai'
import { retryDelays } from '../../src/workers/retry-delays.js'
import { RateLimit } from '../../src/workers/rate-limit.js'
import { FakeClock } from '../support/fake-clock.js'

const attempts = [1, 2, 3, 4, 5]

describe('retryDelays', () => {
  it('fixed: always the same', () => {
    expect(attempts.map(retryDelays({ type: 'fixed', delay: 70 }))).to.deep.equal([70, 70, 70, 70, 70])
  })

  it('exponential: doubles up to the most, less a random share', () => {
    const policy = { type: 'exponential', delay: 100, maxDelay: 500 } as const
    expect(attempts.map(retryDelays(policy))).to.deep.equal([100, 200, 400, 500, 500])
    expect(attempts.map(retryDelays({ ...policy, jitter: 0.5 }, () => 0.5))).to.deep.equal([75, 150, 300, 375, 375])
    expect(retryDelays(policy)(1_000)).to.equal(500)
  })

  it('exponential: a first delay of more than an hour needs no maxDelay', () => {
    expect(attempts.map(retryDelays({ type: 'exponential', delay: 7_200_000 }))).to.deep.equal(
      attempts.map(() => 7_200_000),
    )
    expect(retryDelays({ type: 'exponential', delay: 1_000 })(50)).to.equal(3_600_000)
  })

  it('listed: one after the other, then the last', () => {
    const list = ['15s', '3m', '2h', 5]
    expect(attempts.map(retryDelays(list))).to.deep.equal([15_000, 180_000, 7_200_000, 5, 5])
  })

  it('by default up to an hour', () => {
    const delay = retryDelays(undefined, () => 0)
    expect([delay(1), delay(2), delay(50)]).to.deep.equal([1_000, 2_000, 3_600_000])
  })
})

describe('RateLimit', () => {
  it('allows so many in any stretch of its length', async () => {
    const clock = new FakeClock()
    const limit = new RateLimit({ max: 3, perMs: 100 }, clock)
    limit.count(2)
    await clock.advance(40)
    limit.count(1)
    expect([limit.allowed, limit.waitMs]).to.deep.equal([0, 60])
    await clock.advance(60)
    expect([limit.allowed, limit.waitMs]).to.deep.equal([2, 0])
    await clock.advance(40)
    expect(limit.allowed).to.equal(3)
  })
})
