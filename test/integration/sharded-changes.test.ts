import { expect } from 'chai'
import {
  ChangesLostError,
  InvalidArgumentError,
  ShutdownError,
  UnsupportedOperationError,
  codecs,
  type MessagesEvent,
  type RedelayedClient,
  type ShardedChangeBatch,
  type ShardedChangePosition,
  type ShardedChangesOptions,
  type ShardedReliableQueue,
} from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { eventually } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, numbers, rejection } from './fixtures.js'

const SHARDS = 4
const LATER = 600_000

interface Made {
  readonly client: RedelayedClient
  readonly queue: ShardedReliableQueue<string>
  /** The same queue in another process, as far as Redis knows. */
  readonly other: ShardedReliableQueue<string>
}

async function make(keep: 'recent' | 'groups' = 'groups'): Promise<Made> {
  const name = uniqueName('sharded-changes')
  const [client, another] = [makeClient(), makeClient()]
  const options = { shards: SHARDS, codec: codecs.string() }
  const queue = client.getShardedReliableQueue<string>(name, options)
  queue.names.forEach(forgetReliable)
  await queue.setConfig({ changes: { keep } })
  return { client, queue, other: another.getShardedReliableQueue<string>(name, options) }
}

/** Reads until `count` messages have changed. */
async function read(batches: AsyncGenerator<ShardedChangeBatch, void>, count: number): Promise<ShardedChangeBatch[]> {
  const taken: ShardedChangeBatch[] = []
  for (let left = count; left > 0;) {
    const next = await batches.next()
    if (next.done === true) throw new Error(`it ended ${left} too early`)
    taken.push(next.value)
    left -= next.value.changes.length
  }
  return taken
}

const idsOf = (batches: readonly ShardedChangeBatch[]): string[] =>
  batches.flatMap(({ changes }) => changes.map(({ id }) => id)).sort((a, b) => Number(a) - Number(b))
const changesOf = (batches: readonly ShardedChangeBatch[]): string[] =>
  batches.flatMap(({ changes }) => changes.map(({ change, id }) => `${change} ${id}`))
const positionsOf = (batches: readonly ShardedChangeBatch[]): ShardedChangePosition[] =>
  batches.map(({ position }) => position)
const add = (queue: ShardedReliableQueue<string>, count: number, from = 0) =>
  queue.addMany(numbers(count, from).map((id) => ({ payload: id, id, delay: LATER })))

