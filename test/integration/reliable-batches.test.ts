/** Batches with an end. Only announcements wake the consumers and those who wait: no client here sweeps within a test. */
import { expect } from 'chai'
import {
  AddManyError,
  BatchClosedError,
  EncodeError,
  InvalidArgumentError,
  NotCompletedError,
  PayloadTooLargeError,
  ShutdownError,
  UnsupportedOperationError,
  WrongTypeError,
  type MessageBatch,
  type ReliableQueue,
} from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { eventually, once } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, rejection, track } from './fixtures.js'
import { startWorker, untilItWaits } from './fixtures/limited-workers.js'

const NO_SWEEP = { sweepInterval: 3_600_000 } as const
const TWO = [{ payload: 1 }, { payload: 2 }]

function makeQueue(): ReliableQueue<number> {
  const name = uniqueName('batches')
  forgetReliable(name)
  return makeClient(NO_SWEEP).getReliableQueue<number>(name)
}

async function polled(queue: ReliableQueue<number>) {
  const message = await queue.poll()
  if (message === null) throw new Error('there is no message')
  return message
}

/** A wait of another client, which has looked and found the batch unfinished. */
async function waiting({ name }: ReliableQueue<number>, batch: string) {
  const other = makeClient(NO_SWEEP).getReliableQueue<number>(name)
  const wait = track(other.batch(batch).waitUntilFinished())
  wait.promise.catch(() => undefined)
  const { batchEnds } = reliableKeys(name)
  await eventually(async () => {
    const [, count] = (await rawClient().call('PUBSUB', 'NUMSUB', batchEnds)) as [string, number]
    expect(count).to.be.at.least(1)
  })
  // it looks when it begins and when it is subscribed: a round trip on its connection comes after both
  await other.size()
  await other.size()
  expect(wait.settled).to.equal(false)
  return { wait: wait.promise }
}

