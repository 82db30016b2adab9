import { expect } from 'chai'
import { Books, type Loss } from '../faults/journal/books.js'
import type { AddAnswer, Flow, Item } from '../faults/journal/protocol.js'
import { Versions } from '../faults/journal/versions.js'

const ITEM: Item = {
  id: 'x',
  payload: { n: 1, kind: 'usual', text: '' },
  delay: 0,
  priority: 0,
  headers: {},
  deliveryLimit: 1_000,
}
/** The date of Redis is another than that of the machine. */
const AHEAD = 100_000
const WIPED: Loss = {
  what: 'all',
  back: -Infinity,
  from: 20_000,
  to: 22_000,
  toAtRedis: 22_000 + AHEAD,
  seenAt: 23_000,
  restoredAt: 40_000,
  isAlone: true,
}
const WENT_BACK: Loss = { ...WIPED, what: 'since a snapshot', back: 15_000 }

describe('Books of the journal’s fault bench: what is delivered again', () => {
  /** The books' verdict on a message that was handled at these times, by the machine; negative: without success. */
  const judged = ({
    handled,
    losses = [],
    flow = handled.map((at) => ({ change: 'acknowledged', at: at + AHEAD })),
    asked = 9_900,
    accepted = 10_000,
    downs = [],
  }: {
    handled: readonly number[]
    losses?: readonly Loss[]
    flow?: Flow
    asked?: number
    accepted?: number
    downs?: Books['downs']
  }): string[] => {
    const books = new Books()
    books.losses.push(...losses)
    books.downs.push(...downs)
    const message = books.begin(ITEM, 'digest')
    const answer: AddAnswer = { outcome: 'added', dueAt: 0 }
    books.answered(message, answer, asked)
    message.acceptedAt = accepted
    handled.forEach((at, n) => {
      const how = at < 0 ? 'failed' : 'done'
      at = Math.abs(at)
      const { id, priority, headers } = ITEM
      const polledAt = at - 10 + AHEAD
      const claim = { id, priority, headers, lease: String(n), attempt: 1, visibleAt: 0, polledAt, digest: 'digest' }
      books.claimed({ ...claim, at: at - 10 })
      books.said({ said: 'answered', id, lease: String(n), how, effect: true, at })
    })
    books.judge(new Map([['x', flow]]))
    return books.problems.map(({ wrong }) => wrong)
  }

  it('not where Redis lost nothing', () => {
    expect(judged({ handled: [12_000] })).to.deep.equal([])
    expect(judged({ handled: [12_000, 30_000] })).to.deep.equal(['twice'])
  })

  it('where Redis lost it before SQL had read it', () => {
    const flow = [{ change: 'acknowledged', at: 30_000 + AHEAD }]
    expect(judged({ handled: [19_900, 30_000], losses: [WIPED], flow })).to.deep.equal([])
    expect(judged({ handled: [19_900, 30_000], losses: [WENT_BACK], flow })).to.deep.equal([])
    expect(judged({ handled: [19_900, 30_000], losses: [WIPED] }), 'SQL had read it').to.deep.equal(['twice'])
    expect(judged({ handled: [14_000 - 5_000, 30_000], losses: [WENT_BACK], flow }), 'before').to.deep.equal(['twice'])
  })

  it('where it was handled before a journal had seen the loss', () => {
    const losses = [WIPED]
    expect(judged({ handled: [22_900, 30_000], losses, flow: [] })).to.deep.equal([])
    expect(judged({ handled: [25_000, 30_000], losses, flow: [] }), 'after it').to.deep.equal(['twice'])
  })

  it('not where a Redis that went back was there again', () => {
    const losses = [WENT_BACK]
    expect(judged({ handled: [21_900, 30_000], losses })).to.deep.equal([])
    expect(judged({ handled: [25_000, 30_000], losses })).to.deep.equal(['twice'])
  })

  it('not where Redis recorded it since it is there again, however late its consumer reports it', () => {
    const losses = [WENT_BACK]
    expect(judged({ handled: [22_100, 30_000], losses, flow: [] })).to.deep.equal([])
    expect(judged({ handled: [22_100, 30_000], losses })).to.deep.equal(['twice'])
  })

  it('where the client has repeated the addition', () => {
    const late = { asked: 10_000, accepted: 12_100 }
    expect(judged({ handled: [10_500, 12_200], ...late })).to.deep.equal([])
    expect(judged({ handled: [10_500, -12_200, 12_300], ...late }), 'it failed').to.deep.equal([])
    expect(judged({ handled: [10_500, 12_200, 12_300], ...late }), 'once').to.deep.equal(['twice'])
    expect(judged({ handled: [10_500, 30_000], ...late }), 'soon').to.deep.equal(['twice'])
    expect(judged({ handled: [14_000, 15_000], ...late }), 'before the answer').to.deep.equal(['twice'])
    const quick = { asked: 10_000, accepted: 11_100 }
    expect(judged({ handled: [10_500, 11_200], ...quick })).to.deep.equal(['twice'])
    const downs = [{ from: 10_600, to: 10_900 }]
    expect(judged({ handled: [10_500, 11_200], ...quick, downs }), 'a connection broke').to.deep.equal([])
  })
})

