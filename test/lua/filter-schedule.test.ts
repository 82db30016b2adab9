import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { filterSchedule, type FilterScheduleReply } from '../../src/store/scripts.js'
import {
  ALL_BYTES,
  expected,
  old,
  ordered,
  raw,
  readable,
  rejection,
  unordered,
  useRedis,
  type Bytes,
  type Fixture,
  type State,
} from './support.js'

interface Options {
  afterScore?: string
  after?: Buffer
  page?: number
  ordered?: boolean
  remove?: 'nothing' | 'matches' | 'others'
  budgetUs?: number
}

describe('filter-schedule.lua', () => {
  const rig = useRedis()
  const filterIn = (queue: Fixture, payloads: Bytes[], options: Options = {}): Promise<FilterScheduleReply> =>
    run(rig.sender, filterSchedule, queue.keys, {
      afterScore: '',
      after: Buffer.alloc(0),
      page: 100,
      bytes: 1_000_000,
      ordered: true,
      remove: 'nothing',
      budgetUs: 1_000_000,
      payloads: payloads.map(raw),
      ...options,
    })

  const [a, b, c, d, e] = [
    ordered('a', 'A'),
    ordered('b', 'same'),
    unordered('c', 'same'),
    old('d', 'same'),
    ordered('e', ALL_BYTES),
  ]
  const malformed = 'no entry'
  const all: State = {
    timeouts: [
      [malformed, 5],
      [a, 10],
      [b, 20],
      [c, 30],
      [d, 40],
      [e, 50],
    ],
    order: [e, a, d, b],
    destination: ['there'],
    quarantine: ['here'],
  }
  const without = (...gone: Bytes[]): State => ({
    ...all,
    timeouts: all.timeouts!.filter(([entry]) => !gone.includes(entry)),
    order: all.order!.filter((entry) => !gone.includes(entry)),
  })

  const cases: [
    what: string,
    payloads: Bytes[],
    options: Options,
    reply: { removed?: number; next?: [string, Bytes]; found: number[] },
    after?: State,
  ][] = [
    ['finds payloads in either format, each once', ['same', 'no', ALL_BYTES, 'A'], {}, { found: [3, 0, 2] }],
    ['does not find part of a payload', ['sam', ''], {}, { found: [] }],
    [
      'does not look at entries that are in no order list',
      ['same'],
      { afterScore: '20', after: b, page: 1 },
      { next: ['30', c], found: [] },
    ],
    [
      'looks at them if asked to',
      ['same'],
      { afterScore: '20', after: b, page: 1, ordered: false },
      { next: ['30', c], found: [0] },
    ],
    ['returns where the next page starts', ['A'], { page: 3 }, { next: ['20', b], found: [0] }],
    ['goes on behind an entry', ['A', 'same'], { afterScore: '20', after: b }, { found: [1] }],
    [
      'goes on where an entry was that is gone',
      ['A', 'same'],
      { afterScore: '20', after: ordered('x', 'gone') },
      { found: [1] },
    ],
    [
      'goes on where an entry was that is due later now',
      ['A', 'same'],
      { afterScore: '5', after: e },
      { found: [0, 1] },
    ],
    ['removes matches from both keys', ['same'], { remove: 'matches' }, { removed: 2, found: [0] }, without(b, d)],
    [
      'removes matches everywhere without an order',
      ['same', 'A'],
      { remove: 'matches', ordered: false },
      { removed: 4, found: [1, 0] },
      without(a, b, c, d),
    ],
    [
      'removes the others from both keys, but nothing unreadable',
      ['A'],
      { remove: 'others' },
      { removed: 3, found: [0] },
      without(b, d, e),
    ],
    [
      'removes the others everywhere without an order',
      ['A'],
      { remove: 'others', ordered: false },
      { removed: 4, found: [0] },
      without(b, c, d, e),
    ],
    ['removes nothing when all stay', ['A', 'same', ALL_BYTES], { remove: 'others' }, { found: [0, 1, 2] }],
    ['removes nothing when nothing matches', ['B'], { remove: 'matches' }, { found: [] }],
    [
      'the next page starts behind what stayed',
      ['A'],
      { remove: 'others', page: 4 },
      { removed: 1, next: ['30', c], found: [0] },
      without(b),
    ],
    [
      'the next page starts at the same place when the page is gone',
      ['no'],
      { remove: 'others', page: 2, afterScore: '30', after: c },
      { removed: 2, next: ['30', c], found: [] },
      without(d, e),
    ],
    [
      'stops when the time is over, and goes on from there',
      ['A'],
      { remove: 'others', ordered: false, budgetUs: 0 },
      { removed: 1, next: ['10', a], found: [0] },
      without(b),
    ],
  ]
  for (const [what, payloads, options, reply, after = all] of cases) {
    it(what, async () => {
      const queue = await rig.queue(all)
      const { removed, next, found } = await filterIn(queue, payloads, options)
      expect({ removed, found: [...found] }).to.deep.equal({ removed: reply.removed ?? 0, found: reply.found })
      expect(next && [next.afterScore, readable(next.after)]).to.deep.equal(
        reply.next === undefined ? null : [reply.next[0], readable(reply.next[1])],
      )
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('knows infinite and fractional scores', async () => {
    const entries = ['a', 'b', 'c', 'd'].map((id) => ordered(id, 'x'))
    const scores = ['-inf', '0.1', '1e+20', 'inf']
    const queue = await rig.queue({ timeouts: entries.map((entry, n) => [entry, scores[n]!] as const) })
    const seen: string[] = []
    let next: FilterScheduleReply['next'] = { afterScore: '', after: Buffer.alloc(0) }
    for (let rounds = 0; next !== null && rounds < 9; rounds++) {
      const reply: FilterScheduleReply = await filterIn(queue, ['y'], { ...next, page: 1 })
      next = reply.next
      if (next !== null) seen.push(readable(next.after))
    }
    expect(seen).to.deep.equal(entries.map(readable))
  })

  it('comes to an end when an entry without bytes ends a page', async () => {
    const queue = await rig.queue({
      timeouts: [
        ['', 1],
        [a, 1],
      ],
      order: [a],
    })
    const first = await filterIn(queue, ['A'], { page: 1 })
    expect(first).to.deep.equal({ removed: 0, next: { afterScore: '1', after: Buffer.alloc(0) }, found: [] })
    const second = await filterIn(queue, ['A'], { ...first.next, page: 1 })
    expect(second).to.deep.equal({ removed: 0, next: { afterScore: '1', after: a }, found: [0] })
  })

  it('comes to an end when it may remove only one at a time', async () => {
    const entries = Array.from({ length: 50 }, (_, n) => ordered(`e${n}`, n % 2 === 0 ? 'stay' : 'go'))
    const queue = await rig.queue({ timeouts: entries.map((entry) => [entry, 7] as const), order: entries })
    let next: FilterScheduleReply['next'] = { afterScore: '', after: Buffer.alloc(0) }
    let removed = 0
    for (let rounds = 0; next !== null; rounds++) {
      expect(rounds).to.be.below(60)
      const reply: FilterScheduleReply = await filterIn(queue, ['stay'], {
        ...next,
        page: 10,
        remove: 'others',
        budgetUs: 0,
      })
      removed += reply.removed
      next = reply.next
    }
    expect(removed).to.equal(25)
    expect((await queue.read()).order).to.have.lengthOf(25)
  })

  it('finds nothing in an empty schedule', async () => {
    const reply = await filterIn(await rig.queue(), ['a'], { remove: 'others' })
    expect(reply).to.deep.equal({ removed: 0, next: null, found: [] })
  })

  it('changes nothing when the order list is not a list', async () => {
    const queue = await rig.queue({ timeouts: [[a, 1]] })
    await rig.redis.set(queue.keys.order, 'in the way')
    expect(await rejection(filterIn(queue, ['x'], { remove: 'others' }))).to.include({ code: 'ERR_WRONG_TYPE' })
    expect(await rig.redis.zcard(queue.keys.timeouts)).to.equal(1)
  })
})
