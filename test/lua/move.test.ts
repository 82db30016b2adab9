import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { move } from '../../src/store/scripts.js'
import { ALL_BYTES, expected, readable, rejection, useRedis, type Bytes } from './support.js'

describe('move.lua', () => {
  const rig = useRedis()
  const [source, target] = [['one', '', ALL_BYTES], ['there']]

  const cases: [what: string, count: number, exactly: boolean, moved: Bytes[], from?: Bytes[]][] = [
    ['moves the first to the end of the other', 1, false, ['one']],
    ['moves several in their order, with all byte values', 3, false, source],
    ['moves what is there when asked for more', 9, false, source],
    ['moves exactly the given number', 2, true, ['one', '']],
    ['moves exactly all', 3, true, source],
    ['moves none when there are not enough', 4, true, []],
    ['moves none from an empty list', 3, false, [], []],
    ['moves exactly none from an empty list', 3, true, [], []],
  ]
  for (const [what, count, exactly, moved, from = source] of cases) {
    it(what, async () => {
      // the quarantine stands for any other list
      const queue = await rig.queue({ destination: from, quarantine: target })
      const keys = { source: queue.keys.destination, target: queue.keys.quarantine }
      const elements = await run(rig.sender, move, keys, { count, exactly })
      expect(elements.map(readable)).to.deep.equal(moved.map(readable))
      expect(await queue.read()).to.deep.equal(
        expected({ destination: from.slice(moved.length), quarantine: [...target, ...moved] }),
      )
    })
  }

  it('a list to itself is turned', async () => {
    const queue = await rig.queue({ destination: ['a', 'b', 'c'] })
    const keys = { source: queue.keys.destination, target: queue.keys.destination }
    expect(await run(rig.sender, move, keys, { count: 2, exactly: false })).to.have.lengthOf(2)
    expect((await queue.read()).destination).to.deep.equal(['c', 'a', 'b'])
  })

  for (const wrong of ['source', 'target'] as const) {
    it(`changes nothing when the ${wrong} is not a list`, async () => {
      const queue = await rig.queue(wrong === 'source' ? { quarantine: target } : { destination: source })
      const keys = { source: queue.keys.destination, target: queue.keys.quarantine }
      await rig.redis.set(keys[wrong], 'in the way')
      const moved = run(rig.sender, move, keys, { count: 1, exactly: false })
      expect(await rejection(moved)).to.include({ code: 'ERR_WRONG_TYPE' })
      expect(await rig.redis.get(keys[wrong])).to.equal('in the way')
      await rig.redis.del(keys[wrong])
      expect(await queue.read()).to.deep.equal(
        expected(wrong === 'source' ? { quarantine: target } : { destination: source }),
      )
    })
  }
})
