import { expect } from 'chai'
import { Seldom } from '../../src/timing/seldom.js'
import { FakeClock } from '../support/fake-clock.js'

describe('Seldom', () => {
  it('admits each problem once a minute', async () => {
    const clock = new FakeClock()
    const seldom = new Seldom(clock)
    expect(['a', 'b', 'a'].map((what) => seldom.may(what))).to.deep.equal([true, true, false])
    await clock.advance(59_999)
    expect(seldom.may('a')).to.equal(false)
    await clock.advance(1)
    expect(['a', 'b', 'b'].map((what) => seldom.may(what))).to.deep.equal([true, true, false])
  })

  it('admits some dozens of problems a minute, however many there are', async () => {
    const clock = new FakeClock()
    const seldom = new Seldom(clock)
    const admitted = (): number =>
      Array.from({ length: 1_000 }, (_, n) => seldom.may(`ERR ${n}`)).filter(Boolean).length
    expect(admitted()).to.equal(32)
    await clock.advance(60_000)
    expect(admitted()).to.equal(32)
  })

  it('takes texts that begin alike for one problem', () => {
    const seldom = new Seldom(new FakeClock())
    const long = 'x'.repeat(200)
    expect([`${long}1`, `${long}2`, 'x'].map((what) => seldom.may(what))).to.deep.equal([true, false, true])
  })
})