describe('the changes of a sharded reliable queue', function () {
  this.timeout(30_000)
  afterEach(cleanUp)

  it('come from all shards to one reader, with the position of the shard, in the order of each', async () => {
    const { queue, other } = await make()
    const batches = queue.changes({ from: 'start' })
    await add(other, 40)
    for (const id of numbers(40)) expect(await other.cancel(id)).to.equal(true)
    const taken = await read(batches, 80)
    expect(idsOf(taken)).to.deep.equal(numbers(40).flatMap((id) => [id, id]))
    expect(new Set(taken.map(({ position }) => position.shard)).size).to.equal(SHARDS)
    const lengths = (await queue.changeStatus()).map(({ length }) => length)
    for (const shard of numbers(SHARDS).map(Number)) {
      const own = taken.filter(({ position }) => position.shard === shard)
      expect(own).to.have.length(lengths[shard]!)
      const entries = await rawClient().xrange(reliableKeys(queue.names[shard]!).changes, '-', '+')
      expect(own.map(({ position }) => position.id)).to.deep.equal(entries.map(([id]) => id))
    }
    await batches.return()
  })

  it('are shared by a group and acknowledged at their shards, which are trimmed', async () => {
    const { queue, other } = await make()
    await add(queue, 40)
    for (const id of numbers(40)) await queue.cancel(id)
    const [one, two] = [queue, other].map((each) => each.changes({ group: 'g', claimAfter: 1 }))
    const first = await read(one!, 10)
    await one!.return()
    expect(await queue.acknowledgeChanges('g', ...positionsOf(first))).to.equal(first.length)
    const seen = new Set(changesOf(first))
    while (seen.size < 80) {
      const rest = await read(two!, 1)
      for (const change of changesOf(rest)) seen.add(change)
      await other.acknowledgeChanges('g', ...positionsOf(rest))
    }
    await two!.return()
    const statuses = await queue.changeStatus()
    expect(statuses.map(({ length }) => length)).to.deep.equal(numbers(SHARDS).map(() => 1))
    expect(statuses.map(({ groups }) => groups[0]?.pending)).to.deep.equal(numbers(SHARDS).map(() => 0))
    expect(await queue.removeChangeGroup('g')).to.equal(true)
    expect(await queue.removeChangeGroup('g')).to.equal(false)
  })

  it('continue after the last position of each shard, and begin at the start of a shard without any', async () => {
    const { queue } = await make('recent')
    const batches = queue.changes({ from: 'start' })
    await add(queue, 40)
    const taken = await read(batches, 40)
    await batches.return()
    const last = new Map(taken.map(({ position }) => [position.shard, position]))
    const without = [...last.values()].filter(({ shard }) => shard !== 2)
    await add(queue, 40, 40)
    const rest = queue.changes({ from: [...last.values()] })
    expect(idsOf(await read(rest, 40))).to.deep.equal(numbers(40, 40))
    await rest.return()
    const ofTwo = taken.filter(({ position }) => position.shard === 2)
    const more = queue.changes({ from: without })
    const again = await read(more, 40 + idsOf(ofTwo).length)
    await more.return()
    expect(idsOf(again)).to.deep.equal([...idsOf(ofTwo), ...numbers(40, 40)].sort((a, b) => Number(a) - Number(b)))
    await rawClient().del(reliableKeys(queue.names[1]!).changes)
    await add(queue, 40, 80)
    const error = await rejection(queue.changes({ from: [...last.values()] }).next())
    expect(error).to.be.instanceOf(ChangesLostError)
    expect(error).to.include({ queue: queue.names[1], reason: 'epoch' })
  })

  it('end with the signal, with the loop, and with the client, and leave nothing behind', async () => {
    const { client, queue } = await make('recent')
    const ending = new AbortController()
    const waiting = rejection(queue.changes({ signal: ending.signal }).next())
    ending.abort(new Error('enough'))
    expect((await waiting).message).to.equal('enough')
    expect((await rejection(queue.changes({ signal: ending.signal }).next())).message).to.equal('enough')
    await add(queue, 40)
    for await (const batch of queue.changes({ from: 'start' })) if (batch.changes.length > 0) break
    await eventually(() => expect(queue.reliable.queues.buffers.size).to.equal(0))
    const last = rejection(queue.changes().next())
    await client.shutdown()
    expect(await last).to.be.instanceOf(ShutdownError)
  })

  it('cannot be read if a shard keeps none, and are refused with wrong options', async () => {
    const { queue } = await make()
    const { epoch } = (await queue.changeStatus())[0]!
    const position = { epoch: epoch!, id: '1-1', shard: 0 }
    const wrong: unknown[] = [
      { from: { epoch, id: '1-1' } },
      { from: [{ ...position, shard: SHARDS }] },
      { from: [{ epoch, id: '1-1' }] },
      { from: [position, position] },
      { from: ['1-1'] },
      { consumer: 'c' },
      { group: '' },
      { group: 'g', claimAfter: 0 },
      { groups: 'g' },
    ]
    for (const options of wrong) {
      const error = await rejection(queue.changes(options as ShardedChangesOptions).next())
      expect(error, JSON.stringify(options)).to.be.instanceOf(InvalidArgumentError)
      expect(error, JSON.stringify(options)).to.include({ queue: queue.name })
    }
    const { shard: _, ...plain } = position
    for (const call of [
      () => queue.acknowledgeChanges('g', plain as ShardedChangePosition),
      () => queue.acknowledgeChanges('', position),
      () => queue.removeChangeGroup(''),
    ]) {
      expect(await rejection(call()))
        .to.be.instanceOf(InvalidArgumentError)
        .that.includes({ queue: queue.name })
    }
    await queue.shards[3]!.setConfig({ changes: false })
    for (const call of [() => queue.changes().next(), () => queue.allEvents()]) {
      const error = await rejection(call())
      expect(error).to.be.instanceOf(UnsupportedOperationError).that.includes({ queue: queue.names[3] })
    }
    // the shards that could begin have ended
    const heard: string[] = []
    queue.on('removed', ({ ids }) => heard.push(...ids))
    await add(queue, 20)
    await queue.remove(...numbers(20))
    expect(heard.sort()).to.deep.equal(numbers(20).sort())
  })

  it('are events of all processes, once for each listener, until it is ended', async () => {
    const { queue, other } = await make('recent')
    const heard: string[] = []
    const once: string[] = []
    const note = ({ queue: shard, ids }: MessagesEvent) => {
      for (const id of ids) heard.push(`${queue.names.includes(shard)} ${id}`)
    }
    queue.on('added', note).once('added', ({ ids }) => once.push(...ids))
    const end = await queue.allEvents()
    await add(other, 40)
    await eventually(() => expect(heard).to.have.length(40))
    expect(new Set(heard)).to.deep.equal(new Set(numbers(40).map((id) => `true ${id}`)))
    expect(once.length).to.be.within(1, 39)
    await end()
    await add(other, 10, 100)
    await add(queue, 10, 40)
    expect(heard.slice(40).sort()).to.deep.equal(numbers(10, 40).map((id) => `true ${id}`))
    queue.off('added', note)
    await add(queue, 10, 50)
    expect(heard).to.have.length(50)
  })
})
