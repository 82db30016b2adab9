/** rename.lua and copy.lua: the keys of an object under other names, together. */
import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { copy, rename } from '../../src/store/scripts.js'
import { expected, ordered, unordered, useRedis, type Fixture, type Rig, type State } from './support.js'

const HOUR = 3_600_000
const [a, b, c] = [ordered('a', 'A'), ordered('b', 'B'), unordered('c', 'C')]
const full: State = {
  timeouts: [
    [a, 10],
    [b, 20],
  ],
  order: [b, a],
  destination: ['stays'],
}
const other: State = { timeouts: [[c, 5]], order: [c], destination: ['also stays'] }

function keysOf(from: Fixture, to: Fixture) {
  return {
    first: from.keys.timeouts,
    second: from.keys.order,
    newFirst: to.keys.timeouts,
    newSecond: to.keys.order,
  }
}

describe('rename.lua', () => {
  const rig = useRedis()
  const renameIn = (from: Fixture, to: Fixture, replace: boolean): Promise<number> =>
    run(rig.sender, rename, keysOf(from, to), { replace, channel: to.keys.channel })
  const destinations = { from: { destination: full.destination! }, to: { destination: other.destination! } }

  for (const replace of [true, false]) {
    it(`moves both keys and announces the head under the new name (replace: ${replace})`, async () => {
      const [from, to] = [await rig.queue(full), await rig.queue(destinations.to)]
      expect(await renameIn(from, to, replace)).to.equal(1)
      expect(await from.read()).to.deep.equal(expected(destinations.from))
      expect(await to.read()).to.deep.equal(expected({ ...full, ...destinations.to }))
      expect(await to.published()).to.deep.equal(['10'])
      expect(await from.published()).to.deep.equal([])
    })

    it(`says when there is nothing to rename, and changes nothing (replace: ${replace})`, async () => {
      const [from, to] = [await rig.queue(), await rig.queue(other)]
      expect(await renameIn(from, to, replace)).to.equal(-1)
      expect(await to.read()).to.deep.equal(expected(other))
    })
  }

  it('replaces both keys, also one that the source does not have', async () => {
    const [from, to] = [await rig.queue({ timeouts: [[c, 7]] }), await rig.queue(full)]
    expect(await renameIn(from, to, true)).to.equal(1)
    expect(await to.read()).to.deep.equal(expected({ timeouts: [[c, 7]], destination: ['stays'] }))
  })

  for (const taken of ['timeouts', 'order'] as const) {
    it(`leaves everything when ${taken} is taken under the new name`, async () => {
      const there = { [taken]: other[taken] } as State
      const [from, to] = [await rig.queue(full), await rig.queue(there)]
      expect(await renameIn(from, to, false)).to.equal(0)
      expect(await from.read()).to.deep.equal(expected(full))
      expect(await to.read()).to.deep.equal(expected(there))
      expect(await to.published()).to.deep.equal([])
    })
  }

  it('to its own name changes nothing', async () => {
    const from = await rig.queue(full)
    expect([await renameIn(from, from, true), await renameIn(from, from, false)]).to.deep.equal([1, 0])
    expect(await from.read()).to.deep.equal(expected(full))
  })

  it('renames a list, and announces nothing', async () => {
    const [from, to] = [await rig.queue({ destination: ['x'] }), await rig.queue({ destination: ['y'] })]
    const [first, newFirst] = [from.keys.destination, to.keys.destination]
    const keys = { first, second: first, newFirst, newSecond: newFirst }
    expect(await run(rig.sender, rename, keys, { replace: false, channel: '' })).to.equal(0)
    expect(await run(rig.sender, rename, keys, { replace: true, channel: '' })).to.equal(1)
    expect([(await from.read()).destination, (await to.read()).destination]).to.deep.equal([[], ['x']])
    expect(await to.published()).to.deep.equal([])
  })
})

function copySuite(rig: Rig): void {
  const copyIn = (from: Fixture, to: Fixture, replace: boolean): Promise<boolean> =>
    run(rig.sender, copy, keysOf(from, to), { replace, channel: to.keys.channel })

  it('copies both keys with their expiry, and announces the head of the copy', async () => {
    const [from, to] = [await rig.queue(full), await rig.queue({ destination: ['also stays'] })]
    await rig.redis.pexpire(from.keys.order, HOUR)
    expect(await copyIn(from, to, false)).to.equal(true)
    expect(await from.read()).to.deep.equal(expected(full))
    expect(await to.read()).to.deep.equal(expected({ ...full, destination: ['also stays'] }))
    expect(await rig.redis.pttl(to.keys.order)).to.be.within(HOUR - 10_000, HOUR)
    expect(await rig.redis.pttl(to.keys.timeouts)).to.equal(-1)
    expect(await to.published()).to.deep.equal(['10'])
  })

  for (const taken of ['timeouts', 'order'] as const) {
    it(`leaves everything when ${taken} is taken, and replaces it when asked to`, async () => {
      const there = { [taken]: other[taken] } as State
      const [from, to] = [await rig.queue({ ...full, destination: [] }), await rig.queue(there)]
      expect(await copyIn(from, to, false)).to.equal(false)
      expect(await to.read()).to.deep.equal(expected(there))
      expect(await copyIn(from, to, true)).to.equal(true)
      expect(await to.read()).to.deep.equal(expected({ ...full, destination: [] }))
    })
  }

  it('replaces also a key that the source does not have', async () => {
    const [from, to] = [await rig.queue({ timeouts: [[c, 7]] }), await rig.queue(full)]
    expect(await copyIn(from, to, true)).to.equal(true)
    expect(await to.read()).to.deep.equal(expected({ timeouts: [[c, 7]], destination: ['stays'] }))
  })

  it('has nothing to copy, or only itself', async () => {
    const [from, to] = [await rig.queue(), await rig.queue(other)]
    expect([await copyIn(from, to, true), await copyIn(to, to, true)]).to.deep.equal([false, false])
    expect(await to.read()).to.deep.equal(expected(other))
  })
}

describe('copy.lua', () => copySuite(useRedis()))

describe('copy.lua without COPY (before Redis 6.2)', () => copySuite(useRedis(['--rename-command', 'COPY', ''])))
