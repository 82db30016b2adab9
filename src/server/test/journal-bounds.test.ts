import { expect } from 'chai'
import {
  ConnectionError,
  type AddItem,
  type Added,
  type RestoreItem,
  type RestoreOutcome,
  type StoredRawMessage,
} from 'redelayed'
import { JournalDatabase } from '../database/database.js'
import { createJournal, JournalError, type Journal, type JournalOptions, type JournalQueue } from '../index.js'
import type { ChangeReading } from '../journal/journalled-queue.js'
import type { RestoreProgress } from '../journal/repair.js'
import { QueueClock } from '../journal/queue-clock.js'
import { startSqlite } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { FakeQueue, NEVER_PRUNED } from './support/fake-queue.js'

const MIB = 1024 * 1024

/** A queue that counts the requests of the journal, and can withhold an answer forever. */
class CountingQueue extends FakeQueue {
  reads = 0
  holdsReads = false
  holdsAdds = false
  /** The bytes of the payloads of each call. */
  readonly restoredBytes: number[] = []
  readonly askedFor: number[] = []

  override async readChanges(after: { id: string; epoch: string | null }, count: number): Promise<ChangeReading> {
    this.reads++
    if (this.holdsReads) await new Promise(() => undefined)
    return super.readChanges(after, count)
  }

  override async addMany(items: Iterable<AddItem<string>>): Promise<Added[]> {
    if (this.isDown) throw new ConnectionError('down', 'not-applied')
    if (this.holdsAdds) await new Promise(() => undefined)
    return super.addMany(items)
  }

  override async restoreMany(
    items: Iterable<RestoreItem>,
    options?: { readonly known?: boolean },
  ): Promise<RestoreOutcome[]> {
    const list = [...items]
    this.restoredBytes.push(list.reduce((sum, { payload }) => sum + payload.length, 0))
    return super.restoreMany(list, options)
  }

  override async getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    this.askedFor.push(ids.length)
    return super.getAllRaw(ids)
  }
}

