import { expect } from 'chai'
import { FineWaits } from '../../src/timing/fine-waits.js'
import { FakeClock } from '../support/fake-clock.js'

const turn = () => new Promise((resolve) => setImmediate(resolve))

function setUp() {
  const clock = new FakeClock(5)
  const waits = new FineWaits(clock)
  const ended: string[] = []
  return {
    clock,
    waits,
    ended,
    begin: (name: string, ms: number) => waits.begin(clock.now() + ms, () => ended.push(name)),
    /** Waits as long as that is allowed, in turns of half a millisecond; returns how many. */
    exhaust: async (): Promise<number> => {
      let turns = 0
      for (; waits.areAllowed; turns++) {
        const stop = waits.begin(Infinity, () => undefined)
        clock.jump(0.5)
        await turn()
        stop()
      }
      return turns
    },
  }
}

describe('FineWaits', () => {
  it('end at their moments, each once', async () => {
    const { clock, ended, begin } = setUp()
    begin('a', 0.5)
    begin('b', 0.25)
    await turn()
    expect(ended).to.deep.equal([])
    clock.jump(0.3)
    await turn()
    expect(ended).to.deep.equal(['b'])
    clock.jump(0.3)
    await turn()
    await turn()
    expect(ended).to.deep.equal(['b', 'a'])
  })

  it('do not end once they are disarmed, and leave the others', async () => {
    const { clock, ended, begin } = setUp()
    begin('a', 0.5)()
    const stop = begin('b', 0.5)
    begin('c', 0.5)
    stop()
    stop()
    clock.jump(1)
    await turn()
    expect(ended).to.deep.equal(['c'])
  })

  it('can begin, and disarm others, while one ends', async () => {
    const { clock, waits, ended, begin } = setUp()
    waits.begin(clock.now() + 0.5, () => {
      ended.push('a')
      stopB()
      begin('c', 0.5)
    })
    const stopB = begin('b', 0.5)
    clock.jump(0.6)
    await turn()
    expect(ended).to.deep.equal(['a'])
    clock.jump(0.6)
    await turn()
    expect(ended).to.deep.equal(['a', 'c'])
  })

  it('are allowed until no whole wait is left of 20 ms, and then again for 2 % of the time that passes', async () => {
    const { clock, exhaust } = setUp()
    expect(await exhaust()).to.be.within(37, 40)
    clock.jump(200)
    expect(await exhaust()).to.be.within(7, 9)
  })

  it('save up no more than 20 ms', async () => {
    const { clock, exhaust } = setUp()
    clock.jump(3_600_000)
    expect(await exhaust()).to.be.within(37, 40)
  })

  it('end early when the time is spent', async () => {
    const { clock, ended, begin } = setUp()
    begin('a', 100)
    for (let i = 0; i < 19; i++) {
      clock.jump(1)
      await turn()
    }
    expect(ended).to.deep.equal([])
    clock.jump(1)
    await turn()
    expect(ended).to.deep.equal(['a'])
  })

  it('count a turn once, however many they are', async () => {
    const { clock, waits, begin } = setUp()
    for (let i = 0; i < 100; i++) begin('', 0.5)
    clock.jump(0.5)
    await turn()
    expect(waits.areAllowed).to.equal(true)
  })

  it('count a long turn as a millisecond, because it did other work', async () => {
    const { clock, waits, ended, begin } = setUp()
    begin('a', 0.5)
    clock.jump(500)
    await turn()
    expect(ended).to.deep.equal(['a'])
    expect(waits.areAllowed).to.equal(true)
  })

  it('end although the clock stands still', async () => {
    const { ended, begin } = setUp()
    begin('a', 0.5)
    for (let i = 0; i < 25_000 && ended.length === 0; i++) await turn()
    expect(ended).to.deep.equal(['a'])
  })
})
