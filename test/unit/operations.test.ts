import { expect } from 'chai'
import { AddManyError, CommandError, OfferAllError, ReadOnlyError, type RedelayedError } from '../../src/errors.js'
import { namesOperations } from '../../src/queues/operations.js'

const REFUSAL = new TypeError('not of this package')

class Named {
  readonly name = 'orders'

  static {
    namesOperations(this, { queueOf: ({ name }) => name, as: { addEncoded: 'add' } })
  }

  get failing(): string {
    throw new ReadOnlyError()
  }

  at(_first: string, ..._further: number[]): unknown[] {
    return [this, arguments.length]
  }

  atOnce(): never {
    throw new ReadOnlyError()
  }

  async later(queue?: string): Promise<never> {
    await Promise.resolve()
    throw new ReadOnlyError({ queue })
  }

  async *each(): AsyncGenerator<number, string> {
    yield 1
    await this.later()
    return 'the end'
  }

  async *all(): AsyncGenerator<number, string> {
    yield 1
    return 'the end'
  }

  addEncoded(): Promise<never> {
    return this.later()
  }

  add(): Promise<never> {
    return this.addEncoded()
  }

  addAll(): never {
    throw new AddManyError([null], [{ index: 0, error: new ReadOnlyError() }])
  }

  offerAll(): never {
    throw new OfferAllError([null], [{ index: 0, error: new ReadOnlyError() }])
  }

  foreign(): never {
    throw REFUSAL
  }
}

class Nameless {
  static {
    namesOperations(this)
  }

  close(): never {
    throw new CommandError('OOM', 'OOM no')
  }
}

async function errorOf(call: () => unknown): Promise<RedelayedError> {
  try {
    await call()
  } catch (thrown) {
    return thrown as RedelayedError
  }
  throw new Error('it was expected to throw')
}

describe('namesOperations', () => {
  const named = new Named()

  const calls: Record<string, () => unknown> = {
    atOnce: () => named.atOnce(),
    later: () => named.later(),
    each: async () => {
      for await (const one of named.each()) expect(one).to.equal(1)
    },
  }
  for (const [operation, call] of Object.entries(calls)) {
    it(`notes the queue and the operation on what ${operation} throws`, async () => {
      const error = await errorOf(call)
      expect(error).to.be.instanceOf(ReadOnlyError)
      expect(error).to.include({ operation, queue: 'orders' })
      expect(error.message).to.match(/^queue "orders": the server is/)
    })
  }

  it('adds the callers to the stack', async () => {
    const callerOfLater = async (): Promise<void> => {
      await named.later()
    }
    expect((await errorOf(callerOfLater)).stack).to.match(/at async callerOfLater .*operations\.test/)
  })

  it('names the operation that the application called, where methods call each other', async () => {
    expect(await errorOf(() => named.add())).to.have.property('operation', 'add')
  })

  it('names the public operation that an internal method carries out', async () => {
    expect(await errorOf(() => named.addEncoded())).to.have.property('operation', 'add')
  })

  it('notes the operation on the errors of single items too', async () => {
    for (const operation of ['addAll', 'offerAll'] as const) {
      const error = (await errorOf(() => named[operation]())) as AddManyError | OfferAllError
      expect(error.failures.map((failure) => failure.error.operation)).to.deep.equal([operation])
    }
  })

  it('leaves the queue that an error names already', async () => {
    expect(await errorOf(() => named.later('shard 3'))).to.include({ queue: 'shard 3', operation: 'later' })
  })

  it('names no queue where the object has none', async () => {
    expect(await errorOf(() => new Nameless().close())).to.include({ queue: undefined, operation: 'close' })
  })

  it('leaves errors of other origin unchanged', async () => {
    expect(await errorOf(() => named.foreign())).to.equal(REFUSAL)
    expect(Object.keys(REFUSAL)).to.deep.equal([])
  })

  it('passes on the object, the arguments and what a method returns', async () => {
    expect(named.at('a', 1, 2)).to.deep.equal([named, 3])
    const all = named.all()
    expect(await all.next()).to.deep.equal({ value: 1, done: false })
    expect(await all.next()).to.deep.equal({ value: 'the end', done: true })
  })

  it('keeps the names of methods, and getters', async () => {
    expect(named.later.name).to.equal('later')
    expect(await errorOf(() => named.failing)).to.have.property('operation', undefined)
  })
})
