import { expect } from 'chai'
import fc from 'fast-check'
import { backoffDelay } from '../../src/timing/backoff.js'

describe('backoffDelay', () => {
  const backoff = { baseMs: 100, maxMs: 5_000 }

  it('doubles up to its maximum', () => {
    const delays = (random: number) =>
      [1, 2, 3, 4, 5, 6, 7, 8, 50, 1e9].map((attempt) => backoffDelay(backoff, attempt, random))
    expect(delays(0)).to.deep.equal([50, 100, 200, 400, 800, 1600, 2500, 2500, 2500, 2500])
    expect(delays(0.5)).to.deep.equal([75, 150, 300, 600, 1200, 2400, 3750, 3750, 3750, 3750])
  })

  it('stays in the upper half of each step, and spreads over it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 31 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, random) => {
          const ceiling = Math.min(5_000, 100 * 2 ** Math.min(attempt - 1, 30))
          const delay = backoffDelay(backoff, attempt, random)
          expect(delay).to.be.at.least(ceiling / 2)
          expect(delay).to.be.at.most(ceiling)
          expect(delay).to.be.closeTo(ceiling / 2 + (random * ceiling) / 2, 1e-9)
        },
      ),
    )
  })

  it('is never longer than its maximum when the first wait would be', () => {
    expect(backoffDelay({ baseMs: 1000, maxMs: 10 }, 1, 0.999)).to.be.at.most(10)
  })
})