describe('Books of the journal’s fault bench: what was cancelled', () => {
  const judged = (kind: 'usual' | 'poison', ...times: readonly number[]): readonly string[] => {
    const books = new Books()
    books.losses.push(WENT_BACK)
    const message = books.begin({ ...ITEM, payload: { ...ITEM.payload, kind } }, 'digest')
    books.answered(message, { outcome: 'added', dueAt: 0 }, 9_900)
    message.cancel = { from: 16_000, to: 16_010, done: true }
    const { id, priority, headers } = ITEM
    times.forEach((at, lease) => {
      const claim = { id, priority, headers, lease: String(lease), attempt: 1, visibleAt: 0, digest: 'digest', at }
      books.claimed({ ...claim, polledAt: at + AHEAD })
    })
    books.judge(new Map())
    return books.problems.map(({ wrong }) => wrong)
  }

  it('comes only where Redis went back, until all is restored', () => {
    expect(judged('usual', 15_000), 'before').to.deep.equal([])
    expect(judged('usual', 25_000)).to.deep.equal([])
    expect(judged('usual', 50_000), 'long after').to.deep.equal(['cancelled'])
  })

  it('can be redriven if it came back and always fails', () => {
    expect(judged('poison', 25_000, 50_000)).to.deep.equal([])
    expect(judged('usual', 25_000, 50_000)).to.deep.equal(['cancelled'])
    expect(judged('poison', 50_000)).to.deep.equal(['cancelled'])
  })
})

