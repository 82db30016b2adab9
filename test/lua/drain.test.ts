import { expect } from 'chai'
import { run } from '../../src/lua/run.js'
import { drain } from '../../src/lua/scripts.js'
import { ALL_BYTES, expected, readable, rejection, useRedis, type Bytes } from './support.js'

describe('drain.lua', () => {
  const rig = useRedis()
  const destination = ['one', '', ALL_BYTES, 'four']

  const cases: [what: string, before: Bytes[], count: number, reply: Bytes[], after: Bytes[]][] = [
    ['takes from the left end', destination, 1, ['one'], ['', ALL_BYTES, 'four']],
    ['takes several in order, with all byte values', destination, 3, ['one', '', ALL_BYTES], ['four']],
    ['takes exactly all', destination, 4, destination, []],
    ['takes all when asked for more', destination, 100, destination, []],
    ['gives nothing from an empty list', [], 3, [], []],
  ]
  for (const [what, before, count, reply, after] of cases) {
    it(what, async () => {
      const queue = await rig.queue({ destination: before, order: ['stays'], timeouts: [['stays', 1]] })
      const elements = await run(rig.sender, drain, queue.keys, { count })
      expect(elements.map(readable)).to.deep.equal(reply.map(readable))
      expect(await queue.read()).to.deep.equal(
        expected({ destination: after, order: ['stays'], timeouts: [['stays', 1]] }),
      )
    })
  }

  it('changes nothing when the key is no list', async () => {
    const queue = await rig.queue()
    await rig.redis.set(queue.keys.destination, 'in the way')
    expect(await rejection(run(rig.sender, drain, queue.keys, { count: 1 }))).to.include({ code: 'ERR_WRONG_TYPE' })
    expect(await rig.redis.get(queue.keys.destination)).to.equal('in the way')
  })
})
