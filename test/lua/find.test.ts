import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { find, type PageReply } from '../../src/store/scripts.js'
import {
  ALL_BYTES,
  expected,
  hex,
  lengthOf,
  old,
  ordered,
  raw,
  unordered,
  useRedis,
  type Bytes,
  type Fixture,
  type State,
} from './support.js'

/** The end of an entry with this payload. */
function tailOf(payload: Bytes): Buffer {
  return Buffer.concat([lengthOf(raw(payload)), raw(payload)])
}

describe('find.lua', () => {
  const rig = useRedis()
  interface Options {
    from?: number
    page?: number
    ordered?: boolean
    remove?: boolean
  }
  function findIn(queue: Fixture, payload: Bytes, options: Options = {}): Promise<PageReply> {
    const args = {
      tail: tailOf(payload),
      from: 0,
      page: 100,
      bytes: 1_000_000,
      ordered: true,
      remove: false,
      ...options,
    }
    return run(rig.sender, find, queue.keys, args)
  }

  const [a, b, c, e] = [ordered('a', 'same'), ordered('b', 'same'), unordered('c', 'same'), old('e', 'old')]
  const full = ordered('f', ALL_BYTES)
  const empty = unordered('g', '')
  const all: State = {
    timeouts: [
      [c, 1],
      [b, 2],
      [e, 3],
      [a, 4],
      [full, 5],
      [empty, 6],
    ],
    order: [a, b, e, full],
  }
  const FOUND = { found: true, next: null }
  const NOT_FOUND = { found: false, next: null }

  const cases: { what: string; before?: State; payload: Bytes; options?: Options; reply: PageReply; after?: State }[] =
    [
      { what: 'finds a payload in the order list', payload: 'same', reply: FOUND },
      { what: 'finds a payload in the schedule', payload: 'same', options: { ordered: false }, reply: FOUND },
      { what: 'finds a payload in an old entry', payload: 'old', reply: FOUND },
      { what: 'finds all byte values', payload: ALL_BYTES, reply: FOUND },
      { what: 'finds an empty payload', payload: '', options: { ordered: false }, reply: FOUND },
      { what: 'does not find a 9-byte entry in the order list', payload: '', reply: NOT_FOUND },
      { what: 'does not find what is not there', payload: 'sam', options: { ordered: false }, reply: NOT_FOUND },
      { what: 'does not find the end of a payload', payload: 'ame', options: { ordered: false }, reply: NOT_FOUND },
      { what: 'finds nothing in an empty queue', before: {}, payload: 'same', reply: NOT_FOUND },
      {
        what: 'does not take a payload that ends like an entry for that entry',
        before: { order: [ordered('x', Buffer.concat([Buffer.from('12345678'), tailOf('same')]))] },
        payload: 'same',
        reply: NOT_FOUND,
      },
      {
        what: 'does not take poison for an entry',
        before: { order: [tailOf('same'), Buffer.concat([hex('07 4142434445464748'), tailOf('same')])] },
        payload: 'same',
        reply: NOT_FOUND,
      },
      {
        what: 'removes the first match in offer order',
        payload: 'same',
        options: { remove: true },
        reply: FOUND,
        after: {
          timeouts: [
            [c, 1],
            [b, 2],
            [e, 3],
            [full, 5],
            [empty, 6],
          ],
          order: [b, e, full],
        },
      },
      {
        what: 'removes the first match by due time',
        payload: 'same',
        options: { remove: true, ordered: false },
        reply: FOUND,
        after: {
          timeouts: [
            [b, 2],
            [e, 3],
            [a, 4],
            [full, 5],
            [empty, 6],
          ],
          order: [a, b, e, full],
        },
      },
      {
        what: 'removes an 8-byte entry from the order list too when it walks the schedule',
        payload: 'old',
        options: { remove: true, ordered: false },
        reply: FOUND,
        after: {
          timeouts: [
            [c, 1],
            [b, 2],
            [a, 4],
            [full, 5],
            [empty, 6],
          ],
          order: [a, b, full],
        },
      },
      { what: 'removes nothing when there is no match', payload: 'no', options: { remove: true }, reply: NOT_FOUND },
      {
        what: 'returns where the next page starts',
        payload: 'old',
        options: { page: 2 },
        reply: { found: false, next: 2 },
      },
      { what: 'goes on there', payload: 'old', options: { from: 2, page: 2 }, reply: FOUND },
      {
        what: 'returns the next page of the schedule',
        payload: '',
        options: { page: 3, ordered: false },
        reply: { found: false, next: 3 },
      },
      {
        what: 'ends after a full last page with an empty one',
        payload: 'no',
        options: { from: 4, page: 4 },
        reply: NOT_FOUND,
      },
      { what: 'does not look before the page', payload: 'same', options: { from: 2 }, reply: NOT_FOUND },
    ]
  for (const { what, before = all, payload, options, reply, after = before } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      expect(await findIn(queue, payload, options)).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal([])
    })
  }
})
