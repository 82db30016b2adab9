import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { contains, type IndexReply } from '../../src/store/scripts.js'
import { ALL_BYTES, expected, raw, rejection, useRedis, type Bytes } from './support.js'

describe('contains.lua', () => {
  const rig = useRedis()
  const destination = ['one', 'two', '', ALL_BYTES, 'five', 'six', 'two']
  const at = (index: number) => ({ index, next: null })
  const NOT_FOUND = { index: null, next: null }

  const cases: [what: string, element: Bytes, from: number, page: number, reply: IndexReply][] = [
    ['finds the first element', 'one', 0, 100, at(0)],
    ['finds a later element', 'six', 0, 100, at(5)],
    ['finds the first of equal elements', 'two', 0, 100, at(1)],
    ['finds the first of several equal ones, with a small page', 'one', 0, 2, at(0)],
    ['finds an empty element', '', 0, 100, at(2)],
    ['finds all byte values', ALL_BYTES, 0, 100, at(3)],
    ['does not find part of an element', 'fiv', 0, 100, NOT_FOUND],
    ['does not find something longer', 'fives', 0, 100, NOT_FOUND],
    ['returns where the next page starts', 'five', 0, 2, { index: null, next: 2 }],
    ['returns where the page after that starts', 'five', 2, 2, { index: null, next: 4 }],
    ['finds it on the last page', 'five', 4, 2, at(4)],
    ['looks at no element before the page', 'one', 1, 100, NOT_FOUND],
    ['looks at no element behind the page', 'two', 0, 1, { index: null, next: 1 }],
    ['ends after a full last page with an empty one', 'seven', 7, 7, NOT_FOUND],
    ['ends with a page that is not full', 'seven', 4, 4, NOT_FOUND],
  ]
  for (const [what, element, from, page, reply] of cases) {
    it(what, async () => {
      const queue = await rig.queue({ destination })
      const args = { element: raw(element), from, page, bytes: 1_000_000 }
      expect(await run(rig.sender, contains, queue.keys, args)).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected({ destination }))
    })
  }

  it('finds nothing in an empty list', async () => {
    const queue = await rig.queue()
    const args = { element: raw('one'), from: 0, page: 10, bytes: 1_000_000 }
    expect(await run(rig.sender, contains, queue.keys, args)).to.deep.equal(NOT_FOUND)
  })

  it('rejects when the key is not a list', async () => {
    const queue = await rig.queue()
    await rig.redis.set(queue.keys.destination, 'in the way')
    const found = run(rig.sender, contains, queue.keys, { element: raw('one'), from: 0, page: 10, bytes: 1_000_000 })
    expect(await rejection(found)).to.include({ code: 'ERR_WRONG_TYPE' })
  })
})
