import { expect } from 'chai'
import { run } from '../../src/lua/run.js'
import { contains, type PageReply } from '../../src/lua/scripts.js'
import { ALL_BYTES, expected, raw, rejection, useRedis, type Bytes } from './support.js'

describe('contains.lua', () => {
  const rig = useRedis()
  const destination = ['one', 'two', '', ALL_BYTES, 'five', 'six']
  const FOUND = { found: true, next: null }
  const NOT_FOUND = { found: false, next: null }

  const cases: [what: string, element: Bytes, from: number, page: number, reply: PageReply][] = [
    ['finds the first element', 'one', 0, 100, FOUND],
    ['finds the last element', 'six', 0, 100, FOUND],
    ['finds an empty element', '', 0, 100, FOUND],
    ['finds all byte values', ALL_BYTES, 0, 100, FOUND],
    ['does not find part of an element', 'fiv', 0, 100, NOT_FOUND],
    ['does not find something longer', 'fives', 0, 100, NOT_FOUND],
    ['tells where the next page starts', 'five', 0, 2, { found: false, next: 2 }],
    ['tells where the page after that starts', 'five', 2, 2, { found: false, next: 4 }],
    ['finds it on the last page', 'five', 4, 2, FOUND],
    ['looks at no element before the page', 'one', 1, 100, NOT_FOUND],
    ['looks at no element behind the page', 'two', 0, 1, { found: false, next: 1 }],
    ['ends after a full last page with an empty one', 'seven', 6, 2, NOT_FOUND],
    ['ends with a page that is not full', 'seven', 4, 3, NOT_FOUND],
  ]
  for (const [what, element, from, page, reply] of cases) {
    it(what, async () => {
      const queue = await rig.queue({ destination })
      const args = { element: raw(element), from, page }
      expect(await run(rig.sender, contains, queue.keys, args)).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected({ destination }))
    })
  }

  it('finds nothing in an empty list', async () => {
    const queue = await rig.queue()
    const args = { element: raw('one'), from: 0, page: 10 }
    expect(await run(rig.sender, contains, queue.keys, args)).to.deep.equal(NOT_FOUND)
  })

  it('rejects when the key is no list', async () => {
    const queue = await rig.queue()
    await rig.redis.set(queue.keys.destination, 'in the way')
    const found = run(rig.sender, contains, queue.keys, { element: raw('one'), from: 0, page: 10 })
    expect(await rejection(found)).to.include({ code: 'ERR_WRONG_TYPE' })
  })
})
