import { expect } from 'chai'
import type { Cluster } from 'ioredis'
import { WayBack } from '../../src/redis/topology/way-back.js'
import { FakeClock } from '../support/fake-clock.js'

const table = (id: string): unknown[] => [[0, 16_383, ['127.0.0.1', 1, id]]]

/** A client that has left the cluster `own` for `other`; `leads` says where each configured address leads, `undefined` without an answer. */
function setUp(leads: (seed: number) => string | undefined, seeds = 3) {
  const clock = new FakeClock()
  const used = new Set(['other'])
  const returns: number[] = []
  let looks = 0
  let resolved: Promise<void> | undefined
  const duplicate = ({ port }: { port: number }) => ({
    status: 'end',
    on: () => {},
    cluster: async () => {
      looks++
      const id = leads(port)
      if (id === undefined) throw new Error('no answer')
      return table(id)
    },
  })
  const cluster = {
    options: { slotsRefreshTimeout: 1_000 },
    nodes: () => [{ duplicate }],
    async resolveStartupNodeHostnames() {
      await resolved
      return Array.from({ length: seeds }, (_, port) => ({ host: 'a', port }))
    },
  } as unknown as Cluster
  const wayBack = new WayBack({
    cluster,
    clock,
    current: () => used,
    onBack: (ids) => {
      returns.push(clock.now())
      expect([...ids]).to.deep.equal(['own'])
      wayBack.returned()
    },
  })
  const leave = (): void => {
    wayBack.left(new Set(['own']))
    wayBack.begin()
  }
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 250) await clock.advance(250)
  }
  leave()
  /** Lets the look-up of the names take until the returned function is called. */
  const slowDown = (): (() => void) => {
    let end = (): void => {}
    resolved = new Promise((resolve) => (end = resolve))
    return end
  }
  return { clock, returns, wayBack, leave, advance, slowDown, looks: () => looks }
}

describe('the way back to a cluster', () => {
  it('returns when the configured addresses have led back for five seconds, and asks no more', async () => {
    let to = 'other'
    const { returns, advance, looks } = setUp(() => to)
    await advance(60_000)
    expect(returns).to.deep.equal([])
    to = 'own'
    await advance(20_000)
    expect(returns).to.have.length(1)
    const before = looks()
    await advance(100_000)
    expect(looks()).to.equal(before)
  })

  it('begins anew when they lead back for less than that', async () => {
    let to = 'own'
    const { returns, advance } = setUp(() => to)
    for (let round = 0; round < 20; round++) {
      to = 'own'
      await advance(4_000)
      to = 'other'
      await advance(6_000)
    }
    expect(returns).to.deep.equal([])
  })

  it('returns when most of them lead back, and not when as many lead to the cluster in use', async () => {
    const majority = setUp((seed) => ['own', 'own', 'other'][seed])
    await majority.advance(20_000)
    expect(majority.returns).to.have.length(1)
    const equal = setUp((seed) => ['own', 'other', undefined][seed])
    await equal.advance(100_000)
    expect(equal.returns).to.deep.equal([])
  })

  it('does not return without an answer, nor to a cluster that it has never used', async () => {
    for (const to of [undefined, 'third']) {
      const { returns, advance } = setUp(() => to)
      await advance(200_000)
      expect(returns).to.deep.equal([])
    }
  })

  it('waits twice as long each time, so that addresses that alternate do not move a client without end', async () => {
    const { returns, leave, advance } = setUp(() => 'own')
    for (let second = 0, seen = 0; second < 3_600; second++) {
      await advance(1_000)
      if (returns.length > seen) leave()
      seen = returns.length
    }
    expect(returns.length, 'at most ten minutes apart').to.be.within(10, 12)
  })

  it('waits five seconds again after an hour without a move', async () => {
    const { returns, leave, advance, clock } = setUp(() => 'own')
    for (let move = 0; move < 5; move++) {
      await advance(200_000)
      leave()
    }
    await advance(4_000_000)
    const leftAt = clock.now()
    leave()
    await advance(20_000)
    expect((returns.at(-1) ?? 0) - leftAt).to.be.within(8_000, 12_000)
  })

  it('remembers the first cluster and the last three', async () => {
    const { wayBack } = setUp(() => 'other')
    for (const id of ['2', '3', '4', '5', '6']) wayBack.left(new Set([id]))
    const known = ['own', '2', '3', '4', '5', '6'].filter((id) => wayBack.hasLeft([id]))
    expect(known).to.deep.equal(['own', '4', '5', '6'])
  })

  it('asks less often with time', async () => {
    const { advance, looks } = setUp(() => 'other', 1)
    await advance(3_600_000)
    const before = looks()
    await advance(600_000)
    expect(looks() - before).to.equal(10)
  })

  it('asks no more after a return during which it was asking', async () => {
    const { advance, looks, wayBack, clock, slowDown } = setUp(() => 'own')
    const answer = slowDown()
    await advance(6_000)
    wayBack.returned()
    answer()
    await advance(60_000)
    expect(looks()).to.equal(0)
    expect(clock.pending).to.deep.equal([])
  })

  it('knows the clusters that the client has left, and can be started again after its end', async () => {
    const { advance, returns, wayBack, leave } = setUp(() => 'own')
    expect([wayBack.hasLeft(['x', 'own']), wayBack.hasLeft(['other'])]).to.deep.equal([true, false])
    wayBack.end()
    await advance(20_000)
    expect(returns).to.deep.equal([])
    wayBack.begin()
    await advance(20_000)
    expect(returns).to.have.length(1)
    wayBack.begin()
    await advance(20_000)
    expect(returns, 'it is back').to.have.length(1)
    leave()
    await advance(20_000)
    expect(returns).to.have.length(2)
  })

  it('ends', async () => {
    const { advance, looks, wayBack, clock } = setUp(() => 'own')
    wayBack.end()
    await advance(60_000)
    expect(looks()).to.equal(0)
    expect(clock.pending).to.deep.equal([])
  })

  it('ends the connections of a look that is under way when it ends', async () => {
    const clock = new FakeClock()
    let open = 0
    const duplicate = () => {
      open++
      const copy = {
        status: 'ready',
        on: () => {},
        disconnect: () => (open--, (copy.status = 'end')),
        cluster: () => new Promise(() => {}),
      }
      return copy
    }
    const cluster = {
      options: { slotsRefreshTimeout: 50 },
      nodes: () => [{ duplicate }],
      resolveStartupNodeHostnames: () =>
        Promise.resolve([
          { host: 'a', port: 1 },
          { host: 'b', port: 1 },
        ]),
    } as unknown as Cluster
    const wayBack = new WayBack({ cluster, clock, current: () => new Set(['other']), onBack: () => {} })
    wayBack.left(new Set(['own']))
    wayBack.begin()
    await clock.advance(5_000)
    await Promise.resolve()
    expect(open).to.equal(2)
    wayBack.end()
    expect(open).to.equal(0)
  })
})
