import { expect } from 'chai'
import { clusterRetryStrategy } from '../../src/redis/topology/cluster-retries.js'

describe('clusterRetryStrategy', () => {
  function setUp() {
    let now = 0
    const strategy = clusterRetryStrategy(
      () => now,
      () => 1,
    )
    /** The attempt that follows the wait fails after so many milliseconds. */
    const next = (tookMs: number): number => {
      const delayMs = strategy()
      now += delayMs + tookMs
      return delayMs
    }
    return next
  }

  it('waits longer where every node breaks off at once, up to a second', () => {
    const next = setUp()
    expect(Array.from({ length: 7 }, () => next(5))).to.deep.equal([100, 200, 400, 800, 1_000, 1_000, 1_000])
  })

  it('begins anew when the cluster was there for more than a second', () => {
    const next = setUp()
    expect([next(5), next(5), next(1_500), next(5), next(5)]).to.deep.equal([100, 200, 400, 100, 200])
  })
})
