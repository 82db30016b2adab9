import { expect } from 'chai'
import { SentinelAgreement } from '../../src/redis/topology/sentinel-agreement.js'

describe('The agreement of sentinels on a master', () => {
  const [M, X] = ['10.0.0.1:6379', '10.0.0.2:6379']
  const of = (count: number): SentinelAgreement<string> => new SentinelAgreement(count, 1_000)
  /** Each letter is a sentinel that answers, with M; with X after a colon. */
  const asked = (answers: string, agreement = of(3)): SentinelAgreement<string> => {
    for (const answer of answers.split(' ')) {
      const [sentinel = '', other] = answer.split(':')
      agreement.answered(sentinel, other === undefined ? M : X)
    }
    return agreement
  }

  it('is there when each has named it twice', () => {
    expect(asked('a b c a b').closesOn(M, 0)).to.equal(false)
    expect(asked('a b c a b c').closesOn(M, 0)).to.equal(true)
    expect(asked('a b c a b c').closesOn(X, 0)).to.equal(false)
  })

  it('is there when some cannot be reached, but more than half can, and at least two', () => {
    expect(asked('a b a b').closesOn(M, 0)).to.equal(true)
    expect(asked('a a').closesOn(M, 0)).to.equal(false)
    expect(of(3).closesOn(M, 0)).to.equal(false)
    expect(asked('a a', of(1)).closesOn(M, 0), 'the only one').to.equal(false)
    expect(asked('a b a b', of(4)).closesOn(M, 0), 'half of them').to.equal(false)
    const agreement = asked('a b c a b c')
    agreement.forget('c')
    expect(agreement.closesOn(M, 0)).to.equal(true)
    agreement.forget('b')
    expect(agreement.closesOn(M, 0)).to.equal(false)
  })

  it('ends when one names another, for a moment or not', () => {
    expect(asked('a b c a b c a:X').closesOn(M, 0)).to.equal(false)
    expect(asked('a b c a b c a:X a').closesOn(M, 0), 'once again').to.equal(false)
    expect(asked('a b c a b c a:X a a').closesOn(M, 0), 'twice again').to.equal(true)
  })

  it('begins anew when a sentinel has named another master: the others lag behind it', () => {
    const agreement = asked('a b c a b c')
    agreement.moved('a', X, 0)
    asked('b c b c', agreement)
    expect(agreement.closesOn(M, 60_000), 'it names another one').to.equal(false)
    agreement.forget('a')
    expect(agreement.closesOn(M, 2_999), 'it has disappeared').to.equal(false)
    expect(agreement.closesOn(M, 3_000)).to.equal(true)
    asked('a:X b:X c:X a:X b:X c:X', agreement)
    expect(agreement.closesOn(X, 3_000)).to.equal(true)
  })

  const rest = (agreement: SentinelAgreement<string>, now: number, master = M): number => {
    let later = now
    while (!agreement.closesOn(master, later)) later += 1_000
    return later - now
  }

  it('closes connections that lead elsewhere again and again less and less often', () => {
    const agreement = asked('a b c a b c')
    expect(agreement.closed(M, 0), 'a warning').to.equal(false)
    expect(rest(agreement, 0)).to.equal(2_000)
    expect(agreement.closed(M, 2_000), 'a warning').to.equal(true)
    expect(rest(agreement, 2_000)).to.equal(4_000)
    for (let again = 0; again < 20; again++) expect(agreement.closed(M, 6_000), 'a warning').to.equal(false)
    expect(rest(agreement, 6_000), 'at most').to.equal(600_000)
  })

  it('closes connections at once when they led to the master meanwhile, and when another one is agreed on', () => {
    const agreement = asked('a b c a b c')
    for (let again = 0; again < 9; again++) agreement.closed(M, 0)
    asked('a:X b:X c:X a:X b:X c:X', agreement)
    expect(rest(agreement, 0, X)).to.equal(0)
    agreement.matched(X)
    asked('a b c a b c', agreement)
    expect(rest(agreement, 0)).to.equal(512_000)
    agreement.matched(M)
    expect(rest(agreement, 0)).to.equal(0)
    expect(agreement.closed(M, 0), 'a warning').to.equal(false)
  })

  it('forgets the closings of all but eight masters', () => {
    const agreement = asked('a b c a b c')
    agreement.closed(M, 0)
    for (let n = 0; n < 7; n++) agreement.closed(`10.0.0.${n + 10}:6379`, 0)
    expect(rest(agreement, 0)).to.equal(2_000)
    agreement.closed(X, 0)
    expect(rest(agreement, 0)).to.equal(0)
  })
})
