import { expect } from 'chai'
import { retryDelays, type RetryPolicy } from '../../src/workers/retry-delays.js'
import { RateLimit } from '../../src/workers/rate-limit.js'
import { FakeClock } from '../support/fake-clock.js'

const attempts = [1, 2, 3, 4, 5]
const failure = new Error('no')
/** The delays of the first attempts. */
const delaysOf = (policy: RetryPolicy, random?: () => number): number[] => {
  const delay = retryDelays(policy, random)
  return attempts.map((attempt) => delay(attempt, failure))
}

describe('retryDelays', () => {
  it('fixed: always the same', () => {
    expect(delaysOf({ type: 'fixed', delay: 70 })).to.deep.equal([70, 70, 70, 70, 70])
  })

  it('exponential: doubles up to the most, less a random share', () => {
    const policy = { type: 'exponential', delay: 100, maxDelay: 500 } as const
    expect(delaysOf(policy)).to.deep.equal([100, 200, 400, 500, 500])
    expect(delaysOf({ ...policy, jitter: 0.5 }, () => 0.5)).to.deep.equal([75, 150, 300, 375, 375])
    expect(retryDelays(policy)(1_000, failure)).to.equal(500)
  })

  it('exponential: a first delay of more than an hour needs no maxDelay', () => {
    expect(delaysOf({ type: 'exponential', delay: 7_200_000 })).to.deep.equal(attempts.map(() => 7_200_000))
    expect(retryDelays({ type: 'exponential', delay: 1_000 })(50, failure)).to.equal(3_600_000)
  })

  it('listed: one after the other, then the last', () => {
    const list = ['15s', '3m', '2h', 5] as const
    expect(delaysOf(list)).to.deep.equal([15_000, 180_000, 7_200_000, 5, 5])
  })

  it('a function: the delay that it returns for the attempt and its error', () => {
    const policy = (attempt: number, error: Error) => (error === failure ? attempt * 10 : '15s')
    expect(delaysOf(policy)).to.deep.equal([10, 20, 30, 40, 50])
    expect(retryDelays(policy)(1, new Error('another'))).to.equal(15_000)
    expect(delaysOf((attempt) => 100 * 1.5 ** attempt)).to.deep.equal([150, 225, 338, 506, 759])
    for (const wrong of [-1, NaN, Infinity, 'soon', undefined, null, 400 * 86_400_000]) {
      expect(() => retryDelays(() => wrong as number)(1, failure), String(wrong)).to.throw(/what backoff returns/)
    }
  })

  it('by default up to an hour', () => {
    const delay = retryDelays(undefined, () => 0)
    expect([1, 2, 50].map((attempt) => delay(attempt, failure))).to.deep.equal([1_000, 2_000, 3_600_000])
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
