import { setFlagsFromString } from 'node:v8'
import { runInThisContext } from 'node:vm'
import { expect } from 'chai'
import { CommandError, ConnectionError, ReadOnlyError, ShutdownError, WrongTypeError } from '../../src/errors.js'
import { ReliableMessage, type MessageActions } from '../../src/reliable/message.js'
import type { ReliableQueue } from '../../src/reliable/reliable-queue.js'
import { Assignment, type Outcome } from '../../src/workers/assignment.js'
import type { Handler, HandlerContext } from '../../src/workers/handlers.js'
import { HandlerTimeoutError, VisibilityLostError, retryIn } from '../../src/workers/outcomes.js'

const COMPLETED: Outcome = { is: 'completed' }
const refused = (): Error => new ConnectionError('refused', 'not-applied')
const broken = (): Error => new ConnectionError('broken', 'unknown')

/** A message whose acknowledgements give one answer after the other, then the last again and again. */
function make(answers: readonly (boolean | Error)[], { heldMs = 60_000, resends = false } = {}) {
  let asked = 0
  const actions: MessageActions = {
    queueName: 'mails',
    queueKey: 'key',
    acknowledge: async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)]
      if (answer instanceof Error) throw answer
      return answer === true
    },
    negativeAcknowledge: async () => false,
    extend: async () => false,
    progress: async () => false,
  }
  const claim = { id: 'a', member: '0a', priority: 0, delivery: '1 token', record: Buffer.from('\0a') }
  const times = { visibleAt: 0, polledAt: 0, visibleUntil: heldMs, heldUntil: performance.now() + heldMs }
  const message = new ReliableMessage<unknown>(actions, { ...claim, ...times }, {}, 'a')
  const queue = { name: 'queue', context: { commands: { resends } } } as unknown as ReliableQueue
  const assignment = new Assignment(queue, message)
  const settle = (mayTryAgain = () => true, answer?: boolean | Error): Promise<Outcome> =>
    assignment.settle(COMPLETED, mayTryAgain, answer)
  const handle = (handler: Handler, timeout?: number) => assignment.handle(handler, timeout, () => 77, 30_000)
  return { assignment, handle, settle, asked: () => asked }
}

/** Whether V8 has one hidden class for both objects. */
function haveSameMap(one: unknown, other: unknown): boolean {
  setFlagsFromString('--allow-natives-syntax')
  try {
    return (runInThisContext('(one, other) => %HaveSameMap(one, other)') as typeof haveSameMap)(one, other)
  } finally {
    setFlagsFromString('--no-allow-natives-syntax')
  }
}

describe('Assignment', () => {
  it('gives handlers contexts of one hidden class, because V8 keeps each class, and the message in it, for long', () => {
    const contexts: HandlerContext[] = []
    for (const { handle } of [make([true]), make([true])]) void handle((_, context) => contexts.push(context))
    expect(contexts).to.have.length(2)
    expect(haveSameMap(contexts[0], contexts[1])).to.equal(true)
    expect(haveSameMap(contexts[0], {}), 'another class').to.equal(false)
  })

  it('acknowledges as often as it takes, while no other consumer can have the message', async () => {
    const { settle, asked } = make([...Array.from({ length: 6 }, refused), true])
    expect(await settle()).to.deep.equal(COMPLETED)
    expect(asked()).to.equal(7)
  })

  for (const error of [
    new CommandError('BUSY', 'a script runs'),
    new CommandError('NOREPLICAS', 'few'),
    new ReadOnlyError(),
  ]) {
    it(`acknowledges again after ${error instanceof CommandError ? error.redisCode : error.code}`, async () => {
      expect(await make([error, true]).settle()).to.deep.equal(COMPLETED)
    })
  }

  it('does not retry after a lasting error, nor when the time to close is over', async () => {
    const wrongType = make([new WrongTypeError(), true])
    expect(await wrongType.settle()).to.have.nested.property('error.code', 'ERR_WRONG_TYPE')
    const closed = make([refused(), true])
    expect(await closed.settle(() => false)).to.have.nested.property('error.code', 'ERR_CONNECTION')
    expect([wrongType.asked(), closed.asked()]).to.deep.equal([1, 1])
  })

  it('gives up when another consumer can have the message', async () => {
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
      expect('error' in late && late.error).to.be.instanceOf(VisibilityLostError)
    })
  }

  it('takes false for lost when every answer came', async () => {
    expect(await make([refused(), false]).settle()).to.include({ is: 'lost' })
  })

  it('continues from an answer that it is given', async () => {
    const { settle, asked } = make([true])
    expect(await settle(undefined, true)).to.deep.equal(COMPLETED)
    expect(await settle(undefined, false)).to.include({ is: 'lost' })
    expect(asked()).to.equal(0)
    expect(await settle(undefined, refused())).to.deep.equal(COMPLETED)
    expect(asked()).to.equal(1)
    expect(await make([false]).settle(undefined, broken()), 'it may have been carried out').to.deep.equal(COMPLETED)
    expect(await make([false]).settle(undefined, refused())).to.include({ is: 'lost' })
  })
})