describe('batches of a reliable queue', () => {
  afterEach(cleanUp)

  it('count their messages by how these have ended, and have one last message', async () => {
    const queue = makeQueue()
    await queue.addMany([...TWO, { payload: 3, deliveryLimit: 1 }, { payload: 4 }], { batch: 'import' })
    await queue.add(5, { batch: 'import', id: 'five' })
    const batch = queue.batch('import')
    expect(await batch.counts()).to.include({ state: 'open', total: 5, pending: 5, closedAt: null, finishedAt: null })
    for (const message of await queue.pollMany({ count: 5 })) {
      if (message.payload < 3) await message.acknowledge()
      else if (message.payload < 5) await message.negativeAcknowledge({ reject: message.payload === 4 })
    }
    expect(await batch.counts()).to.include({ state: 'open', total: 5, pending: 1, completed: 2, dead: 2 })
    const closed = await batch.close({
      last: { payload: 0, task: 'report', priority: 7, headers: { of: 'import' }, deliveryLimit: 3 },
    })
    expect(closed).to.include({ state: 'closed', pending: 1, finishedAt: null })
    expect(await queue.size()).to.equal(1)
    await queue.remove('five')
    const last = await polled(queue)
    expect(last).to.deep.include({ payload: 0, priority: 7, headers: { of: 'import', task: 'report' } })
    await last.acknowledge()
    const counts = await batch.counts()
    expect(counts).to.include({
      state: 'finished',
      total: 5,
      pending: 0,
      completed: 2,
      dead: 2,
      removed: 1,
      expired: 0,
    })
    expect(counts?.closedAt).to.equal(closed.closedAt)
    expect(await queue.size()).to.equal(0)
  })

  it('wake a consumer of another client with the last message', async () => {
    const queue = makeQueue()
    await queue.add(1, { batch: 'b' })
    await queue.batch('b').close({ last: { payload: 0 } })
    const message = await polled(queue)
    const other = makeClient(NO_SWEEP).getReliableQueue<number>(queue.name)
    const next = track(other.poll({ timeout: 20_000 }))
    await untilItWaits(queue, other)
    await message.acknowledge()
    expect((await next.promise)?.payload).to.equal(0)
  })

  it('that are closed again stay as they are, so that a call whose reply was lost can be repeated', async () => {
    const queue = makeQueue()
    await queue.add(1, { batch: 'b' })
    const closed = await queue.batch('b').close({ last: { payload: 0 } })
    expect(await queue.batch('b').close({ last: { payload: -1 } })).to.deep.equal(closed)
    await (await polled(queue)).acknowledge()
    const last = await polled(queue)
    expect(last.payload).to.equal(0)
    expect(await queue.batch('b').close({ last: { payload: -1 } })).to.include({ state: 'finished' })
    expect(await queue.poll()).to.equal(null)
  })

  it('that nothing was added to are unknown, and finish when they are closed', async () => {
    const queue = makeQueue()
    expect(await queue.batch('b').counts()).to.equal(null)
    expect(await queue.batch('b').close({ last: { payload: 0 } })).to.include({ state: 'finished', total: 0 })
    expect((await polled(queue)).payload).to.equal(0)
  })

  it('refuse messages when they are closed', async () => {
    const queue = makeQueue()
    await queue.batch('b').close()
    expect(await rejection(queue.add(1, { batch: 'b' })))
      .to.be.instanceOf(BatchClosedError)
      .with.property('queue', queue.name)
    const error = await rejection(queue.addMany(TWO, { batch: 'b' }))
    if (!(error instanceof AddManyError)) throw error
    expect(error.failures.map(({ index, error: { code } }) => [index, code])).to.deep.equal([
      [0, 'ERR_BATCH_CLOSED'],
      [1, 'ERR_BATCH_CLOSED'],
    ])
    expect(await queue.size()).to.equal(0)
  })

  it('have a dead letter counted as such when it is redriven after all', async () => {
    const queue = makeQueue()
    await queue.add(1, { batch: 'b' })
    await queue.batch('b').close()
    await (await polled(queue)).negativeAcknowledge({ reject: true })
    const finished = await queue.batch('b').counts()
    expect(finished).to.include({ state: 'finished', dead: 1 })
    expect(await queue.redrive()).to.equal(1)
    await (await polled(queue)).acknowledge()
    expect(await queue.batch('b').counts()).to.deep.equal(finished)
  })

  it('lose messages that move to another queue, and forget no others when messages are put back', async () => {
    const queue = makeQueue()
    const other = `{${queue.name}}:other`
    forgetReliable(other)
    await queue.addMany(
      [
        { payload: 1, id: 'one' },
        { payload: 2, id: 'two' },
      ],
      { batch: 'b' },
    )
    expect(await queue.move({ to: other, ids: ['one'] })).to.equal(1)
    const [two] = await queue.getAllRaw(['two'])
    expect(await queue.restoreMany([two!])).to.deep.equal(['present'])
    expect(await queue.batch('b').counts()).to.include({ total: 2, pending: 1, removed: 1 })
    await queue.remove('two')
    expect(await queue.restoreMany([two!])).to.deep.equal(['restored'])
    expect(await queue.batch('b').counts()).to.include({ total: 2, pending: 0, removed: 2 })
  })

  it('go with the messages when the queue is cleared', async () => {
    const queue = makeQueue()
    await queue.add(1, { batch: 'b' })
    await queue.batch('b').close({ last: { payload: 0 } })
    await queue.clear()
    expect(await queue.batch('b').counts()).to.equal(null)
    expect(await queue.size()).to.equal(0)
    expect((await queue.add(1, { batch: 'b' })).outcome).to.equal('added')
  })

  it('are none of a sharded queue', async () => {
    const name = uniqueName('batches')
    const sharded = makeClient(NO_SWEEP).getShardedReliableQueue<number>(name, { shards: 2 })
    expect(await rejection(sharded.add(1, { batch: 'b' }))).to.be.instanceOf(UnsupportedOperationError)
    expect(await rejection(sharded.addMany(TWO, { batch: 'b' }))).to.be.instanceOf(UnsupportedOperationError)
    expect(await sharded.size()).to.equal(0)
  })

  it('refuse values that are neither names nor last messages', async () => {
    const queue = makeQueue()
    const batch = queue.batch('b')
    for (const name of ['', 5, null, 'n'.repeat(256), '\ud800']) {
      expect(() => queue.batch(name as string)).to.throw(InvalidArgumentError)
      expect(await rejection(queue.add(1, { batch: name as string }))).to.be.instanceOf(InvalidArgumentError)
    }
    const wrong: unknown[] = [
      { lasst: 1 },
      { last: 5 },
      { last: { payload: 1, id: 'x' } },
      { last: { payload: 1, task: '' } },
      { last: { payload: 1, priority: 10 } },
    ]
    for (const options of [...wrong, { last: {} }]) {
      expect(await rejection(batch.close(options as object))).to.be.instanceOf(InvalidArgumentError)
    }
    const cycle: unknown[] = []
    cycle.push(cycle)
    expect(await rejection(batch.close({ last: { payload: cycle as never } }))).to.be.instanceOf(EncodeError)
    const large = { last: { payload: 'x'.repeat(8_192) as never } }
    expect(await rejection(batch.close(large))).to.be.instanceOf(PayloadTooLargeError)
    expect(await batch.counts()).to.equal(null)
    await queue.setConfig({ maxMessageBytes: 5 })
    expect(await rejection(batch.close({ last: { payload: 'larger' as never } }))).to.be.instanceOf(
      PayloadTooLargeError,
    )
    expect(await batch.close({ last: { payload: 1 } })).to.include({ state: 'finished' })
  })

  it('keep their counts while their key is of another type: no message ends until it is back', async () => {
    const queue = makeQueue()
    await queue.addMany(TWO, { batch: 'b' })
    const { batches } = reliableKeys(queue.name)
    const batch = queue.batch('b')
    const held = await polled(queue)
    await rawClient().rename(batches, `${batches}:aside`)
    await rawClient().set(batches, 'in the way')
    expect(await rejection(queue.add(1, { batch: 'b' }))).to.be.instanceOf(WrongTypeError)
    expect(await rejection(batch.counts())).to.be.instanceOf(WrongTypeError)
    expect(await rejection(batch.close())).to.be.instanceOf(WrongTypeError)
    expect(await rejection(batch.waitUntilFinished())).to.be.instanceOf(WrongTypeError)
    expect(await rejection(held.acknowledge())).to.be.instanceOf(WrongTypeError)
    expect(await rejection(queue.poll())).to.be.instanceOf(WrongTypeError)
    await rawClient().rename(`${batches}:aside`, batches)
    await held.acknowledge()
    await (await polled(queue)).negativeAcknowledge({ reject: true })
    expect(await queue.size()).to.equal(0)
    expect(await batch.close()).to.include({ state: 'finished', completed: 1, dead: 1 })
  })

  describe('waitUntilFinished', () => {
    const ended = async (wait: Promise<unknown>): Promise<string> => {
      const error = await rejection(wait)
      if (!(error instanceof NotCompletedError)) throw error
      return error.reason
    }
    const held = async (): Promise<[ReliableQueue<number>, MessageBatch<number>]> => {
      const queue = makeQueue()
      await queue.add(1, { batch: 'b\\\n' })
      return [queue, queue.batch('b\\\n')]
    }

    it('resolves with the counts by a publication, in another client', async () => {
      const [queue, batch] = await held()
      await batch.close()
      const { wait } = await waiting(queue, batch.name)
      await (await polled(queue)).acknowledge()
      expect(await wait).to.deep.equal(await batch.counts())
      expect((await batch.counts())?.state).to.equal('finished')
    })

    it('resolves at once for one that is finished, and by closing', async () => {
      const [queue, batch] = await held()
      await queue.remove((await polled(queue)).id)
      const wait = track(batch.waitUntilFinished())
      await batch.close()
      expect(await wait.promise).to.include({ state: 'finished', removed: 1 })
      expect(await batch.waitUntilFinished({ timeout: 0 })).to.include({ state: 'finished' })
    })

    it('rejects with a reason', async () => {
      const [queue, batch] = await held()
      expect(await ended(batch.waitUntilFinished({ timeout: 5 }))).to.equal('timeout')
      expect(await ended(queue.batch('none').waitUntilFinished())).to.equal('gone')
      const ending = new AbortController()
      const wait = rejection(batch.waitUntilFinished({ signal: ending.signal }))
      ending.abort(new Error('enough'))
      expect(await wait).to.have.property('message', 'enough')
      expect(await rejection(batch.waitUntilFinished({ timeout: -1 }))).to.be.instanceOf(InvalidArgumentError)
    })

    it('rejects when the client is shut down', async () => {
      const client = makeClient(NO_SWEEP)
      const name = uniqueName('batches')
      forgetReliable(name)
      const queue = client.getReliableQueue<number>(name)
      await queue.add(1, { batch: 'b' })
      const wait = rejection(queue.batch('b').waitUntilFinished())
      await client.shutdown()
      expect(await wait).to.be.instanceOf(ShutdownError)
    })
  })

  it('end once, with three processes, one of which is killed', async function () {
    this.timeout(120_000)
    const queue = makeQueue()
    await queue.setConfig({ changes: { keep: 'recent', maxLength: 10_000 } })
    const batch = queue.batch('import')
    const items = Array.from({ length: 60 }, (_, n) => ({ payload: n, id: `item ${n}` }))
    await queue.addMany(items, { batch: batch.name })
    const workers = [1, 2, 3].map(() => startWorker(queue, 150, 2_000))
    // the first one that is at work: on a busy machine the others can begin when all is done
    const atWork = () => workers.find(({ reports }) => reports.length >= 3)
    await eventually(() => expect(atWork()).to.not.equal(undefined), 30_000)
    const { child } = atWork()!
    const gone = once(child, 'exit', () => true, 20_000)
    child.kill('SIGKILL')
    await gone
    await batch.close({ last: { payload: -1 } })
    const counts = await makeClient(NO_SWEEP)
      .getReliableQueue(queue.name)
      .batch(batch.name)
      .waitUntilFinished({ timeout: '40s' })
    expect(counts).to.include({ total: 60, completed: 60, pending: 0, dead: 0 })
    await eventually(async () => expect(await queue.size()).to.equal(0), 20_000)
    // one message, however often it is delivered on a busy machine; what a process reports can come later
    const lasts = () =>
      workers.flatMap(({ reports }) => reports.map(({ id }) => id)).filter((id) => !id.startsWith('item '))
    await eventually(() => expect(new Set(lasts()).size).to.equal(1), 20_000)
    const { batches } = await queue.readChanges({ after: { id: '0-0', epoch: null }, count: 1_000 })
    const added = batches.flatMap(({ changes }) => changes).filter(({ change }) => change === 'added')
    expect(added.map(({ id }) => id).filter((id) => !id.startsWith('item '))).to.deep.equal([lasts()[0]])
    expect(await batch.counts()).to.deep.equal(counts)
  })
})
