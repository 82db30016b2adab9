import { expect } from 'chai'
import { Histogram } from 'prom-client'
import { RecentLateness } from '../api/recent-lateness.js'

const MINUTE = 60_000

describe('recent lateness', () => {
  it('counts messages handed out between two reads of the last five minutes, and none before', async () => {
    const histogram = new Histogram({ name: 'late', help: 'late', buckets: [0.01, 10, 100], registers: [] })
    const recent = new RecentLateness([histogram])
    const isLate = async (at: number): Promise<boolean | null> => {
      const read = await recent.read(at)
      return read && read.p99 > 10
    }
    histogram.observe(50) // before the first read, which can be after any time
    expect(await isLate(0)).to.equal(null)
    histogram.observe(0.001)
    expect(await isLate(1_000)).to.equal(false)
    histogram.observe(50)
    expect(await isLate(MINUTE)).to.equal(true)
    expect(await isLate(5 * MINUTE)).to.equal(true)
    expect(await isLate(6 * MINUTE + 1)).to.equal(null)
    histogram.observe(50) // in an hour without readers
    expect(await isLate(66 * MINUTE)).to.equal(null)
    histogram.observe(0.001)
    expect(await isLate(67 * MINUTE)).to.equal(false)
  })
})
