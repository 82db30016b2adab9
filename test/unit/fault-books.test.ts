import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Books, type ClockShift } from '../faults/bench/books.js'
import type { Entry } from '../faults/bench/job.js'

/** The judge of the fault bench must see each wrong, or all its verdicts are worth nothing. */
describe('the books of the fault bench', () => {
  const HEALED = 10_000
  const HOUR = 3_600_000

  function check(entries: readonly Entry[], { clock = [], tail = '' }: { clock?: ClockShift[]; tail?: string } = {}) {
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
      return new Books(files).check(HEALED, clock)
    } finally {
      rmSync(dir, { recursive: true })
    }
  }
  const offered = (n: number, due: number): Entry[] => [
    ['try', n],
    ['ok', n, due],
  ]
  const clean = { lost: 0, duplicated: 0, early: 0, wrong: 0 }

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

  it('cancelled too late: it has to come', () => {
    const late: Entry[] = [...offered(1, 500), ['cancelling', 1, 500], ['cancel', 1, false]]
    expect(check(late)).to.include({ ...clean, lost: 1 })
    expect(check([...late, ['got', 1, 500]])).to.include(clean)
  })

  it('what nobody knows may be or not', () => {
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
