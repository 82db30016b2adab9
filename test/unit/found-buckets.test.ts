import { expect } from 'chai'
import { FoundBuckets } from '../../src/doctor/found-buckets.js'

describe('the buckets that a search for queues has found', () => {
  it('are pages of minutes, however old, and keys that are no minutes', () => {
    const found = new FoundBuckets()
    for (const minute of [29_000_000, 7, 499, 28_000_003]) found.add(Buffer.from('minute'), minute)
    for (const name of ['other', '\xfe', '\xff', '\xff']) found.add(Buffer.from(name, 'latin1'), null)
    expect(found.pages).to.deep.equal([0, 28_000_000, 29_000_000])
    expect(found.misnamed.map((name) => name.toString('latin1'))).to.deep.equal(['other', '\xfe', '\xff'])
    expect(found.isCut).to.equal(false)
  })

  it('are cut where there are more than it remembers, but not where a SCAN returns a key twice', () => {
    for (const [most, add] of [
      [10_000, (of: FoundBuckets, n: number) => of.add(Buffer.alloc(0), n * 500)],
      [1_000, (of: FoundBuckets, n: number) => of.add(Buffer.from(String(n)), null)],
    ] as const) {
      const found = new FoundBuckets()
      for (let n = 0; n < most; n++) add(found, n)
      add(found, 3)
      expect(found.isCut).to.equal(false)
      add(found, most)
      expect(found.isCut).to.equal(true)
      expect(found.pages.length + found.misnamed.length).to.equal(most)
    }
  })

  it('are cut where the names have more than 8 MiB', () => {
    const found = new FoundBuckets()
    for (let n = 0; n < 9; n++) found.add(Buffer.alloc(1_024 * 1_024, n), null)
    expect(found.misnamed).to.have.length(8)
    expect(found.isCut).to.equal(true)
  })
})
