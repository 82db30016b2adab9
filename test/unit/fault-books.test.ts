import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { LATENESS_MS, problemsOf } from '../faults/bench/bench.js'
import { Books, numberIn, type ClockShift } from '../faults/bench/books.js'
import type { Entry } from '../faults/bench/job.js'
import { ordered, unordered } from '../lua/support.js'

/** The judge of the fault bench must see each wrong, or all its verdicts are worth nothing. */
describe('the books of the fault bench', () => {
  const HEALED = 10_000
  const HOUR = 3_600_000

  interface More {
    readonly clock?: ClockShift[]
    readonly tail?: string
    /** The numbers in the schedule in the end. */
    readonly pending?: readonly number[]
  }

  function read<T>(entries: readonly Entry[], tail: string, judge: (books: Books) => T): T {
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-books-'))
    try {
      // consumers write into other files than producers, and may be read first
      const files = [join(dir, 'consumer'), join(dir, 'producer'), join(dir, 'never-written')]
      const lines = (which: (entry: Entry) => boolean): string =>
        entries
          .filter(which)
          .map((entry) => `${JSON.stringify(entry)}\n`)
          .join('')
      writeFileSync(
        files[0]!,
        lines(([kind]) => kind === 'got'),
      )
      writeFileSync(files[1]!, lines(([kind]) => kind !== 'got') + tail)
      return judge(new Books(files))
    } finally {
      rmSync(dir, { recursive: true })
    }
  }
  const check = (entries: readonly Entry[], { clock = [], tail = '', pending }: More = {}) =>
    read(entries, tail, (books) => books.check(HEALED, clock, pending && new Set(pending)))
  const offered = (n: number, due: number): Entry[] => [
    ['try', n],
    ['ok', n, due],
  ]
  const clean = { lost: 0, dropped: 0, duplicated: 0, early: 0, wrong: 0 }

  it('find nothing where all went well', () => {
    const found = check([...offered(1, 500), ['got', 1, 500], ...offered(2, 11_000), ['got', 2, 11_007]])
    expect(found).to.include({ ...clean, acknowledged: 2, delivered: 2, latestMs: 7 })
  })

  it('a message that was acknowledged and never came is lost', () => {
    expect(check(offered(1, 500))).to.include({ ...clean, lost: 1 })
  })

  it('one that is due long after is not', () => {
    expect(check(offered(1, HEALED + HOUR))).to.include({ ...clean, acknowledged: 1 })
  })

  it('it is dropped when it is not pending any more in the end', () => {
    const far = offered(1, HEALED + HOUR)
    expect(check(far, { pending: [1] })).to.include({ ...clean, acknowledged: 1 })
    const gone = check(far, { pending: [2] })
    expect(gone).to.include({ ...clean, dropped: 1 })
    expect(gone.examples[0]).to.match(/^1 was acknowledged.*not pending any more$/)
    expect(check([...far, ['cancelling', 1, HEALED + HOUR]], { pending: [] }), 'perhaps cancelled').to.include(clean)
    expect(check([['try', 1]], { pending: [] }), 'never acknowledged').to.include(clean)
    expect(check(offered(1, 500), { pending: [1] }), 'due, and still there').to.include({ ...clean, lost: 1 })
  })

  it('a message that no consumer had must not be dropped, even if some may be lost', () => {
    const found = check(offered(1, HEALED + HOUR), { pending: [] })
    const result = { ...found, delivered: 9, quarantined: 0, pending: 0, errors: {}, lagMs: 0 }
    expect(problemsOf(result, { lost: Infinity })[0]).to.equal('1 dropped, at most 0 may be')
    expect(problemsOf(result, { dropped: 1 })).to.deep.equal([])
  })

  it('a machine that runs nothing for a while is not a defect of the library', () => {
    const result = { ...check(offered(1, HEALED + HOUR), { pending: [1] }), delivered: 9, quarantined: 0, pending: 1 }
    const late = { ...result, errors: {}, latestMs: LATENESS_MS + 500 }
    expect(problemsOf({ ...late, lagMs: 10 }, {})[0]).to.match(/ms late after the healing/)
    expect(problemsOf({ ...late, lagMs: 125 }, {})).to.deep.equal([])
  })

  it('measure lateness by the clock of Redis, as due times are', () => {
    const forth = { clock: [{ at: 1_000, shiftMs: HOUR }], pending: [] }
    expect(check(offered(1, HOUR + 500), forth).examples[0], 'due by now').to.match(/never came$/)
    expect(check(offered(1, 2 * HOUR), forth).examples[0], 'offered after the jump').to.match(/not pending any more$/)
    expect(check(offered(1, 2 * HOUR), { ...forth, pending: [1] })).to.include(clean)
  })

  it('the next chapter knows the messages that must be left, and does not count them again', () => {
    const entries: Entry[] = [...offered(1, HEALED + HOUR), ...offered(2, 500), ['got', 2, 500], ['try', 3]]
    const cancelled: Entry[] = [...offered(4, HEALED + HOUR), ['cancel', 4, true]]
    const kept = read([...entries, ...cancelled], '', (books) => books.far(HEALED, []))
    expect(kept).to.deep.equal([['kept', 1, HEALED + HOUR]])
    expect(check(kept, { pending: [1] })).to.include({ ...clean, acknowledged: 0, refused: 0, unanswered: 0 })
    expect(check(kept, { pending: [] })).to.include({ ...clean, dropped: 1 })
    expect(read(kept, '', (books) => books.far(HEALED, []))).to.deep.equal(kept)
  })

  it('numbers are read from entries of both layouts, and from nothing else', () => {
    expect([ordered('id', '17'), unordered('id', '10000018', 9)].map(numberIn)).to.deep.equal([17, 10_000_018])
    expect([Buffer.alloc(0), Buffer.of(8), Buffer.from('plain text of another program')].map(numberIn)).to.deep.equal([
      NaN,
      NaN,
      NaN,
    ])
  })

  it('one that came twice is doubled', () => {
    expect(check([...offered(1, 500), ['got', 1, 500], ['got', 1, 600]])).to.include({ ...clean, duplicated: 1 })
  })

  it('one that came a millisecond before its time is early', () => {
    expect(check([...offered(1, 500), ['got', 1, 499]])).to.include({ ...clean, early: 1 })
  })

  it('cancelled, refused or never offered, and yet delivered: wrong', () => {
    const entries: Entry[] = [
      ...offered(1, 500),
      ['cancelling', 1, 500],
      ['cancel', 1, true],
      ['try', 2],
      ['no', 2, 'ERR_READ_ONLY'],
      ['got', 1, 600],
      ['got', 2, 600],
      ['got', 3, 600],
    ]
    expect(check(entries)).to.include({ ...clean, wrong: 3, cancelled: 1 })
  })

  it('cancelled too late: the message must come', () => {
    const late: Entry[] = [...offered(1, 500), ['cancelling', 1, 500], ['cancel', 1, false]]
    expect(check(late)).to.include({ ...clean, lost: 1 })
    expect(check([...late, ['got', 1, 500]])).to.include(clean)
  })

  it('a message that no process knows may be there or not', () => {
    for (const end of [[], [['lost answer', 1]]] as Entry[][]) {
      expect(check([['try', 1], ...end])).to.include({ ...clean, unanswered: 1 })
      expect(check([['try', 1], ...end, ['got', 1, 500]])).to.include({ ...clean, unanswered: 1 })
    }
    const cancelling: Entry[] = [...offered(1, 500), ['cancelling', 1, 500]]
    expect(check(cancelling)).to.include(clean)
    expect(check([...cancelling, ['got', 1, 500]])).to.include(clean)
  })

  it('put off, it may not come at the old time; perhaps put off, it may', () => {
    const moving: Entry[] = [...offered(1, 500), ['moving', 1, 500]]
    expect(check([...moving, ['move', 1, 900], ['got', 1, 500]])).to.include({ ...clean, early: 1 })
    expect(check([...moving, ['move', 1, 900], ['got', 1, 900]])).to.include(clean)
    expect(check([...moving, ['move', 1, null], ['got', 1, 500]])).to.include(clean)
    expect(check([...moving, ['got', 1, 500]])).to.include(clean)
  })

  it('late is counted from the due time, or from the healing for what was overdue then', () => {
    expect(check([...offered(1, 500), ['got', 1, HEALED + 300]])).to.include({ latestMs: 300 })
    expect(check([...offered(1, HEALED + 200), ['got', 1, HEALED + 300]])).to.include({ latestMs: 100 })
    expect(check([...offered(1, 500), ['got', 1, HEALED - 300]]), 'before the healing').to.include({ latestMs: 0 })
  })

  it('the clock of Redis counts, on either side of a jump', () => {
    const forth = [{ at: 1_000, shiftMs: HOUR }]
    expect(check([...offered(1, HOUR + 500), ['got', 1, 2_000]], { clock: forth })).to.include(clean)
    expect(check([...offered(1, HOUR + 500), ['got', 1, 950]], { clock: forth }), 'just before').to.include(clean)
    expect(check([...offered(1, HOUR + 500), ['got', 1, 800]], { clock: forth })).to.include({ ...clean, early: 1 })
    const back = [{ at: 1_000, shiftMs: -HOUR }]
    expect(check([...offered(1, 900), ['got', 1, 2_000]], { clock: back })).to.include({ ...clean, early: 1 })
  })

  it('the last line may be cut off by a kill', () => {
    expect(check([...offered(1, 500), ['got', 1, 500]], { tail: '["try",' })).to.include({ ...clean, acknowledged: 1 })
  })
})
