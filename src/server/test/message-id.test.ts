import { expect } from 'chai'
import { drawId } from '../journal/message-id.js'

describe('ids that the service draws', () => {
  const NOW = 1_795_000_000_000
  const bitsOf = (id: string): string =>
    BigInt(`0x${id.replaceAll('-', '')}`)
      .toString(2)
      .padStart(128, '0')

  it('have 74 random bits behind the time, the version and the variant', () => {
    const drawn = Array.from({ length: 2_000 }, () => drawId(NOW))
    expect(new Set(drawn)).to.have.property('size', drawn.length)
    const all = drawn.map(bitsOf)
    const shares = Array.from({ length: 128 }, (_, at) => all.filter((bits) => bits[at] === '1').length / all.length)
    const fixed = shares.flatMap((share, at) => (share === 0 || share === 1 ? [at] : []))
    const expected = [...Array.from({ length: 52 }, (_, at) => at), 64, 65]
    expect(fixed).to.deep.equal(expected)
    // seven standard deviations around a half
    for (const share of shares.filter((_, at) => !expected.includes(at))) expect(share).to.be.within(0.42, 0.58)
    expect(parseInt(all[0]?.slice(0, 48) ?? '', 2)).to.equal(NOW)
  })
})
