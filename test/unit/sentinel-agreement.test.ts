import { expect } from 'chai'
import { SentinelAgreement } from '../../src/redis/topology/sentinel-agreement.js'

describe('The agreement of sentinels on a master', () => {
  const [M, X] = ['10.0.0.1:6379', '10.0.0.2:6379']
  const of = (count: number): SentinelAgreement<string> => new SentinelAgreement(count, 1_000)
  /** Each letter is a sentinel that answers, with M; with X after a colon. */
  const asked = (answers: string, agreement = of(3), now = 0): SentinelAgreement<string> => {
    for (const answer of answers.split(' ')) {
      const [sentinel = '', other] = answer.split(':')
      agreement.answered(sentinel, other === undefined ? M : X, now)
    }
    return agreement
  }

  it('is there when each has named it twice', () => {
    expect(asked('a b c a b').agreesOn(M, 0)).to.equal(false)
    expect(asked('a b c a b c').agreesOn(M, 0)).to.equal(true)
    expect(asked('a b c a b c').agreesOn(X, 0)).to.equal(false)
  })

  it('is there when some cannot be reached, but more than half can, and at least two', () => {
    expect(asked('a b a b').agreesOn(M, 0)).to.equal(true)
    expect(asked('a a').agreesOn(M, 0)).to.equal(false)
    expect(of(3).agreesOn(M, 0)).to.equal(false)
    expect(asked('a a', of(1)).agreesOn(M, 0), 'the only one').to.equal(false)
    expect(asked('a b a b', of(4)).agreesOn(M, 0), 'half of them').to.equal(false)
    const agreement = asked('a b c a b c')
    agreement.forget('c')
    expect(agreement.agreesOn(M, 0)).to.equal(true)
    agreement.forget('b')
    expect(agreement.agreesOn(M, 0)).to.equal(false)
  })

  it('ends when one names another, for a moment or not, and for three seconds no answer counts', () => {
    const agreement = asked('a b c a b c')
    asked('a:X', agreement)
    expect(agreement.agreesOn(M, 9_000)).to.equal(false)
    asked('a a', agreement, 1_000)
    asked('a b c a b c', agreement, 3_999)
    expect(agreement.agreesOn(M, 9_000), 'within three seconds').to.equal(false)
    asked('a b c', agreement, 4_000)
    expect(agreement.agreesOn(M, 9_000), 'once').to.equal(false)
    asked('a b c', agreement, 4_000)
    expect(agreement.agreesOn(M, 9_000), 'twice').to.equal(true)
  })

  it('begins anew when a sentinel has announced another master: the others lag behind it', () => {
    const agreement = asked('a b c a b c')
    agreement.moved('a', X, 0)
    asked('b c b c', agreement)
    agreement.forget('a')
    expect(agreement.agreesOn(M, 2_999), 'it has disappeared').to.equal(false)
    expect(agreement.agreesOn(M, 9_000), 'answers of the others before they learned of it').to.equal(false)
    asked('a:X b:X c:X', agreement, 2_000)
    asked('a:X b:X c:X', agreement, 5_000)
    expect(agreement.agreesOn(X, 5_000)).to.equal(false)
    asked('a:X b:X c:X', agreement, 5_000)
    expect(agreement.agreesOn(X, 5_000)).to.equal(true)
  })

  const rest = (agreement: SentinelAgreement<string>, now: number, master = M): number => {
    let later = now
    while (agreement.rests(master, later)) later += 1_000
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
    expect(rest(agreement, 0)).to.equal(512_000)
    asked('a:X b:X c:X', agreement)
    asked('a:X b:X c:X a:X b:X c:X', agreement, 3_000)
    expect(rest(agreement, 3_000, X)).to.equal(0)
    asked('a b c', agreement, 3_000)
    asked('a b c a b c', agreement, 6_000)
    expect(rest(agreement, 6_000)).to.equal(506_000)
    agreement.matched(M)
    expect(rest(agreement, 6_000)).to.equal(0)
    expect(agreement.closed(M, 6_000), 'a warning').to.equal(false)
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