describe('Books of the journal’s fault bench: what is lost', () => {
  const POISON: Item = { ...ITEM, payload: { ...ITEM.payload, kind: 'poison' }, deliveryLimit: 2 }

  it('not a message whose last failure no consumer could say, and which is a dead letter', () => {
    const books = new Books()
    const message = books.begin(POISON, 'digest')
    books.answered(message, { outcome: 'added', dueAt: 0 }, 9_900)
    expect(books.perhapsDead(), 'it was never polled').to.deep.equal([])
    const { id, priority, headers } = POISON
    const claim = { id, priority, headers, lease: '1', attempt: 1, visibleAt: 0, polledAt: 0, digest: 'digest', at: 0 }
    books.claimed(claim)
    books.said({ said: 'answered', id, lease: '1', how: 'failed', effect: true, at: 1 })
    expect(books.open()).to.deep.equal([message])
    expect(books.perhapsDead()).to.deep.equal([message])
    message.isDead = true
    expect(books.open()).to.deep.equal([])
    expect(books.dead()).to.deep.equal([message])
  })

  it('a message of tomorrow that was rescheduled just before Redis was wiped is waited for, if SQL has the change', () => {
    const books = new Books()
    const message = books.begin({ ...ITEM, delay: 86_400_000 }, 'digest')
    books.answered(message, { outcome: 'added', dueAt: 86_400_000 }, 9_900)
    const { from } = WIPED
    const changed = from - 2_000
    const now = Date.now
    Date.now = () => changed
    books.reschedules(message, from, true)({ done: true, from: changed + AHEAD, to: changed + AHEAD })
    Date.now = now
    books.losses.push(WIPED)
    const inSql = new Map<string, Flow>([['x', [{ change: 'rescheduled', at: changed + AHEAD }]]])
    const notInSql = new Map<string, Flow>([['x', []]])
    expect([books.open(inSql), books.far(inSql)]).to.deep.equal([[message], []])
    expect([books.open(notInSql), books.far(notInSql)]).to.deep.equal([[], [message]])
    expect(books.open(), 'before SQL was asked it can be either').to.deep.equal([])
  })

  /** The verdict on a message with these attempts before a redrive, while it is under way, and after it. */
  const redriven = (
    { before = [], during = [], after = [] }: Partial<Record<'before' | 'during' | 'after', readonly number[]>>,
    { losses = [], flow = [] }: { losses?: readonly Loss[]; flow?: Flow } = {},
  ): readonly string[] => {
    const books = new Books()
    books.newRound(AHEAD)
    books.begin(POISON, 'digest')
    let lease = 0
    const claim = { id: POISON.id, visibleAt: 0, polledAt: 0, digest: 'digest', at: 0, priority: 0, headers: {} }
    const claimAll = (attempts: readonly number[]): void =>
      attempts.forEach((attempt) => books.claimed({ ...claim, attempt, lease: String(lease++) }))
    claimAll(before)
    const answered = books.redrives()
    claimAll(during)
    answered({ moved: 1 })
    claimAll(after)
    books.losses.push(...losses)
    const letters = books.unseenLetters()
    if (letters !== undefined) books.judgeRedriven(new Map(letters.map((id) => [id, flow])))
    return books.problems.map(({ wrong }) => wrong)
  }

  it('a redriven dead letter that no consumer got, unless Redis lost data in this round', () => {
    expect(redriven({})).to.deep.equal(['lost'])
    const losses = [{ ...WIPED, to: Date.now() + 1_000 }]
    expect(redriven({}, { losses })).to.deep.equal([])
  })

  it('not a redriven dead letter of which no consumer reported the first attempt', () => {
    expect(redriven({ before: [2], after: [2] })).to.deep.equal([])
    expect(redriven({ before: [2], after: [3] }), 'a further attempt').to.deep.equal(['lost'])
  })

  it('not a message that died, was redriven and came while the redrive was under way', () => {
    expect(redriven({ during: [1, 2, 1] })).to.deep.equal([])
    expect(redriven({ during: [1, 2, 2] }), 'the same attempt again').to.deep.equal(['lost'])
  })

  it('not a redriven dead letter of which no consumer reported anything, if SQL knows that one got it in this round', () => {
    const inSql = (...changes: string[]): Flow => changes.map((change, at) => ({ change, at: AHEAD + at }))
    const before = [1, 2]
    expect(redriven({ before }, { flow: inSql('dead', 'redriven', 'polled', 'failed') })).to.deep.equal([])
    expect(redriven({ before }, { flow: inSql('dead', 'redriven') })).to.deep.equal(['lost'])
    expect(redriven({ before }, { flow: inSql('redriven', 'dead') })).to.deep.equal(['lost'])
    const flow = inSql('redriven', 'polled').map(({ change, at }) => ({ change, at: at - 10 }))
    expect(redriven({ before }, { flow }), 'before this round').to.deep.equal(['lost'])
  })

  it('nor another dead letter of a message, which must have its headers and its priority or the lowest', () => {
    const books = new Books()
    books.begin({ ...POISON, priority: 3 }, 'digest')
    books.losses.push(WIPED)
    const second = {
      id: `${POISON.id}~1.2`,
      lease: '1',
      attempt: 1,
      visibleAt: 0,
      polledAt: 0,
      digest: 'digest',
      at: 0,
    }
    for (const priority of [0, 3]) books.claimed({ ...second, priority, headers: {} })
    books.claimed({ ...second, id: `${second.id}~34.1`, priority: 0, headers: {} })
    expect(books.problems).to.deep.equal([])
    books.claimed({ ...second, priority: 9, headers: {} })
    books.claimed({ ...second, priority: 0, headers: { a: 'b' } })
    expect(books.problems.map(({ wrong }) => wrong)).to.deep.equal(['changed', 'changed'])
  })
})

