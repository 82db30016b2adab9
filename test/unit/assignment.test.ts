import { expect } from 'chai'
import { CommandError, ConnectionError, ReadOnlyError, WrongTypeError } from '../../src/errors.js'
import { ReliableMessage, type MessageActions } from '../../src/reliable/message.js'
import type { ReliableQueue } from '../../src/reliable/reliable-queue.js'
import { Assignment, type Outcome } from '../../src/workers/assignment.js'
import { LeaseLostError } from '../../src/workers/outcomes.js'

const COMPLETED: Outcome = { is: 'completed' }
const refused = (): Error => new ConnectionError('refused', 'not-applied')
const broken = (): Error => new ConnectionError('broken', 'unknown')

/** A message whose acknowledgements give one answer after the other, then the last again and again. */
function make(answers: readonly (boolean | Error)[], { heldMs = 60_000, resends = false } = {}) {
  let asked = 0
  const actions: MessageActions = {
    queueKey: 'key',
    acknowledge: async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)]
      if (answer instanceof Error) throw answer
      return answer === true
    },
    negativeAcknowledge: async () => false,
    extend: async () => false,
  }
  const delivery = { id: Buffer.from('a'), priority: 0, lease: '1 token' }
  const times = { visibleAt: 0, polledAt: 0, visibleUntil: heldMs, heldUntil: performance.now() + heldMs }
  const message = new ReliableMessage<unknown>(actions, delivery, { id: 'a', payload: 'a', headers: {}, ...times })
  const queue = { name: 'queue', context: { commands: { resends } } } as unknown as ReliableQueue
  const assignment = new Assignment(queue, message)
  return { settle: (mayTryAgain = () => true) => assignment.settle(COMPLETED, mayTryAgain), asked: () => asked }
}

describe('Assignment', () => {
  it('tells Redis as often as it takes, while nobody else can have the message', async () => {
    const { settle, asked } = make([...Array.from({ length: 6 }, refused), true])
    expect(await settle()).to.deep.equal(COMPLETED)
    expect(asked()).to.equal(7)
  })

  for (const error of [
    new CommandError('BUSY', 'a script runs'),
    new CommandError('NOREPLICAS', 'few'),
    new ReadOnlyError(),
  ]) {
    it(`tells it again after ${error instanceof CommandError ? error.redisCode : error.code}`, async () => {
      expect(await make([error, true]).settle()).to.deep.equal(COMPLETED)
    })
  }

  it('does not tell it again what will not pass, nor when the time to close is over', async () => {
    const wrongType = make([new WrongTypeError(), true])
    expect(await wrongType.settle()).to.have.nested.property('error.code', 'ERR_WRONG_TYPE')
    const closed = make([refused(), true])
    expect(await closed.settle(() => false)).to.have.nested.property('error.code', 'ERR_CONNECTION')
    expect([wrongType.asked(), closed.asked()]).to.deep.equal([1, 1])
  })

  it('gives up when the message can be with somebody else', async () => {
    const { settle, asked } = make([refused()], { heldMs: 300 })
    expect(await settle())
      .to.include({ is: 'lost' })
      .and.have.nested.property('error.code', 'ERR_CONNECTION')
    expect(asked()).to.be.within(2, 3)
  })

  for (const [what, answers, resends] of [
    ['after an answer that was lost', [broken(), false], false],
    ['from a client that repeats by itself', [false], true],
  ] as const) {
    it(`takes false ${what} for done while it holds the message, and for lost afterwards`, async () => {
      expect(await make(answers, { resends }).settle()).to.deep.equal(COMPLETED)
      const late = await make(answers, { resends, heldMs: resends ? 0 : 100 }).settle()
      expect(late).to.include({ is: 'lost' })
      expect('error' in late && late.error).to.be.instanceOf(LeaseLostError)
    })
  }

  it('takes false for lost when every answer came', async () => {
    expect(await make([refused(), false]).settle()).to.include({ is: 'lost' })
  })
})
