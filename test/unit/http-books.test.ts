import { expect } from 'chai'
import { Books } from '../faults/http/books.js'

const DUE = 100_000

describe('Books of the fault bench over HTTP', () => {
  /** The verdict on a message that came so late. */
  const judged = (lateMs: number, catchUpMs = 0): readonly string[] => {
    const books = new Books()
    const message = books.begin({
      ...{ id: 'x', delay: 0, priority: 0, headers: {}, bizKey: 'b' },
      body: { n: 1, fails: false, text: '' },
    })
    Object.assign(message, { state: 'accepted', outcome: 'added', acceptedAt: DUE, dueAt: DUE })
    message.deliveries.push({ lease: '1', attempt: 1, polledAt: DUE + lateMs, at: DUE + lateMs })
    books.judge({ isRedisWell: true, lagMs: () => 500, catchUpMs })
    return books.problems.map(({ wrong }) => wrong)
  }

  it('a message is late after the visibility and a second, and what the machine lags', () => {
    expect(judged(4_500)).to.deep.equal([])
    expect(judged(4_501)).to.deep.equal(['late'])
  })

  it('or after the time in which consumers may be behind', () => {
    expect(judged(6_500, 2_000)).to.deep.equal([])
    expect(judged(6_501, 2_000)).to.deep.equal(['late'])
  })
})
