import { expect } from 'chai'
import { AddManyError, InvalidArgumentError, QueueFullError, RedelayedError, type AddItem, type Added } from 'redelayed'
import { JoinedAdds } from '../journal/joined-adds.js'

type Existing = 'keep' | 'replace'

/** A queue that is full for `full`, and refuses a call with `wrong` before it sends anything. */
function queueOf() {
  const calls: string[] = []
  const addMany = async (given: Iterable<AddItem<string>>, options?: { existing?: Existing }): Promise<Added[]> => {
    const payloads = Array.from(given, ({ payload }) => payload)
    calls.push(`${options?.existing ?? ''} ${payloads.length > 9 ? payloads.length : payloads.join()}`)
    if (payloads.includes('wrong')) throw new InvalidArgumentError('payload', 'another one', 'wrong')
    const results = payloads.map((id) => (id === 'full' ? null : { id, outcome: 'added' as const }))
    const failures = payloads.flatMap((id, index) => (id === 'full' ? [{ index, error: new QueueFullError() }] : []))
    if (failures.length > 0) throw new AddManyError(results, failures)
    return results as Added[]
  }
  return { calls, adds: new JoinedAdds<string, Existing>({ addMany }) }
}

const items = (...payloads: string[]): AddItem<string>[] => payloads.map((payload) => ({ payload }))
const idsOf = (results: readonly (Added | RedelayedError)[]): string[] =>
  results.map((result) => (result instanceof RedelayedError ? result.code : result.id))

describe('messages of several calls of one turn', () => {
  it('go to the queue in one call, and each call has its own results', async () => {
    const { calls, adds } = queueOf()
    const [first, second, third] = [items('a'), items('b', 'full', 'c'), items('d')].map((own) => adds.add(own, 'keep'))
    expect(calls, 'nothing is sent before the turn has ended').to.deep.equal([])
    expect(idsOf((await first) ?? [])).to.deep.equal(['a'])
    expect(idsOf((await second) ?? [])).to.deep.equal(['b', 'ERR_QUEUE_FULL', 'c'])
    expect(idsOf((await third) ?? [])).to.deep.equal(['d'])
    expect(calls).to.deep.equal(['keep a,b,full,c,d'])
    await adds.add(items('e'), 'keep')
    expect(calls, 'the next turn').to.have.length(2)
  })

  it('go apart where something else is to happen to messages that are there', async () => {
    const { calls, adds } = queueOf()
    await Promise.all([adds.add(items('a'), 'keep'), adds.add(items('b'), 'replace'), adds.add(items('c'), 'keep')])
    expect(calls).to.deep.equal(['keep a,c', 'replace b'])
  })

  it('are sent alone after a call that the queue has refused as a whole', async () => {
    const { adds } = queueOf()
    const all = ['a', 'wrong', 'b'].map((payload) => adds.add(items(payload), 'keep'))
    const ended = await Promise.allSettled(all)
    expect(ended.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled'])
    expect((ended[1] as PromiseRejectedResult).reason).to.be.instanceOf(InvalidArgumentError)
  })

  it('are at most as many as a script takes, and a call with as many has no company', async () => {
    const { calls, adds } = queueOf()
    const many = (count: number): AddItem<string>[] => items(...Array<string>(count).fill('m'))
    await Promise.all([many(100), many(100), many(100), many(250)].map((some) => adds.add(some, 'keep')))
    expect(calls).to.deep.equal(['keep 250', 'keep 200', 'keep 100'])
  })
})
