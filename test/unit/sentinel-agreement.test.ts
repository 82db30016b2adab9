import { expect } from 'chai'
import { SentinelAgreement } from '../../src/redis/topology/sentinel-agreement.js'

describe('The agreement of sentinels on a master', () => {
  const [M, X] = ['10.0.0.1:6379', '10.0.0.2:6379']
  /** Each letter is a sentinel that answers, with M; with X after a colon. */
  const asked = (answers: string, agreement = new SentinelAgreement<string>(3, 1_000)): SentinelAgreement<string> => {
    for (const answer of answers.split(' ')) {
      const [sentinel = '', other] = answer.split(':')
      agreement.answered(sentinel, other === undefined ? M : X)
    }
    return agreement
  }

  it('is there when each has named it twice', () => {
    expect(asked('a b c a b').isOn(M, 0)).to.equal(false)
    expect(asked('a b c a b c').isOn(M, 0)).to.equal(true)
    expect(asked('a b c a b c').isOn(X, 0)).to.equal(false)
  })

  it('is there when some cannot be reached, but more than half can', () => {
    expect(asked('a b a b').isOn(M, 0)).to.equal(true)
    expect(asked('a a').isOn(M, 0)).to.equal(false)
    expect(new SentinelAgreement(3, 1_000).isOn(M, 0)).to.equal(false)
    expect(asked('a a', new SentinelAgreement(1, 1_000)).isOn(M, 0)).to.equal(true)
  })

  it('ends when one names another, for a moment or not', () => {
    expect(asked('a b c a b c a:X').isOn(M, 0)).to.equal(false)
    expect(asked('a b c a b c a:X a').isOn(M, 0), 'once again').to.equal(false)
    expect(asked('a b c a b c a:X a a').isOn(M, 0), 'twice again').to.equal(true)
  })

  it('begins anew when a sentinel has announced a master, and without one that names none', () => {
    const agreement = asked('a b c a b c')
    agreement.forget('c')
    expect(agreement.isOn(M, 0)).to.equal(true)
    agreement.forget('b')
    expect(agreement.isOn(M, 0), 'one of three').to.equal(false)
    asked('b c b c', agreement)
    agreement.reset()
    expect(agreement.isOn(M, 0)).to.equal(false)
    expect(asked('a b c a b c', agreement).isOn(M, 0)).to.equal(true)
  })

  it('closes connections that lead elsewhere more and more seldom, until one led there', () => {
    const agreement = asked('a b c a b c')
    const rests = (now: number): number => {
      let later = now
      while (!agreement.isOn(M, later)) later += 1_000
      return later - now
    }
    expect(agreement.compared(M, true, 0), 'a warning').to.equal(false)
    expect(rests(0)).to.equal(2_000)
    expect(agreement.compared(M, true, 2_000), 'a warning').to.equal(true)
    expect(rests(2_000)).to.equal(4_000)
    for (let again = 0; again < 20; again++) expect(agreement.compared(M, true, 6_000), 'a warning').to.equal(false)
    expect(rests(6_000)).to.equal(3_600_000)
    agreement.compared(M, false, 6_000)
    expect(rests(6_000)).to.equal(0)
    expect(agreement.compared(M, true, 6_000), 'a warning').to.equal(false)
    expect(rests(6_000)).to.equal(2_000)
  })

  it('closes connections at once when another master is agreed on', () => {
    const agreement = asked('a b c a b c')
    for (let again = 0; again < 9; again++) agreement.compared(M, true, 0)
    asked('a:X b:X c:X a:X b:X c:X', agreement)
    expect(agreement.isOn(X, 0)).to.equal(true)
    agreement.compared(X, true, 0)
    asked('a b c a b c', agreement)
    expect(agreement.isOn(M, 0)).to.equal(true)
    agreement.compared(M, true, 0)
    expect(agreement.isOn(M, 1_999)).to.equal(false)
    expect(agreement.isOn(M, 2_000)).to.equal(true)
  })
})
