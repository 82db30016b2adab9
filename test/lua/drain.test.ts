import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { drain } from '../../src/store/scripts.js'
import { ALL_BYTES, expected, readable, rejection, useRedis, type Bytes } from './support.js'

describe('drain.lua', () => {
  const rig = useRedis()
  const destination = ['one', '', ALL_BYTES, 'four']

  const cases: [what: string, before: Bytes[], count: number, right: boolean, reply: Bytes[], after: Bytes[]][] = [
    ['takes from the left end', destination, 1, false, ['one'], ['', ALL_BYTES, 'four']],
    ['takes several in order, with all byte values', destination, 3, false, ['one', '', ALL_BYTES], ['four']],
    ['takes exactly all', destination, 4, false, destination, []],
    ['takes all when asked for more', destination, 100, false, destination, []],
    ['gives nothing from an empty list', [], 3, false, [], []],
    ['takes from the right end', destination, 1, true, ['four'], ['one', '', ALL_BYTES]],
    ['takes several from the right end, the last one first', destination, 3, true, ['four', ALL_BYTES, ''], ['one']],
    ['takes exactly all from the right end', destination, 4, true, ['four', ALL_BYTES, '', 'one'], []],
    ['takes all from the right end when asked for more', destination, 9, true, ['four', ALL_BYTES, '', 'one'], []],
    ['gives nothing from the right end of an empty list', [], 3, true, [], []],
  ]
  for (const [what, before, count, right, reply, after] of cases) {
    it(what, async () => {
      const queue = await rig.queue({ destination: before, order: ['stays'], timeouts: [['stays', 1]] })
      const elements = await run(rig.sender, drain, queue.keys, { count, bytes: 1_000_000, right })
      expect(elements.map(readable)).to.deep.equal(reply.map(readable))
      expect(await queue.read()).to.deep.equal(
        expected({ destination: after, order: ['stays'], timeouts: [['stays', 1]] }),
      )
    })
  }

  it('changes nothing when the key is not a list', async () => {
    const queue = await rig.queue()
    await rig.redis.set(queue.keys.destination, 'in the way')
    expect(
      await rejection(run(rig.sender, drain, queue.keys, { count: 1, bytes: 1_000_000, right: false })),
    ).to.include({
      code: 'ERR_WRONG_TYPE',
    })
    expect(await rig.redis.get(queue.keys.destination)).to.equal('in the way')
  })
})
