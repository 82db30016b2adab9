import { expect } from 'chai'
import { ConnectionError } from '../../src/errors.js'
import type { ReliableMessage } from '../../src/reliable/message.js'
import type { ReliableQueue } from '../../src/reliable/reliable-queue.js'
import { nextTurn } from '../../src/timing/pause.js'
import { COMPLETED, type Assignment, type Outcome } from '../../src/workers/assignment.js'
import { Settlement } from '../../src/workers/settlement.js'

/** A queue that answers with what `answer` returns, and the requests that it got. */
function queueOf(answer: (ids: string[]) => boolean[] | Error) {
  const asked: string[][] = []
  const acknowledge = async (...messages: ReliableMessage[]): Promise<boolean[]> => {
    const ids = messages.map(({ id }) => id)
    asked.push(ids)
    const answers = answer(ids)
    if (answers instanceof Error) throw answers
    return answers
  }
  const queue = { acknowledge } as unknown as ReliableQueue
  return { asked, queue }
}

const LOST: Outcome = { is: 'lost', error: new ConnectionError('broken', 'unknown') }

function setUp() {
  const answers: [id: string, answer: boolean | Error][] = []
  const settled: [id: string, outcome: Outcome][] = []
  const settlement = new Settlement({
    keepsResults: false,
    onError: (error) => {
      throw error
    },
    mayTryAgain: ({ is }) => is === 'completed',
    onSettled: ({ message }, outcome) => {
      settled.push([message.id, outcome])
      if (outcome === COMPLETED) answers.push([message.id, true])
    },
  })
  /** An assignment whose outcome is lost when it has to be sent alone. */
  const assigned = (queue: ReliableQueue, id: string): Assignment => {
    const settle = async (outcome: Outcome, mayTryAgain: () => boolean, answer?: boolean | Error): Promise<Outcome> => {
      if (answer !== undefined) answers.push([id, answer])
      return mayTryAgain() ? LOST : outcome
    }
    return { queue, message: { id }, settle } as unknown as Assignment
  }
  const complete = (queue: ReliableQueue, id: string): void => settlement.settle(assigned(queue, id), COMPLETED)
  return { answers, settled, settlement, assigned, complete }
}

describe('Settlement', () => {
  it('acknowledges the messages completed in one turn together, queue by queue', async () => {
    const { answers, complete } = setUp()
    const [first, second] = [queueOf((ids) => ids.map((id) => id !== 'b')), queueOf((ids) => ids.map(() => true))]
    for (const id of ['a', 'b']) complete(first.queue, id)
    complete(second.queue, 'c')
    await Promise.resolve()
    complete(first.queue, 'd')
    await nextTurn()
    await nextTurn()
    expect([first.asked, second.asked]).to.deep.equal([[['a', 'b', 'd']], [['c']]])
    expect(new Map(answers)).to.deep.equal(
      new Map([
        ['a', true],
        ['b', false],
        ['c', true],
        ['d', true],
      ]),
    )
    complete(second.queue, 'e')
    await nextTurn()
    await nextTurn()
    expect(second.asked).to.deep.equal([['c'], ['e']])
  })

  it('gives the error to each, and the other queues their answers', async () => {
    const { answers, complete } = setUp()
    const error = new ConnectionError('broken', 'unknown')
    const [broken, healthy] = [queueOf(() => error), queueOf(() => [true])]
    complete(broken.queue, 'a')
    complete(healthy.queue, 'b')
    complete(broken.queue, 'c')
    await nextTurn()
    await nextTurn()
    expect(new Map(answers)).to.deep.equal(
      new Map<string, boolean | Error>([
        ['a', error],
        ['b', true],
        ['c', error],
      ]),
    )
  })

  it('sends each script at most its limit: an error of one does not hide the results of the others', async () => {
    const { answers, complete } = setUp()
    const error = new ConnectionError('broken', 'unknown')
    const queue = queueOf((ids) => (ids.includes('2000') ? error : ids.map(() => true)))
    for (let n = 0; n < 2_001; n++) complete(queue.queue, String(n))
    await nextTurn()
    await nextTurn()
    expect(queue.asked.map(({ length }) => length)).to.deep.equal([1_000, 1_000, 1])
    expect(answers.filter(([, answer]) => answer === true)).to.have.length(2_000)
    expect(answers.filter(([, answer]) => answer === error)).to.deep.equal([['2000', error]])
  })

  it('sends a refused acknowledgement again with its answer, and every other outcome alone', async () => {
    const { answers, settled, settlement, assigned, complete } = setUp()
    const { asked, queue } = queueOf((ids) => ids.map(() => false))
    complete(queue, 'refused')
    settlement.settle(assigned(queue, 'released'), { is: 'released' })
    await nextTurn()
    await nextTurn()
    expect(asked).to.deep.equal([['refused']])
    expect(answers).to.deep.equal([['refused', false]])
    expect(new Map(settled)).to.deep.equal(
      new Map<string, Outcome>([
        ['released', { is: 'released' }],
        ['refused', LOST],
      ]),
    )
  })
})