describe('Books of the journal’s fault bench: what a changed message may be', () => {
  /** Its values after changes at these times, by the machine; the first one is `first`. */
  const made = (...changes: readonly (readonly [at: number, done: boolean | null])[]): Versions<string> => {
    const versions = new Versions<string>('updated', 'first')
    for (const [n, [at, done]] of changes.entries()) {
      const answered = versions.begin(String(n), () => at)
      answered(done === null ? { error: 'gone' } : { done, from: at - 5 + AHEAD, to: at + AHEAD })
    }
    return versions
  }
  const known = ({ losses = [] as readonly Loss[], flow = [] as Flow, restores = [] as Books['restores'] } = {}) => {
    return (versions: Versions<string>) => ({ losses, flow, restores, touches: versions.spans })
  }
  const inSql = (...times: readonly number[]): Flow => times.map((at) => ({ change: 'updated', at: at + AHEAD }))
  const allowed = (versions: Versions<string>, given: ReturnType<typeof known>) => versions.allowed(given(versions))

  it('is as the last change says that Redis took', () => {
    expect(allowed(made([1_000, true], [2_000, true]), known())).to.deep.equal(['1'])
    expect(allowed(made([1_000, true], [2_000, false]), known()), 'not taken').to.deep.equal(['0'])
    expect(allowed(made([1_000, true], [2_000, null]), known()), 'unknown').to.deep.equal(['0', '1'])
  })

  it('is earlier only where Redis lost what SQL had not read', () => {
    const losses = [WIPED]
    const versions = made([18_000, true], [18_900, true])
    expect(allowed(versions, known({ losses }))).to.deep.equal(['first', '0', '1'])
    expect(allowed(versions, known({ losses, flow: inSql(18_000) }))).to.deep.equal(['0', '1'])
    expect(allowed(versions, known({ losses, flow: inSql(18_900) }))).to.deep.equal(['1'])
    expect(allowed(made([4_000, true]), known({ losses })), 'long before').to.deep.equal(['0'])
    expect(allowed(made([45_000, true]), known({ losses })), 'after it').to.deep.equal(['0'])
    const stopped = { losses: [{ ...WIPED, isAlone: false }] }
    expect(
      allowed(made([18_000, true]), known({ ...stopped, flow: inSql(18_000) })),
      'SQL was stopped, too',
    ).to.deep.equal(['first', '0'])
    expect(allowed(made([4_000, true]), known({ ...stopped, flow: inSql(4_000) })), 'long before').to.deep.equal(['0'])
  })

  it('is not older than the state to which Redis went back', () => {
    const losses = [WENT_BACK]
    expect(allowed(made([14_000, true], [16_000, true]), known({ losses }))).to.deep.equal(['0', '1'])
    expect(allowed(made([16_000, true]), known({ losses, flow: inSql(16_000) }))).to.deep.equal(['0'])
    const touched = made([16_000, true], [25_000, null])
    expect(allowed(touched, known({ losses, flow: inSql(16_000) }))).to.deep.equal(['first', '0', '1'])
  })

  it('is due when a visibility ends, only if Redis went back to the moment in which a consumer had it', () => {
    const judged = (losses: readonly Loss[], dueAt: number, attempts = 1): readonly string[] => {
      const books = new Books()
      const message = books.begin(ITEM, 'digest')
      books.answered(message, { outcome: 'added', dueAt: 90_000 }, 9_900)
      books.reschedules(message, 16_000, true)({ done: true, from: 10_000, to: 10_010 })
      const { id, priority, headers } = ITEM
      books.claimed({
        ...{ id, priority, headers, lease: '1 a', attempt: 1 },
        ...{ visibleAt: 16_000, polledAt: 16_001, digest: 'digest', at: 16_001 },
      })
      books.losses.push(...losses)
      books.compare([message], [{ id, priority, headers, digest: 'digest', dueAt, attempts }], 'queue')
      return books.problems.map(({ wrong }) => wrong)
    }
    expect(judged([WENT_BACK], 19_001)).to.deep.equal([])
    expect(judged([WENT_BACK], 19_002), 'at another time').to.deep.equal(['changed'])
    expect(judged([WENT_BACK], 19_001, 0), 'no consumer had it').to.deep.equal(['changed'])
    expect(judged([], 19_001), 'Redis lost nothing').to.deep.equal(['changed'])
  })

  it('is what SQL and Redis agreed on, whatever is lost later', () => {
    const versions = made([18_900, true])
    versions.agree('first')
    expect(allowed(versions, known({ losses: [WIPED] }))).to.deep.equal(['first'])
  })

  it('is delivered in an earlier state only where Redis had gone back', () => {
    const versions = made([16_000, true])
    const at = (time: number) => ({ at: time, polledAt: time + AHEAD })
    const flow = inSql(16_000)
    expect(versions.allowedAt(known({ flow })(versions), at(23_000))).to.deep.equal(['0'])
    expect(versions.allowedAt(known({ losses: [WENT_BACK], flow })(versions), at(23_000))).to.deep.equal(['first', '0'])
    expect(versions.allowedAt(known({ losses: [WENT_BACK], flow })(versions), at(45_000))).to.deep.equal(['0'])
    expect(versions.allowedAt(known()(versions), at(15_000)), 'before').to.deep.equal(['first'])
  })
})
