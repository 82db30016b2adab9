import { expect } from 'chai'
import { Books } from '../faults/http/books.js'

const DUE = 100_000
const LATE_MS = 8_000

describe('Books of the fault bench over HTTP', () => {
  /** The verdict on a message that came late, while clients received others at these times. */
  const judged = (others: readonly number[]): readonly string[] => {
    const books = new Books()
    const receive = (id: string, at: number, dueAt: number): void => {
      const message = books.begin({
        id,
        body: { n: 1, fails: false, text: '' },
        delay: 0,
        priority: 0,
        headers: {},
        bizKey: 'b',
      })
      Object.assign(message, { state: 'accepted', outcome: 'added', acceptedAt: dueAt, dueAt })
      message.deliveries.push({ lease: '1', attempt: 1, polledAt: at, at })
    }
    receive('late', DUE + LATE_MS, DUE)
    others.forEach((at, n) => receive(String(n), at, at))
    books.judge({ isRedisWell: true, lagMs: () => 0 })
    return books.problems.map(({ wrong }) => wrong)
  }
  const each = (everyMs: number): number[] => Array.from({ length: LATE_MS / everyMs }, (_, n) => DUE + n * everyMs)

  it('a message is late', () => {
    expect(judged([])).to.deep.equal(['late'])
    expect(judged(each(20)), 'while clients received few others').to.deep.equal(['late'])
  })

  it('but not while clients received a hundred others each second, as it waited behind them', () => {
    expect(judged(each(10))).to.deep.equal([])
    const pause = each(10).filter((at) => at < DUE + 4_000 || at >= DUE + 5_000)
    expect(judged(pause), 'with a second without any').to.deep.equal(['late'])
  })
})