describe('the bounds of the journal', function () {
  this.timeout(60_000)
  const server = startSqlite()
  const open: Journal[] = []

  after(() => server.stop())
  afterEach(async () => {
    await Promise.all(open.splice(0).map((journal) => journal.close()))
  })

  async function make(options: JournalOptions = {}): Promise<Journal> {
    const journal = await createJournal({
      url: await server.fresh(),
      adoptAfterMs: 60_000,
      ...NEVER_PRUNED,
      ...options,
    })
    open.push(journal)
    return journal
  }

  async function attached(
    options: JournalOptions = {},
    queue = new CountingQueue('mails'),
  ): Promise<{ journal: Journal; queue: CountingQueue; mails: JournalQueue<string> }> {
    const journal = await make(options)
    const mails = await journal.attach<string>(queue)
    await eventually(() => expect(queue.isKept).to.equal(true))
    return { journal, queue, mails }
  }

  const restored = (journal: Journal): Promise<unknown> => new Promise((resolve) => journal.once('restored', resolve))
  const caught = (action: Promise<unknown>): Promise<unknown> =>
    action.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )

  /** Replaces a method while `action` runs. */
  async function patched<K extends 'run' | 'transaction'>(
    name: K,
    make: (original: JournalDatabase[K]) => JournalDatabase[K],
    action: () => Promise<void>,
  ): Promise<void> {
    const original = JournalDatabase.prototype[name]
    JournalDatabase.prototype[name] = make(original)
    try {
      await action()
    } finally {
      JournalDatabase.prototype[name] = original
    }
  }

  describe('of memory', () => {
    const large = (n: number): { payload: string; id: string; delay: number } => ({
      payload: 'x'.repeat(1.5 * MIB),
      id: `large${n}`,
      delay: 60_000,
    })

    it('are kept by a restore: it has no more than 4 MiB of payloads at a time', async () => {
      const { journal, queue, mails } = await attached()
      for (let n = 0; n < 7; n++) await mails.addMany([large(n)])
      await mails.addMany(Array.from({ length: 50 }, (_, n) => ({ payload: 'x', id: `small${n}`, delay: 60_000 })))
      await mails.drain()
      const done = restored(journal)
      queue.wipe()
      await done
      expect(queue.messages.size).to.equal(57)
      expect(Math.max(...queue.restoredBytes)).to.be.within(1, 4 * MIB)
    })

    it('are kept by a restore by hand, with and without ids', async () => {
      const { queue, mails } = await attached({ sweepMs: 60_000 })
      const ids = Array.from({ length: 5 }, (_, n) => `large${n}`)
      for (let n = 0; n < 5; n++) await mails.addMany([large(n)])
      await mails.drain()
      const messages = queue.messages as Map<string, StoredRawMessage>
      for (const id of ids) messages.delete(id)
      expect(await mails.restore({ ids })).to.deep.equal({ checked: 5, restored: 5, refused: 0 })
      for (const id of ids) messages.delete(id)
      expect(await mails.restore()).to.deep.equal({ checked: 5, restored: 5, refused: 0 })
      expect(Math.max(...queue.restoredBytes)).to.be.within(1, 4 * MIB)
    })

    it('are kept when accepted messages are added that no process had added', async () => {
      const { journal, queue, mails } = await attached({ sweepMs: 100 })
      queue.isDown = true
      for (let n = 0; n < 5; n++)
        expect(await mails.add(large(n).payload, { id: `large${n}` })).to.include({ outcome: 'journalled' })
      let count = 0
      const all = new Promise<void>((resolve) => journal.on('adopted', (_, some) => (count += some) === 5 && resolve()))
      queue.clock += 65_000
      queue.isDown = false
      await all
      expect(Math.max(...queue.restoredBytes)).to.be.within(1, 4 * MIB)
    })

    it('are kept by verify', async () => {
      const { queue, mails } = await attached({ sweepMs: 60_000 })
      for (let n = 0; n < 5; n++) await mails.addMany([large(n)])
      await mails.drain()
      queue.askedFor.length = 0
      for await (const difference of mails.verify()) expect(difference).to.equal(undefined)
      expect(queue.askedFor.slice(0, 3)).to.deep.equal([2, 2, 1])
    })
  })

  describe('of statements', () => {
    it('do not delay the start of a restore: a count that takes too long is left out', async () => {
      const { journal, queue, mails } = await attached()
      await mails.addMany(['a', 'b'].map((id) => ({ payload: id, id, delay: 60_000 })))
      await mails.drain()
      const said: RestoreProgress[] = []
      journal.on('restoring', (progress) => said.push(progress))
      const timesOut = (original: JournalDatabase['run']): JournalDatabase['run'] =>
        function run<R>(this: JournalDatabase, action: Parameters<typeof original<R>>[0]) {
          if (action.toString().includes('countAll'))
            return Promise.reject(new JournalError('ERR_JOURNAL_UNAVAILABLE', ''))
          return original.call(this, action) as Promise<R>
        }
      await patched('run', timesOut, async () => {
        const done = restored(journal)
        queue.wipe()
        await done
      })
      expect([...queue.messages.keys()].sort()).to.deep.equal(['a', 'b'])
      expect(said[0]).to.include({ checked: 2, restored: 2, total: null, left: null })
    })

    it('hold for a queue that was cleared: its rows are written some at a time, and after an interruption again', async () => {
      const { queue, mails } = await attached({ sweepMs: 60_000 })
      const ids = Array.from({ length: 2_500 }, (_, n) => `m${String(n).padStart(4, '0')}`)
      await mails.addMany(ids.map((id) => ({ payload: 'x', id, delay: 60_000 })))
      await mails.drain()
      const states = async (): Promise<(string | undefined)[]> =>
        Promise.all([ids[0]!, ids[2_499]!, 'new'].map(async (id) => (await mails.get(id))?.state))
      const interrupted = (original: JournalDatabase['run']): JournalDatabase['run'] => {
        let updates = 0
        return function run<R>(this: JournalDatabase, action: Parameters<typeof original<R>>[0]) {
          if (action.toString().includes('removedAt') && ++updates > 1)
            return Promise.reject(new JournalError('ERR_JOURNAL_UNAVAILABLE', 'interrupted'))
          return original.call(this, action) as Promise<R>
        }
      }
      await patched('run', interrupted, async () => {
        queue.clear()
        queue.clock += 10
        await queue.addMany([{ payload: 'y', id: 'new' }])
        expect(await caught(mails.drain())).to.include({ code: 'ERR_JOURNAL_UNAVAILABLE' })
        expect(await states()).to.deep.equal(['removed', 'open', undefined])
      })
      await mails.drain()
      expect(await states()).to.deep.equal(['removed', 'removed', 'open'])
    })
  })

  describe('of time', () => {
    it('hold for closing a journal that is in the middle of a slow restore', async () => {
      const { journal, queue, mails } = await attached({ restoreRate: 200 })
      await mails.addMany(Array.from({ length: 10_000 }, (_, n) => ({ payload: 'x', id: `m${n}`, delay: 60_000 })))
      await mails.drain()
      const begun = new Promise((resolve) => journal.once('restoring', resolve))
      queue.wipe()
      await begun
      const startedAt = performance.now()
      await journal.close()
      expect(performance.now() - startedAt).to.be.below(25_000) // another nine pages would take 45 s
      expect(queue.messages.size).to.be.within(1_000, 9_000)
    })

    it('hold for closing a journal whose Redis does not answer', async () => {
      const { journal, queue } = await attached()
      queue.holdsReads = true
      const before = queue.reads
      await eventually(() => expect(queue.reads).to.be.above(before))
      await journal.close()
    })

    it('let no message be accepted after the journal was closed', async () => {
      const { journal, mails } = await attached()
      await journal.close()
      expect(await caught(mails.add('x'))).to.include({ code: 'ERR_JOURNAL_CLOSED' })
    })

    it('hold for an add whose Redis does not answer', async () => {
      const { queue, mails } = await attached({ adoptAfterMs: 1_000, sweepMs: 60_000 })
      queue.holdsAdds = true
      expect(await mails.add('x', { id: 'a' })).to.include({ outcome: 'journalled' })
    })
  })

  describe('of its queries while nothing happens', () => {
    it('leave SQL alone between two sweeps, and see a change at once', async () => {
      const { queue, mails } = await attached({ sweepMs: 60_000 })
      await mails.add('x', { id: 'a' })
      await mails.drain()
      let statements = 0
      const counting = (original: JournalDatabase['run']): JournalDatabase['run'] =>
        function run<R>(this: JournalDatabase, action: Parameters<typeof original<R>>[0]) {
          statements++
          return original.call(this, action) as Promise<R>
        }
      // the first sweep may still be under way
      await patched('run', counting, () =>
        eventually(async () => {
          statements = 0
          const before = queue.reads
          await eventually(() => expect(queue.reads).to.be.above(before + 9))
          expect(statements).to.be.below(5)
        }),
      )
      queue.clock += 10
      queue.end('a')
      await eventually(async () => expect((await mails.get('a'))?.state).to.equal('handled'))
    })
  })

  describe('of what it knows', () => {
    it('let no message be accepted whose due time would be a guess', async () => {
      const queue = new CountingQueue('mails')
      queue.isDown = true
      const mails = await (await make()).attach<string>(queue)
      const date = new Date(Date.now() + 60_000)
      for (const options of [{}, { delay: 5 }, { date }, { delay: 5, timeToLive: 5 }])
        expect(await caught(mails.add('x', { id: 'a', ...options })), JSON.stringify(options)).to.be.instanceOf(
          ConnectionError,
        )
      expect(await mails.get('a')).to.equal(null)
      expect(await mails.add('x', { id: 'a', date, timeToLive: 7 })).to.deep.equal({
        id: 'a',
        outcome: 'journalled',
        dueAt: date.getTime(),
      })
    })

    it('have the configuration of the queue in SQL: for another process while Redis is away, and for Redis when it has lost it', async () => {
      const url = await server.fresh()
      const queue = new CountingQueue('mails')
      queue.config = { delay: 5_000, timeToLive: 9_000 }
      const first = await attached({ url }, queue)
      await first.mails.add('x', { id: 'a' })
      await first.mails.drain()
      const done = restored(first.journal)
      queue.wipe()
      await done
      expect(queue.config).to.include({ delay: 5_000, timeToLive: 9_000 })
      await first.journal.close()

      queue.isDown = true
      const second = await (await make({ url })).attach<string>(queue)
      const date = new Date(Date.now() + 60_000)
      expect(await second.add('y', { id: 'b', date })).to.include({ outcome: 'journalled' })
      expect((await second.get('b'))?.expiresAt).to.equal(date.getTime() + 9_000)
    })

    it('do not take a measurement of the clock that took long', async () => {
      let [delay, answer] = [0, 1_000_000]
      const clock = new QueueClock(async () => {
        await new Promise((resolve) => setTimeout(resolve, delay)) // Redis answers late
        return answer
      })
      await clock.refresh()
      ;[delay, answer] = [400, 2_000_000]
      await clock.refresh()
      expect(clock.now()).to.be.below(1_100_000)
    })
  })

  describe('of a queue that was detached', () => {
    it('end what the process does for it, and keep its rows', async () => {
      const { journal, queue, mails } = await attached({ sweepMs: 100 })
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      await journal.detach(queue)
      const { reads } = queue
      const other = new CountingQueue('others')
      await journal.attach<string>(other)
      expect(await caught(mails.add('x'))).to.include({ code: 'ERR_JOURNAL_CLOSED' })
      queue.clock += 10
      queue.end('a')
      await eventually(() => expect(other.reads, 'sweeps of another queue').to.be.at.least(4))
      expect(queue.reads).to.equal(reads)
      expect((await mails.get('a'))?.state).to.equal('open')
      const again = await journal.attach<string>(queue)
      await eventually(async () => expect((await again.get('a'))?.state).to.equal('handled'))
    })

    it('forget it if it is gone for good', async () => {
      const { journal, queue, mails } = await attached()
      await mails.addMany(Array.from({ length: 1_200 }, (_, n) => ({ payload: 'x', id: `m${n}`, delay: 60_000 })))
      await mails.drain()
      await journal.detach(queue, { forget: true })
      expect([await mails.get('m0'), await mails.get('m1199'), await mails.flow('m0')]).to.deep.equal([null, null, []])
      await journal.detach(queue)
    })
  })

  it('have a redriven message in its queue before its dead letter is final', async () => {
    const journal = await make()
    const [queue, dead] = [new CountingQueue('mails'), new CountingQueue('mails:dead')]
    const [mails, letters] = [await journal.attach<string>(queue), await journal.attach<string>(dead)]
    await eventually(() => expect([queue.isKept, dead.isKept]).to.deep.equal([true, true]))
    await dead.addMany([{ payload: 'x', id: 'a' }])
    await letters.drain()
    queue.isDown = true
    dead.clock += 10
    dead.move('a', queue, 'redriven')
    expect(await caught(letters.drain())).to.be.an('error')
    expect([(await letters.get('a'))?.state, await mails.get('a')]).to.deep.equal(['open', null])
    queue.isDown = false
    await letters.drain()
    expect([(await letters.get('a'))?.state, (await mails.get('a'))?.state]).to.deep.equal(['moved', 'open'])
  })
})
