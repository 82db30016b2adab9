import { expect } from 'chai'
import { ShutdownError, WrongTypeError } from '../../src/errors.js'
import type { ReliableMessage } from '../../src/reliable/message.js'
import type { PollManyOptions } from '../../src/reliable/claims.js'
import type { ReliableQueue } from '../../src/reliable/reliable-queue.js'
import { nextTurn } from '../../src/timing/pause.js'
import type { Assignment } from '../../src/workers/assignment.js'
import { Fetching } from '../../src/workers/fetching.js'
import type { Sources } from '../../src/workers/sources.js'
import { rejection } from '../integration/fixtures.js'

const messageOf = (id: string): ReliableMessage => ({ id }) as unknown as ReliableMessage
const idsOf = (taken: readonly Assignment[]): string[] => taken.map(({ message }) => message.id)

/** A queue whose polls end when the test says so, also those that were aborted. */
class FakeQueue {
  readonly polls: {
    readonly options: PollManyOptions
    readonly answer: (...ids: string[]) => void
    readonly fail: (error: Error) => void
  }[] = []
  readonly returned: [id: string, countAttempt: unknown][] = []

  pollFor(options: PollManyOptions): Promise<ReliableMessage[]> {
    return new Promise((resolve, reject) => {
      this.polls.push({ options, answer: (...ids) => resolve(ids.map(messageOf)), fail: reject })
    })
  }

  async negativeAcknowledge(messages: readonly ReliableMessage[], { countAttempt }: { countAttempt: boolean }) {
    this.returned.push(...messages.map(({ id }): [string, unknown] => [id, countAttempt]))
    return messages.map(() => true)
  }
}

function setUp() {
  const [frozen, healthy] = [new FakeQueue(), new FakeQueue()]
  const errors: unknown[] = []
  const queues = [frozen, healthy] as unknown as ReliableQueue[]
  const sources = { queues, next: () => queues } as unknown as Sources
  const fetching = new Fetching(sources, 30_000, false, (thrown) => errors.push(thrown))
  const abort = new AbortController()
  const take = async (): Promise<string[]> => idsOf(await fetching.take(5, abort.signal))
  return { frozen, healthy, errors, take, abort }
}

/** Resolves when a queue was asked so often. */
async function asked(queue: FakeQueue, times: number): Promise<FakeQueue['polls'][number]> {
  const deadline = performance.now() + 5_000
  while (queue.polls.length < times) {
    if (performance.now() > deadline) throw new Error(`it was asked ${queue.polls.length} times only`)
    await nextTurn()
  }
  return queue.polls[times - 1]!
}

describe('Fetching', () => {
  it('a queue that does not answer keeps the others waiting once, and not for long', async () => {
    const { frozen, healthy, take } = setUp()
    const first = take()
    await asked(frozen, 1)
    ;(await asked(healthy, 1)).answer('a')
    expect(await first).to.deep.equal(['a'])
    const since = performance.now()
    const second = take()
    ;(await asked(healthy, 2)).answer('b')
    expect(await second).to.deep.equal(['b'])
    expect(performance.now() - since).to.be.lessThan(400)
    expect(frozen.polls).to.have.length(1)
  })

  it('messages that come when no round waits for them are given back, as if they had not been delivered', async () => {
    const { frozen, healthy, take } = setUp()
    const first = take()
    ;(await asked(healthy, 1)).answer('a')
    await first
    frozen.polls[0]!.answer('late')
    await nextTurn()
    expect(frozen.returned).to.deep.equal([['late', false]])
    const second = take()
    ;(await asked(frozen, 2)).answer('b')
    expect(await second).to.deep.equal(['b'])
  })

  it('a later round gets messages of an overdue poll', async () => {
    const { frozen, healthy, take } = setUp()
    const first = take()
    ;(await asked(healthy, 1)).answer()
    const waiting = await asked(healthy, 2)
    expect(waiting.options.timeout).to.equal(Infinity)
    frozen.polls[0]!.answer('late')
    await nextTurn()
    waiting.fail(waiting.options.signal?.reason as Error)
    expect(await first).to.deep.equal(['late'])
    expect([frozen.polls.length, frozen.returned]).to.deep.equal([1, []])
  })

  it('an abort ends it, whatever does not answer', async () => {
    const { frozen, healthy, take, abort } = setUp()
    const first = take()
    ;(await asked(healthy, 1)).answer()
    await asked(healthy, 2)
    abort.abort()
    expect(await first).to.deep.equal([])
    healthy.polls[1]!.answer('late')
    frozen.polls[0]!.fail(new ShutdownError('the client was shut down'))
    await nextTurn()
    expect(healthy.returned).to.deep.equal([['late', false]])
  })

  it('does not ask one that failed again and again while the other has something', async () => {
    const { frozen: failing, healthy, errors, take } = setUp()
    const first = take()
    ;(await asked(failing, 1)).fail(new WrongTypeError())
    for (const n of [1, 2, 3]) {
      const taken = n === 1 ? first : take()
      ;(await asked(healthy, n)).answer('a')
      expect(await taken).to.deep.equal(['a'])
    }
    expect([failing.polls.length, errors.length]).to.deep.equal([1, 1])
    const idle = take()
    ;(await asked(healthy, 4)).answer()
    ;(await asked(failing, 2)).answer('works again')
    ;(await asked(healthy, 5)).answer()
    expect(await idle).to.deep.equal(['works again'])
  })

  it('a failure is reported, also one that comes late; a shutdown ends it', async () => {
    const { frozen, healthy, errors, take } = setUp()
    const first = take()
    ;(await asked(healthy, 1)).fail(new WrongTypeError())
    ;(await asked(healthy, 2)).answer('a')
    expect(await first).to.deep.equal(['a'])
    frozen.polls[0]!.fail(new WrongTypeError())
    await nextTurn()
    expect(errors).to.have.length(2)
    const second = rejection(take())
    ;(await asked(frozen, 2)).fail(new ShutdownError('the client was shut down'))
    expect(await second).to.be.instanceOf(ShutdownError)
  })

  it('a wait that ends late, by the end of its own round, ends nothing else', async () => {
    const { frozen, healthy, errors, take } = setUp()
    const first = take()
    ;(await asked(frozen, 1)).answer()
    ;(await asked(healthy, 1)).answer()
    const { options, fail } = await asked(frozen, 2)
    ;(await asked(healthy, 2)).answer('a')
    expect(await first).to.deep.equal(['a'])
    expect(options.signal?.aborted).to.equal(true)
    const second = take()
    ;(await asked(healthy, 3)).answer()
    await asked(healthy, 4)
    fail(options.signal?.reason as Error)
    healthy.polls[3]!.answer('b')
    expect(await second).to.deep.equal(['b'])
    expect(errors).to.deep.equal([])
  })
})
