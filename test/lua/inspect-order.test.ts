import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { inspectOrder } from '../../src/store/scripts.js'
import { expected, old, ordered, raw, readable, rejection, useRedis, type State } from './support.js'

describe('inspect-order.lua', () => {
  const rig = useRedis()
  const MARK = raw('a mark')
  const [a, b, c] = [ordered('a', 'A'), old('b', 'B'), ordered('c', 'C')]
  const all = { from: 0, page: 100, setAside: false, mark: MARK }
  const mixed: State = {
    timeouts: [
      [a, 1],
      ['junk', 2],
      [b, 3],
    ],
    order: ['gone', a, 'junk', c, b, 'gone'],
  }

  it('counts elements that the schedule lacks, returns the ids of the rest, and changes nothing', async () => {
    const queue = await rig.queue(mixed)
    const { prefixes, ...counts } = await run(rig.sender, inspectOrder, queue.keys, all)
    expect(counts).to.deep.equal({ examined: 6, orphans: 3 })
    expect(prefixes.map(readable)).to.deep.equal(['\\x08a.......', 'b.......'])
    expect(await queue.read()).to.deep.equal(expected(mixed))
  })

  it('examines one page only', async () => {
    const queue = await rig.queue(mixed)
    const page = (from: number) => run(rig.sender, inspectOrder, queue.keys, { ...all, from, page: 2 })
    expect(await page(0)).to.deep.include({ examined: 2, orphans: 1 })
    expect(await page(2)).to.deep.include({ examined: 2, orphans: 1 })
    expect(await page(6)).to.deep.equal({ examined: 0, orphans: 0, prefixes: [] })
  })

  for (const from of [0, 3]) {
    it(`moves elements that the schedule lacks to the quarantine, in the page from ${from} on, and leaves the rest in order`, async () => {
      const queue = await rig.queue(mixed)
      const reply = await run(rig.sender, inspectOrder, queue.keys, { ...all, from, page: 3, setAside: true })
      expect(reply).to.deep.include({ examined: 3, orphans: from === 0 ? 1 : 2 })
      const after = await queue.read()
      const order = from === 0 ? [a, 'junk', c, b, 'gone'] : ['gone', a, 'junk', b]
      expect({ ...after, quarantine: [] }).to.deep.equal(expected({ ...mixed, order }))
      const moved = from === 0 ? ['gone'] : [c, 'gone']
      expect(after.quarantine.map((record) => record.replace(/ \d{13} /, ' TIME '))).to.deep.equal(
        moved.map((bytes) => `order-orphan TIME ${readable(bytes)}`),
      )
    })
  }

  it('changes nothing when the quarantine has another type', async () => {
    const queue = await rig.queue(mixed)
    await rig.redis.set(queue.keys.quarantine, 'in the way')
    const moved = run(rig.sender, inspectOrder, queue.keys, { ...all, setAside: true })
    expect(await rejection(moved)).to.include({ code: 'ERR_WRONG_TYPE' })
    expect((await rig.redis.lrangeBuffer(queue.keys.order, 0, -1)).map(readable)).to.deep.equal(expected(mixed).order)
  })
})
