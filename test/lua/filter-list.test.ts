import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { filterList, type FilterListReply } from '../../src/store/scripts.js'
import { ALL_BYTES, commandCalls, expected, raw, rejection, useRedis, type Bytes, type Fixture } from './support.js'

const MARK = Buffer.from('a mark that no list holds')

interface Options {
  skip?: number
  page?: number
  retain?: boolean
}

describe('filter-list.lua', () => {
  const rig = useRedis()
  const filterIn = (queue: Fixture, elements: Bytes[], options: Options = {}): Promise<FilterListReply> =>
    run(rig.sender, filterList, queue.keys, {
      skip: 0,
      page: 100,
      bytes: 1_000_000,
      retain: false,
      mark: MARK,
      elements: elements.map(raw),
      ...options,
    })
  const destination = ['one', 'two', '', ALL_BYTES, 'two', 'six']

  const cases: [
    what: string,
    elements: Bytes[],
    options: Options,
    reply: { removed?: number; next?: number; found: number[] },
    after?: Bytes[],
  ][] = [
    ['finds what is there, each once', ['two', 'no', 'one'], {}, { found: [2, 0] }],
    ['finds an empty element and all byte values', ['', ALL_BYTES], {}, { found: [0, 1] }],
    ['does not find part of an element', ['tw', 'twoo'], {}, { found: [] }],
    ['begins at the right end', ['six', 'two', 'one'], { page: 2 }, { next: 2, found: [1, 0] }],
    ['goes on behind what was examined', ['six', 'two', ALL_BYTES], { skip: 2, page: 2 }, { next: 4, found: [2] }],
    ['ends with a page that is not full', ['two'], { skip: 5, page: 2 }, { found: [] }],
    ['ends behind the last element', ['two'], { skip: 6, page: 2 }, { found: [] }],
    ['removes nothing when all are to stay', destination, { retain: true }, { found: [0, 2, 3, 4, 5] }],
    ['removes the others', ['two'], { retain: true }, { removed: 4, found: [0] }, ['two', 'two']],
    ['removes all when none is among them', ['no'], { retain: true }, { removed: 6, found: [] }, []],
    ['removes equal ones', ['one', 'six'], { retain: true }, { removed: 4, found: [0, 1] }, ['one', 'six']],
    [
      'removes only from its page, and returns how many of it stay',
      ['six'],
      { retain: true, page: 3 },
      { removed: 2, next: 1, found: [0] },
      ['one', 'two', '', 'six'],
    ],
    [
      'removes from a page further left',
      [''],
      { retain: true, page: 2, skip: 3 },
      { removed: 1, next: 4, found: [0] },
      ['one', '', ALL_BYTES, 'two', 'six'],
    ],
    [
      'removes from the page at the left end',
      ['one'],
      { retain: true, page: 2, skip: 4 },
      { removed: 1, next: 5, found: [0] },
      ['one', '', ALL_BYTES, 'two', 'six'],
    ],
  ]
  for (const [what, elements, options, reply, after = destination] of cases) {
    it(what, async () => {
      const queue = await rig.queue({ destination, order: ['stays'], timeouts: [['stays', 1]] })
      const { found, ...rest } = await filterIn(queue, elements, options)
      expect({ ...rest, found: [...found].sort() }).to.deep.equal({
        removed: 0,
        next: null,
        ...reply,
        found: reply.found.sort(),
      })
      expect(await queue.read()).to.deep.equal(
        expected({ destination: after, order: ['stays'], timeouts: [['stays', 1]] }),
      )
    })
  }

  it('walks a list of thousands to its end, page by page', async () => {
    const many = Array.from({ length: 2_500 }, (_, n) => `${n % 10}`)
    const queue = await rig.queue({ destination: many })
    let removed = 0
    for (let skip: number | null = 0, rounds = 0; skip !== null; rounds++) {
      const reply: FilterListReply = await filterIn(queue, ['3', '7'], { skip, page: 300, retain: true })
      removed += reply.removed
      skip = reply.next
      expect(rounds).to.be.below(12)
    }
    expect(removed).to.equal(2_000)
    expect((await queue.read()).destination).to.deep.equal(many.filter((one) => one === '3' || one === '7'))
  })

  it('finds nothing in an empty list', async () => {
    expect(await filterIn(await rig.queue(), ['a'], { retain: true })).to.deep.equal({
      removed: 0,
      next: null,
      found: [],
    })
  })

  it('changes nothing when the key is not a list', async () => {
    const queue = await rig.queue()
    await rig.redis.set(queue.keys.destination, 'in the way')
    expect(await rejection(filterIn(queue, ['a'], { retain: true }))).to.include({ code: 'ERR_WRONG_TYPE' })
    expect(await rig.redis.get(queue.keys.destination)).to.equal('in the way')
  })
})

describe('filter-list.lua on a server of its own', () => {
  const rig = useRedis(['--save', ''])

  it('removes a page by one LREM', async () => {
    const queue = await rig.queue({ destination: Array.from({ length: 100 }, (_, n) => String(n)) })
    const args = { skip: 0, page: 50, bytes: 1_000_000, retain: true, mark: MARK, elements: [raw('60')] }
    const calls = await commandCalls(rig.redis, () => run(rig.sender, filterList, queue.keys, args))
    expect(calls).to.include({ lrem: 1, lset: 49 })
  })
})
