import { expect } from 'chai'
import { Sweeper } from '../../src/scheduler/sweeper.js'
import { FakeClock } from '../support/fake-clock.js'

function setUp(
  count: number,
  { interval = 5000, random = () => 0.5 }: { interval?: number; random?: () => number } = {},
) {
  const clock = new FakeClock()
  const members = new Map<number, string>()
  for (let n = 0; n < count; n++) members.set(n, `m${n}`)
  const swept: { member: string; at: number }[] = []
  const hooks = { onSweep: (_member: string) => {} }
  const sweeper = new Sweeper({
    members,
    interval,
    clock,
    random,
    sweep: (member) => {
      swept.push({ member, at: clock.now() })
      hooks.onSweep(member)
    },
  })
  const timesOf = (member: string) => swept.filter((one) => one.member === member).map(({ at }) => at)
  return { clock, members, swept, sweeper, timesOf, hooks }
}

/** How many fall into each of the groups that `groupOf` names. */
function counts(swept: { at: number }[], groupOf: (at: number) => number): number[] {
  const groups = new Map<number, number>()
  for (const { at } of swept) groups.set(groupOf(at), (groups.get(groupOf(at)) ?? 0) + 1)
  return [...groups.values()]
}

function gaps(times: number[]): number[] {
  return times.slice(1).map((time, n) => time - times[n]!)
}

describe('Sweeper', () => {
  it('sweeps a single member once per interval', async () => {
    const { clock, sweeper, swept } = setUp(1)
    sweeper.start()
    await clock.advance(25_000)
    expect(swept.map(({ at }) => at)).to.deep.equal([5000, 10_000, 15_000, 20_000, 25_000])
  })

  it('varies the wait by a fifth', async () => {
    for (const [random, wait] of [
      [0, 4000],
      [0.25, 4500],
      [0.999, 5998],
    ] as const) {
      const { clock, sweeper, swept } = setUp(1, { random: () => random })
      sweeper.start()
      await clock.advance(wait * 2 + 1)
      expect(swept.map(({ at }) => at)).to.deep.equal([wait, wait * 2])
    }
  })

  it('draws a new number for each wait', async () => {
    const draws = [0, 1, 0.5]
    const { clock, sweeper, swept } = setUp(1, { random: () => draws.shift() ?? 0.5 })
    sweeper.start()
    await clock.advance(15_000)
    expect(swept.map(({ at }) => at)).to.deep.equal([4000, 10_000, 15_000])
  })

  for (const count of [2, 3, 7, 50, 101, 350, 1500]) {
    it(`sweeps each of ${count} members about once per interval, spread over it`, async () => {
      const { clock, members, sweeper, timesOf, swept } = setUp(count)
      sweeper.start()
      await clock.advance(50_000)
      expect(swept.length / count).to.be.within(8, 12)
      for (const member of members.values()) {
        for (const gap of gaps(timesOf(member))) expect(gap).to.be.within(4000, 5200)
      }
      const perTick = Math.max(...counts(swept, (at) => at))
      expect(perTick).to.be.at.most(Math.ceil(count / 100))
    })
  }

  it('stretches the round of 10,000 members to at most 300 a second, and reaches all of them within 40 s', async function () {
    this.timeout(30_000)
    for (const random of [() => 0, () => 0.5, () => 0.9999, Math.random]) {
      const { clock, sweeper, swept } = setUp(10_000, { random })
      sweeper.start()
      await clock.advance(40_100)
      expect(new Set(swept.slice(0, 10_000).map(({ member }) => member)).size).to.equal(10_000)
      expect(swept[9_999]!.at).to.be.at.most(40_100)
      // the jitter alone may exceed it for a while, by a fifth of the wait
      const seconds = counts(swept, (at) => Math.floor(at / 1000))
      expect(Math.max(...seconds)).to.be.at.most(300 / 0.8 + 15)
      if (random() === 0.5) expect(Math.max(...seconds)).to.be.at.most(300)
    }
  })

  it('stops', async () => {
    const { clock, sweeper, swept } = setUp(1)
    sweeper.start()
    await clock.advance(5000)
    sweeper.stop()
    sweeper.stop()
    expect(clock.pending).to.deep.equal([])
    await clock.advance(50_000)
    expect(swept).to.have.length(1)
  })

  it('can be started twice, and after it was stopped', async () => {
    const { clock, sweeper, swept } = setUp(1)
    sweeper.start()
    sweeper.start()
    expect(clock.pending).to.have.length(1)
    sweeper.stop()
    sweeper.start()
    await clock.advance(5000)
    expect(swept).to.have.length(1)
  })

  it('sleeps when there is nothing left, and continues when it is started again', async () => {
    const { clock, members, sweeper, swept } = setUp(1)
    sweeper.start()
    members.clear()
    await clock.advance(5000)
    expect(clock.pending).to.deep.equal([])
    members.set(1, 'new')
    sweeper.start()
    await clock.advance(5000)
    expect(swept.map(({ member }) => member)).to.deep.equal(['new'])
  })

  it('sweeps members that come between, and no longer those that go', async () => {
    const { clock, members, sweeper, timesOf, swept } = setUp(10)
    sweeper.start()
    await clock.advance(2700)
    members.delete(0)
    members.delete(9)
    members.set(10, 'm10')
    const before = swept.length
    await clock.advance(20_000)
    expect(swept.slice(before).map(({ member }) => member)).to.not.include.members(['m0', 'm9'])
    expect(timesOf('m10').length).to.be.within(3, 5)
    expect(timesOf('m5').length).to.be.within(4, 6)
  })

  it('bears members that are removed while they are swept', async () => {
    const { clock, members, sweeper, swept, hooks } = setUp(5)
    hooks.onSweep = (member) => members.delete(Number(member.slice(1)))
    sweeper.start()
    await clock.advance(20_000)
    expect(swept.map(({ member }) => member)).to.deep.equal(['m0', 'm1', 'm2', 'm3', 'm4'])
    expect(clock.pending).to.deep.equal([])
  })

  it('sweeps no member twice in one go when many have gone', async () => {
    const { clock, members, sweeper, swept } = setUp(10_000)
    sweeper.start()
    for (let n = 1; n < 10_000; n++) members.delete(n)
    await clock.advance(60)
    expect(swept).to.have.length(1)
  })
})
