import { expect } from 'chai'
import { timestampUnit } from '../../src/timing/timestamp-delay.js'

const NOW = Date.UTC(2026, 10, 23, 12, 34, 56) + 789
const DAY = 86_400_000

describe('a delay that is a point in time', () => {
  it('is one between 2001 and 2100 in milliseconds', () => {
    for (const time of [NOW, NOW + 5_000, Date.UTC(2001, 0), Date.UTC(2099, 11, 31)]) {
      expect(timestampUnit(time, NOW)).to.equal('milliseconds')
    }
  })

  it('is one near today in seconds', () => {
    const seconds = Math.floor(NOW / 1_000)
    for (const time of [seconds, seconds + 3_601, seconds - 3_601]) expect(timestampUnit(time, NOW)).to.equal('seconds')
  })

  it('is no ordinary delay', () => {
    const round = Math.ceil(NOW / 1_000 / 60_000) * 60_000 // such as 20 days, 15 hours and 5 minutes
    const days = [0, 1, 14, 19, 20, 21, 22, 30, 31, 365, 3_650, 11_000].map((count) => count * DAY)
    for (const delay of [...days, 5_000, 1_234_567, round, Number.MAX_SAFE_INTEGER]) {
      expect(timestampUnit(delay, NOW), String(delay)).to.equal(undefined)
    }
  })
})
