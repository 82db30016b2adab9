import { expect } from 'chai'
import { ConnectionError } from '../../src/errors.js'
import type { ReliableMessage } from '../../src/reliable/message.js'
import type { ReliableQueue } from '../../src/reliable/reliable-queue.js'
import { nextTurn } from '../../src/timing/pause.js'
import type { Assignment } from '../../src/workers/assignment.js'
import { Completions } from '../../src/workers/completions.js'

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
  return { asked, assigned: (id: string) => ({ queue, message: { id } }) as unknown as Assignment }
}

function setUp() {
  const answers: [id: string, answer: boolean | Error][] = []
  const completions = new Completions(({ message }, answer) => answers.push([message.id, answer]))
  return { answers, completions }
}

describe('Completions', () => {
  it('acknowledges what was completed in one turn together, queue by queue', async () => {
    const { answers, completions } = setUp()
    const [first, second] = [queueOf((ids) => ids.map((id) => id !== 'b')), queueOf((ids) => ids.map(() => true))]
    for (const id of ['a', 'b']) completions.add(first.assigned(id))
    completions.add(second.assigned('c'))
    await Promise.resolve()
    completions.add(first.assigned('d'))
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
    completions.add(second.assigned('e'))
    await nextTurn()
    await nextTurn()
    expect(second.asked).to.deep.equal([['c'], ['e']])
  })

  it('gives the error to each, and the other queues their answers', async () => {
    const { answers, completions } = setUp()
    const error = new ConnectionError('broken', 'unknown')
    const [broken, healthy] = [queueOf(() => error), queueOf(() => [true])]
    completions.add(broken.assigned('a'))
    completions.add(healthy.assigned('b'))
    completions.add(broken.assigned('c'))
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

  it('asks of one script no more than it takes: an error of one does not hide what came of the others', async () => {
    const { answers, completions } = setUp()
    const error = new ConnectionError('broken', 'unknown')
    const queue = queueOf((ids) => (ids.includes('2000') ? error : ids.map(() => true)))
    for (let n = 0; n < 2_001; n++) completions.add(queue.assigned(String(n)))
    await nextTurn()
    await nextTurn()
    expect(queue.asked.map(({ length }) => length)).to.deep.equal([1_000, 1_000, 1])
    expect(answers.filter(([, answer]) => answer === true)).to.have.length(2_000)
    expect(answers.filter(([, answer]) => answer === error)).to.deep.equal([['2000', error]])
  })
})