describe('Assignment.handle', () => {
  const failure = new Error('no')

  for (const [what, handler, outcome] of [
    ['a result', () => 5, { is: 'completed', result: 5 }],
    ['nothing', () => undefined, COMPLETED],
    ['null', () => null, COMPLETED],
    ['a `then` that is not a function', () => ({ then: 5 }), { is: 'completed', result: { then: 5 } }],
    ['retryIn', () => retryIn(5), { is: 'deferred', delayMs: 5 }],
    ['an error', () => raise(failure), { is: 'failed', error: failure, delayMs: 77 }],
    [
      'a `then` that throws',
      () => Object.defineProperty({}, 'then', { get: () => raise(failure) }),
      { is: 'failed', error: failure, delayMs: 77 },
    ],
  ] as const satisfies readonly (readonly [string, Handler, Outcome])[]) {
    it(`has the outcome at once when the handler gives ${what}`, () => {
      expect(make([true]).handle(handler)).to.deep.equal(outcome)
    })
  }

  for (const [what, handler, outcome] of [
    ['a promise', async () => 5, { is: 'completed', result: 5 }],
    [
      'any thenable',
      () => ({ then: (resolve: (value: unknown) => void) => resolve(retryIn(5)) }),
      { is: 'deferred', delayMs: 5 },
    ],
    [
      'a thenable that is a function',
      () => Object.assign(() => 5, { then: (_: unknown, reject: (thrown: unknown) => void) => reject(failure) }),
      { is: 'failed', error: failure, delayMs: 77 },
    ],
    ['a rejection', async () => raise(failure), { is: 'failed', error: failure, delayMs: 77 }],
    ['a rejection with retryIn', async () => raise(retryIn(5)), { is: 'deferred', delayMs: 5 }],
  ] as const satisfies readonly (readonly [string, Handler, Outcome])[]) {
    it(`waits for ${what}`, async () => {
      const handled = make([true]).handle(handler, 60_000)
      expect(handled).to.be.instanceOf(Promise)
      expect(await handled).to.deep.equal(outcome)
    })
  }

  it('ends with the reason of the signal, also where the handler never reads it', async () => {
    const { assignment, handle } = make([true])
    const handled = handle(() => new Promise(() => undefined))
    assignment.abort(new ShutdownError('closed'))
    assignment.abort(new VisibilityLostError())
    expect(await handled).to.deep.equal({ is: 'released' })
  })

  it('ends with the reason of a signal that was aborted while the handler was called', async () => {
    const reason = new VisibilityLostError()
    const plain = make([true])
    expect(plain.handle(() => plain.assignment.abort(reason))).to.deep.equal({ is: 'lost', error: reason })
    const later = make([true])
    const handled = later.handle(async () => {
      later.assignment.abort(reason)
      throw failure // which goes unreported
    })
    expect(await handled).to.deep.equal({ is: 'lost', error: reason })
  })

  it('counts the time until the handler gave its promise', async () => {
    const late = make([true]).handle(async () => {
      for (const until = performance.now() + 300; performance.now() < until;);
      await new Promise(() => undefined)
    }, 320)
    const since = performance.now()
    expect(await late).to.include({ is: 'failed' })
    expect(performance.now() - since).to.be.below(300)
  })

  it('does not call the handler of a message whose visibility is over', () => {
    let called = false
    expect(make([true], { heldMs: 0 }).handle(() => (called = true))).to.include({ is: 'lost' })
    expect(called).to.equal(false)
  })

  it('does not call the handler of a message that was lost before its turn came', () => {
    const { assignment, handle } = make([true])
    const reason = new VisibilityLostError()
    assignment.abort(reason)
    let called = false
    expect(handle(() => (called = true))).to.deep.equal({ is: 'lost', error: reason })
    expect(called).to.equal(false)
  })

  it('ends a handler that takes too long, and reports it', async () => {
    const outcome = await make([true]).handle(() => new Promise(() => undefined), 5)
    expect(outcome).to.include({ is: 'failed', delayMs: 77 })
    expect('error' in outcome && outcome.error).to.be.instanceOf(HandlerTimeoutError)
  })

  it('a handler gets one signal, whenever it asks, which has been aborted or will be', async () => {
    const { assignment, handle } = make([true])
    let context: HandlerContext | undefined
    const handled = handle(async (_, given) => {
      context = given
      await new Promise(() => undefined)
    })
    const copy = { ...context }
    const { signal } = copy
    expect([signal?.aborted, signal === context?.signal]).to.deep.equal([false, true])
    const reason = new ShutdownError('closed')
    assignment.abort(reason)
    await handled
    expect([signal?.aborted, signal?.reason]).to.deep.equal([true, reason])

    const late = make([true])
    let lateContext: HandlerContext | undefined
    const lateHandled = late.handle(async (_, given) => {
      lateContext = given
      await new Promise(() => undefined)
    })
    late.assignment.abort(reason)
    await lateHandled
    expect([lateContext?.signal.aborted, lateContext?.signal.reason]).to.deep.equal([true, reason])
  })
})

function raise(thrown: unknown): never {
  throw thrown
}
