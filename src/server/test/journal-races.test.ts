import { expect } from 'chai'
import {
  ConnectionError,
  InvalidArgumentError,
  QueueFullError,
  type AddItem,
  type Added,
  type RestoreItem,
  type RestoreOutcome,
  type StoredRawMessage,
} from 'redelayed'
import { JournalDatabase } from '../database/database.js'
import { createJournal, JournalError, type Journal, type JournalOptions, type JournalQueue } from '../index.js'
import type { ChangeReading } from '../journal/journalled-queue.js'
import { openJournal, type FaultPoints } from '../journal/journal.js'
import { startSqlite } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { FakeQueue, NEVER_PRUNED } from './support/fake-queue.js'

/** A queue that runs hooks between two calls of the journal. */
class HookedQueue extends FakeQueue {
  readonly deadLettersName: string | undefined
  reads = 0
  /** Each runs once. */
  afterCancel: (() => Promise<unknown>) | undefined
  beforeAdd: (() => Promise<unknown>) | undefined
  /** Runs each time. */
  beforeRead: (() => Promise<unknown>) | undefined
  #reads: Promise<void> = Promise.resolve()
  #letReads = (): void => undefined

  constructor(name: string, deadLettersName?: string) {
    super(name)
    this.deadLettersName = deadLettersName
  }

  holdReads(): void {
    this.#reads = new Promise((resolve) => (this.#letReads = resolve))
  }

  letReads(): void {
    this.#letReads()
  }

  extend(id: string, ms: number): void {
    const message = this.messages.get(id)
    if (message) (this.messages as Map<string, StoredRawMessage>).set(id, { ...message, dueAt: this.clock + ms })
  }

  override async readChanges(after: { id: string; epoch: string | null }, count: number): Promise<ChangeReading> {
    await this.#reads
    await this.beforeRead?.()
    this.reads++
    return super.readChanges(after, count)
  }

  /** Runs once. */
  beforeRestore: (() => void) | undefined
  /** The most restores that put messages back at the same time. */
  mostAtOnce = 0
  #atOnce = 0

  override async restoreMany(
    items: Iterable<RestoreItem>,
    options?: { readonly known?: boolean },
  ): Promise<RestoreOutcome[]> {
    const hook = this.beforeRestore
    this.beforeRestore = undefined
    hook?.()
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce)
    await new Promise((resolve) => setImmediate(resolve))
    const outcomes = await super.restoreMany(items, options)
    this.#atOnce--
    return outcomes
  }

  override async addMany(items: Iterable<AddItem<string>>): Promise<Added[]> {
    const hook = this.beforeAdd
    this.beforeAdd = undefined
    await hook?.()
    return super.addMany(items)
  }

  override async cancel(id: string): Promise<boolean> {
    const isRemoved = await super.cancel(id)
    const hook = this.afterCancel
    this.afterCancel = undefined
    await hook?.()
    return isRemoved
  }

  /** Runs once, just before the next read of messages. */
  onLook: ((ids: readonly string[]) => Promise<void> | void) | undefined

  override async getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    const hook = this.onLook
    this.onLook = undefined
    await hook?.(ids)
    return super.getAllRaw(ids)
  }
}

describe('the journal, when others act between its steps', function () {
  this.timeout(60_000)
  const server = startSqlite()
  const open: Journal[] = []
  const urls: string[] = []

  after(() => server.stop())
  afterEach(async () => {
    await Promise.all(open.splice(0).map((journal) => journal.close()))
  })

  async function make(options: JournalOptions = {}, points: FaultPoints = {}): Promise<Journal> {
    const url = await server.fresh()
    urls.push(url)
    const journal = await openJournal({ url, adoptAfterMs: 60_000, ...NEVER_PRUNED, ...options }, points)
    open.push(journal)
    return journal
  }

  async function attached(
    options: JournalOptions = {},
    points: FaultPoints = {},
  ): Promise<{ journal: Journal; queue: HookedQueue; mails: JournalQueue<string> }> {
    const queue = new HookedQueue('mails')
    const journal = await make(options, points)
    const mails = await journal.attach<string>(queue)
    await eventually(() => expect(queue.isKept).to.equal(true))
    return { journal, queue, mails }
  }

  const restored = (journal: Journal): Promise<unknown> => new Promise((resolve) => journal.once('restored', resolve))
  const textOf = (message: { readonly payload: Uint8Array } | null | undefined): string | undefined =>
    message ? Buffer.from(message.payload).toString() : undefined

  describe('a restore', () => {
    it('does not remove a message that was added anew under the id of one that is final', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('old', { id: 'a', delay: 60_000 })
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      queue.end('a')
      await mails.drain()
      queue.onLook = async () => {
        await queue.cancel('a')
        expect(await mails.add('new', { id: 'a', delay: 60_000 })).to.include({ outcome: 'added' })
      }
      goBack()
      await restored(journal)
      expect(queue.onLook, 'the restore has looked').to.equal(undefined)
      expect(textOf(queue.messages.get('a'))).to.equal('new')
    })

    it('does not bring back a message that a consumer handles while its page is put back', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      await mails.add('y', { id: 'b', delay: 60_000 })
      await mails.drain()
      queue.beforeRestore = () => queue.end('a')
      goBack()
      await restored(journal)
      expect(queue.beforeRestore, 'something was put back').to.equal(undefined)
      expect([...queue.messages.keys()]).to.deep.equal(['b'])
    })

    it('does not bring back a message that a consumer handles while a newer message takes its place', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 10_000 })
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      queue.reschedule('a', queue.clock + 60_000)
      await mails.add('y', { id: 'b', delay: 60_000 })
      await mails.drain()
      queue.beforeRestore = () => queue.end('a')
      goBack()
      await restored(journal)
      expect(queue.beforeRestore, 'something was put back').to.equal(undefined)
      expect([...queue.messages.keys()]).to.deep.equal(['b'])
    })

    it('writes no unchanged message that it puts back, and a message handled after that stays handled', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      queue.wipe()
      await restored(journal)
      await mails.drain()
      expect(queue.stream.at(-1)?.changes).to.deep.equal([{ change: 'restored', id: 'a' }])
      const goBack = queue.snapshot()
      queue.clock += 10
      queue.end('a')
      await mails.drain()
      goBack()
      await restored(journal)
      await mails.drain()
      expect([...queue.messages.keys()]).to.deep.equal([])
      expect(await mails.get('a')).to.include({ state: 'handled' })
      expect((await mails.flow('a')).map(({ change }) => change)).to.deep.equal(['added', 'acknowledged', 'removed'])
    })

    it('replaces an older message that has the same id and due time', async () => {
      const { journal, queue, mails } = await attached()
      const date = new Date(queue.clock + 60_000)
      await mails.add('old', { id: 'a', date })
      await mails.add('same', { id: 'b', date, headers: { to: 'b', by: 'a' } })
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      await mails.cancel('a')
      await mails.add('new', { id: 'a', date })
      await mails.drain()
      goBack()
      await restored(journal)
      expect(textOf(queue.messages.get('a'))).to.equal('new')
      await mails.drain()
      expect(textOf((await mails.get('a')) ?? undefined)).to.equal('new')
      expect((await mails.flow('b')).map(({ change }) => change)).to.deep.equal(['added'])
    })

    describe('where a consumer has a message in the snapshot', () => {
      it('gives it the later due time with which it was given back since', async () => {
        const { journal, queue, mails } = await attached()
        await mails.add('x', { id: 'a' })
        queue.poll('a')
        await mails.drain()
        const goBack = queue.snapshot()
        queue.clock += 10
        queue.fail('a', 'busy', 30 * 86_400_000)
        await mails.drain()
        const { dueAt } = queue.messages.get('a') ?? {}
        goBack()
        await restored(journal)
        expect(queue.messages.get('a')).to.include({ dueAt, inFlight: false, attempts: 1 })
      })

      it('replaces it by the one that was added since under its id', async () => {
        const { journal, queue, mails } = await attached()
        await mails.add('old', { id: 'a' })
        queue.poll('a')
        await mails.drain()
        const goBack = queue.snapshot()
        queue.clock += 10
        queue.end('a')
        await mails.drain()
        await mails.add('new', { id: 'a' })
        await mails.drain()
        goBack()
        await restored(journal)
        expect(queue.messages.get('a')).to.include({ inFlight: false, attempts: 0 })
        expect(textOf(queue.messages.get('a'))).to.equal('new')
      })

      for (const [what, visibilityMs] of [
        ['extended', 90_000],
        ['extended to end earlier', 5_000],
      ] as const) {
        it(`leaves it to the consumer where SQL knows nothing newer, ${what}`, async () => {
          const { journal, queue, mails } = await attached()
          await mails.add('x', { id: 'a' })
          queue.poll('a')
          await mails.drain()
          queue.extend('a', visibilityMs)
          const goBack = queue.snapshot()
          queue.clock += 10
          await mails.add('y', { id: 'b', delay: 60_000 })
          await mails.drain()
          goBack()
          await restored(journal)
          expect(queue.messages.get('a')).to.include({ inFlight: true })
          expect(queue.messages.has('b')).to.equal(true)
        })
      }
    })

    it('looks at the next page while Redis takes one, and after that reads the changes anew', async () => {
      const { journal, queue, mails } = await attached()
      const ids = Array.from({ length: 1_001 }, (_, n) => `m${String(n).padStart(4, '0')}`)
      await mails.addMany(ids.map((id) => ({ payload: id, id, delay: 60_000 })))
      await mails.drain()
      const last = ids.at(-1) ?? ''
      const getAllRaw = queue.getAllRaw.bind(queue)
      const restoreMany = queue.restoreMany.bind(queue)
      let looked = (): void => undefined
      const isLooked = new Promise<void>((resolve) => (looked = resolve))
      queue.getAllRaw = async (some) => {
        const found = await getAllRaw(some)
        if (some.length === 1) looked()
        return found
      }
      queue.restoreMany = async (items) => {
        const list = [...items]
        if (list.length > 1) await isLooked // otherwise this would wait forever
        return restoreMany(list)
      }
      const done = restored(journal)
      queue.wipe()
      // only the change stream has it, as for a message that is handled after the read of its page
      void isLooked.then(async () => {
        await queue.addMany([{ payload: last, id: last }])
        queue.clock += 10
        queue.end(last)
      })
      await done
      expect(queue.messages.size).to.equal(1_000)
      expect(queue.messages.has(last)).to.equal(false)
    })

    it('does not bring back a message that is added again and handled while its page is put back', async () => {
      const { journal, queue, mails } = await attached()
      const date = new Date(queue.clock + 60_000)
      await mails.addMany(['a', 'b'].map((id) => ({ payload: id, id, date })))
      await mails.drain()
      const look = queue.getAllRaw.bind(queue)
      queue.getAllRaw = async (ids) => {
        const found = await look(ids)
        queue.getAllRaw = look
        queue.clock += 10
        await queue.addMany([{ payload: 'a', id: 'a', date }]) // a client repeats a call that had no answer
        return found
      }
      queue.beforeRestore = () => queue.end('a')
      queue.wipe()
      await restored(journal)
      expect(queue.beforeRestore, 'something was put back').to.equal(undefined)
      expect([...queue.messages.keys()]).to.deep.equal(['b'])
    })

    it('does not hide a new message that replaces the restored one with the same due time', async () => {
      const { journal, queue, mails } = await attached()
      const date = new Date(queue.clock + 60_000)
      await mails.add('old', { id: 'a', date })
      await mails.drain()
      queue.wipe()
      await restored(journal)
      ;(queue.messages as Map<string, StoredRawMessage>).delete('a')
      queue.clock += 10
      await queue.addMany([{ payload: 'new', id: 'a', date }])
      await mails.drain()
      expect(textOf((await mails.get('a')) ?? undefined)).to.equal('new')
    })

    it('does not put an older state over a newer one', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      queue.reschedule('a', queue.clock + 100_000)
      await mails.drain()
      const latest = queue.clock + 200_000
      queue.onLook = () => {
        queue.clock += 10
        queue.reschedule('a', latest)
      }
      goBack()
      await restored(journal)
      expect(queue.onLook, 'the restore has looked').to.equal(undefined)
      expect(queue.messages.get('a')?.dueAt).to.equal(latest)
      await mails.drain()
      expect((await mails.get('a'))?.dueAt).to.equal(latest)
    })
  })

  describe('a Redis that came back empty', () => {
    it('has what came there before it was seen to be empty put back when it goes again', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      queue.holdReads()
      queue.wipe()
      // not recorded, like a dead letter that comes before the journal has looked
      await queue.addMany([{ payload: 'unrecorded', id: 'b', date: new Date(queue.clock + 60_000) }])
      expect(queue.stream).to.deep.equal([])
      const first = restored(journal)
      queue.letReads()
      await first
      expect(textOf(await mails.get('b'))).to.equal('unrecorded')
      queue.wipe()
      await restored(journal)
      expect([...queue.messages.keys()].sort()).to.deep.equal(['a', 'b'])
      const differences = []
      for await (const difference of mails.verify()) differences.push(difference)
      expect(differences).to.deep.equal([])
    })

    it('has at most 10,000 of them read, says how many were not, and counts those', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      const said: string[] = []
      journal.on('error', (error, name) => said.push(`${name}: ${(error as JournalError).code}`))
      queue.holdReads()
      queue.wipe()
      const date = new Date(queue.clock + 60_000)
      await queue.addMany(Array.from({ length: 10_250 }, (_, at) => ({ payload: 'x', id: `b${at}`, date })))
      const first = restored(journal)
      queue.letReads()
      await first
      expect(said).to.deep.equal(['mails: ERR_JOURNAL_LEFT_OUT'])
      expect(journal.leftOut).to.equal(250)
      expect(await mails.get('b9999')).to.include({ state: 'open' })
      expect(await mails.get('b10000')).to.equal(null)
    })

    it('counts none where all of them were read', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      queue.holdReads()
      queue.wipe()
      const date = new Date(queue.clock + 60_000)
      await queue.addMany(Array.from({ length: 10_000 }, (_, at) => ({ payload: 'x', id: `b${at}`, date })))
      const first = restored(journal)
      queue.letReads()
      await first
      expect(await mails.get('b9999')).to.include({ state: 'open' })
      expect(journal.leftOut).to.equal(0)
    })
  })

  it('says that Redis has forgotten something, whoever sees it first', async () => {
    const queue = new HookedQueue('mails')
    await queue.keepChanges()
    const journal = await make({ background: false })
    const mails = await journal.attach<string>(queue)
    const said: string[] = []
    journal.on('forgotten', (name) => said.push(name))
    for (const id of ['a', 'b']) {
      await mails.add('x', { id, delay: 60_000 })
      await mails.drain()
      expect(said).to.deep.equal([])
      queue.clock += 10
      queue.wipe()
      expect(await mails.cancel(id)).to.equal(true)
      expect(said.splice(0)).to.deep.equal(['mails'])
    }
  })

  describe('a cancel', () => {
    it('shares one read of the changes with others', async () => {
      const queue = new HookedQueue('mails')
      await queue.keepChanges()
      const mails = await (await make({ background: false })).attach<string>(queue)
      const ids = Array.from({ length: 20 }, (_, at) => `m${at}`)
      await mails.addMany(ids.map((id) => ({ payload: 'x', id, delay: 60_000 })))
      await mails.drain()
      queue.reads = 0
      expect(await Promise.all(ids.map((id) => mails.cancel(id)))).to.deep.equal(ids.map(() => true))
      expect(queue.reads).to.be.lessThan(ids.length / 2)
      expect((await mails.get('m7'))?.state).to.equal('removed')
    })

    it('leaves alone a message that was added anew under the id', async () => {
      const { queue, mails } = await attached()
      await mails.add('old', { id: 'a', delay: 60_000 })
      await mails.drain()
      queue.afterCancel = async () => {
        queue.clock += 10
        expect(await mails.add('new', { id: 'a', delay: 90_000 })).to.include({ outcome: 'added' })
      }
      expect(await mails.cancel('a')).to.equal(true)
      await mails.drain()
      expect([(await mails.get('a'))?.state, textOf(await mails.get('a'))]).to.deep.equal(['open', 'new'])
    })

    it('removes again a message that a failover brings back', async () => {
      const { queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      const before = queue.snapshot()
      queue.afterCancel = async () => before()
      expect(await mails.cancel('a')).to.equal(true)
      expect(queue.messages.has('a')).to.equal(false)
      await mails.drain()
      expect(await mails.get('a')).to.include({ state: 'removed' })
    })

    it('removes a message that was accepted and never came to Redis, but not one that was added meanwhile', async () => {
      const { queue, mails } = await attached()
      queue.addMany = async () => {
        throw new ConnectionError('down', 'not-applied')
      }
      for (const id of ['a', 'b']) expect(await mails.add('x', { id })).to.include({ outcome: 'journalled' })
      expect(await mails.cancel('a')).to.equal(true)
      queue.afterCancel = async () => {
        queue.clock += 10
        delete (queue as Partial<HookedQueue>).addMany
        expect(await mails.add('y', { id: 'b', delay: 60_000 })).to.include({ outcome: 'added' })
        await queue.cancel('other')
      }
      await mails.cancel('b')
      await mails.drain()
      expect([(await mails.get('a'))?.state, (await mails.get('b'))?.state]).to.deep.equal(['removed', 'open'])
    })
  })

  describe('an add', () => {
    it('does not bring a message back that was handled before its row was written again', async () => {
      const { queue, mails } = await attached()
      await queue.addMany([{ payload: 'theirs', id: 'a' }])
      await mails.drain()
      queue.end('a')
      await mails.drain()
      queue.clock += 10
      // SQL has the id as final, and Redis has another message under it, which is handled meanwhile
      queue.beforeAdd = () => queue.addMany([{ payload: 'other', id: 'a' }])
      queue.onLook = async () => {
        queue.clock += 10
        queue.end('a')
        await mails.drain()
      }
      expect(await mails.add('mine', { id: 'a' })).to.include({ outcome: 'kept' })
      await mails.drain()
      expect((await mails.get('a'))?.state).to.equal('handled')
    })

    it('knows the message that Redis has under the id', async () => {
      const { queue, mails } = await attached()
      queue.beforeAdd = () => queue.addMany([{ payload: 'theirs', id: 'a' }])
      expect(await mails.add('mine', { id: 'a' })).to.include({ outcome: 'kept' })
      expect([(await mails.get('a'))?.state, textOf(await mails.get('a'))]).to.deep.equal(['open', 'theirs'])
    })

    it('keeps its outcome when SQL fails after it, and a message that Redis refused is not added later', async () => {
      const { queue, mails } = await attached({ sweepMs: 100 })
      // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with its object
      const { transaction } = JournalDatabase.prototype
      try {
        queue.addMany = async () => {
          JournalDatabase.prototype.transaction = () => Promise.reject(new JournalError('ERR_JOURNAL_UNAVAILABLE', ''))
          throw new QueueFullError()
        }
        const error = await mails.add('x', { id: 'a' }).catch((thrown: unknown) => thrown)
        expect(error).to.include({ code: 'ERR_QUEUE_FULL' })
      } finally {
        JournalDatabase.prototype.transaction = transaction
      }
      await eventually(async () => expect((await mails.get('a'))?.state).to.equal('refused'))
    })

    it('is refused before SQL has it if the queue would refuse it', async () => {
      const { mails } = await attached()
      const bad: Record<string, unknown>[] = [
        { priority: 42 },
        { delay: -1 },
        { delay: 1, date: new Date() },
        { date: new Date(NaN) },
        { timeToLive: 0 },
        { timeToLive: Number.MAX_SAFE_INTEGER },
        { deliveryLimit: 0 },
        { headers: { a: 1 } },
        { headers: { a: 'x'.repeat(70_000) } },
        { colour: 'red' },
        { group: '' },
        { group: 'a'.repeat(256) },
        { group: 'a', priority: 1 },
        { batch: 'a' },
        { existing: 'replace' },
        { deduplicate: { by: 'id', forMs: 1_000 } },
      ]
      for (const options of bad) {
        const error = await mails.add('x', { id: 'a', ...options }).catch((thrown: unknown) => thrown)
        expect(error, JSON.stringify(options)).to.be.instanceOf(InvalidArgumentError)
      }
      expect(await mails.get('a')).to.equal(null)
    })
  })

  describe('a row that makes no message', () => {
    it('does not keep the others from Redis', async () => {
      const url = await server.fresh()
      const { journal, queue, mails } = await attached({ url, adoptAfterMs: 100, sweepMs: 100 })
      const restoreMany = queue.restoreMany.bind(queue)
      queue.restoreMany = async (items) => {
        const list = [...items]
        if (list.some(({ id }) => id === 'bad')) throw new InvalidArgumentError('items[0].priority', '0 to 9', 42)
        return restoreMany(list)
      }
      const said: unknown[] = []
      journal.on('error', (error) => said.push(error))
      await mails.addMany(['a', 'bad', 'c'].map((id) => ({ payload: id, id, delay: 60_000 })))
      await mails.drain()
      const done = restored(journal)
      queue.wipe()
      await done
      expect([...queue.messages.keys()].sort()).to.deep.equal(['a', 'c'])
      expect(said.map((error) => (error as JournalError).code)).to.include('ERR_JOURNAL_ROW')
    })
  })

  describe('an accepted message that is not in Redis', () => {
    it('is left to the instance that accepted it, by a restore', async () => {
      let goOn = (): void => undefined
      const committed = new Promise<void>((resolve) => (goOn = resolve))
      let proceed = (): void => undefined
      const isHeld = new Promise<void>((resolve) => (proceed = resolve))
      const points: FaultPoints = {
        afterCommit: async () => {
          goOn()
          await isHeld
        },
      }
      const { journal, queue, mails } = await attached({}, points)
      const adding = mails.add('x', { id: 'a' })
      await committed
      const done = restored(journal)
      queue.wipe()
      await done
      expect(queue.messages.has('a'), 'the restore has not added it').to.equal(false)
      proceed()
      expect(await adding).to.include({ outcome: 'added' })
    })

    it('is added by an instance that was too slow, if SQL does not know that the message before it was handled', async () => {
      let slowMs = 0
      const { queue, mails } = await attached(
        { adoptAfterMs: 1_000, sweepMs: 60_000 },
        // the instance stands still after the commit
        { afterCommit: () => new Promise((resolve) => setTimeout(resolve, slowMs)) },
      )
      await mails.add('old', { id: 'a' })
      await mails.drain()
      queue.holdReads()
      queue.end('a')
      slowMs = 600
      const adding = mails.add('new', { id: 'a', delay: 60_000 })
      await eventually(() => expect(textOf(queue.messages.get('a'))).to.equal('new'))
      queue.letReads()
      expect(await adding).to.include({ outcome: 'added' })
      await mails.drain()
      expect(await mails.get('a')).to.include({ state: 'open' })
    })

    it('is not added by an instance that was too slow before the commit', async () => {
      const { queue, mails } = await attached({ adoptAfterMs: 400, lingerMs: 500, sweepMs: 60_000 })
      expect(await mails.add('x', { id: 'a' })).to.include({ outcome: 'journalled' })
      expect(queue.messages.has('a')).to.equal(false)
    })
  })

  it('reads a stream to the end that it had, while others write without end', async () => {
    const { queue, mails } = await attached()
    await mails.add('x', { id: 'a', delay: 60_000 })
    let written = 0
    queue.beforeRead = () => queue.addMany([{ payload: 'y', id: `other${written++}` }])
    await mails.drain()
    const before = written
    await mails.drain()
    expect(await mails.get(`other${before - 1}`)).to.include({ state: 'open' })
    queue.beforeRead = undefined
  })

  it('restores a queue by hand once at a time, and says what each restore found', async () => {
    const { queue, mails } = await attached()
    const ids = Array.from({ length: 2_500 }, (_, n) => `m${n}`)
    await mails.addMany(ids.map((id) => ({ payload: id, id, delay: 60_000 })))
    await mails.drain()
    ;(queue.messages as Map<string, StoredRawMessage>).clear()
    const results = await Promise.all([mails.restore(), mails.restore(), mails.restore()])
    expect(results.map(({ restored }) => restored).sort((a, b) => a - b)).to.deep.equal([0, 0, 2_500])
    expect(queue.mostAtOnce).to.equal(1)
  })

  it('restores a queue by hand once at a time, also where a Redis takes over whose clock is ahead', async () => {
    const { queue, mails } = await attached({ sweepMs: 100 })
    await mails.addMany(Array.from({ length: 20 }, (_, n) => ({ payload: 'x', id: `m${n}`, delay: 600_000 })))
    await mails.drain()
    ;(queue.messages as Map<string, StoredRawMessage>).clear()
    const restoreMany = queue.restoreMany.bind(queue)
    let goOn = (): void => undefined
    const isFree = new Promise<void>((resolve) => (goOn = resolve))
    let calls = 0
    queue.restoreMany = async (items) => {
      if (calls++ === 0) await isFree
      return restoreMany(items)
    }
    const first = mails.restore()
    await eventually(() => expect(calls).to.equal(1))
    queue.clock += 60_000
    const now = queue.now.bind(queue)
    let looks = 0
    queue.now = () => {
      looks++
      return now()
    }
    await eventually(() => expect(looks, 'how often sweeps asked Redis for its clock').to.be.at.least(3))
    const second = mails.restore()
    // nothing may happen
    await Promise.race([second, new Promise((resolve) => setTimeout(resolve, 1_000))])
    expect(calls, 'the second one waits').to.equal(1)
    goOn()
    const results = [await first, await second]
    expect(results.map(({ restored }) => restored)).to.deep.equal([20, 0])
  })

  it('does not put back by hand a message that is handled while its page is put back', async () => {
    const { queue, mails } = await attached()
    await mails.addMany(['a', 'b'].map((id) => ({ payload: id, id, delay: 60_000 })))
    await mails.drain()
    ;(queue.messages as Map<string, StoredRawMessage>).delete('b')
    queue.onLook = () => queue.end('a')
    expect(await mails.restore()).to.deep.equal({ checked: 2, restored: 1, refused: 0 })
    expect([...queue.messages.keys()]).to.deep.equal(['b'])
  })

  it('does not put back by hand a message that is added and handled while its page is put back', async () => {
    let [goOn, reached] = [(): void => undefined, (): void => undefined]
    const isFree = new Promise<void>((resolve) => (goOn = resolve))
    const isCommitted = new Promise<void>((resolve) => (reached = resolve))
    const afterCommit = (): Promise<void> => {
      reached()
      return isFree
    }
    const { queue, mails } = await attached({}, { afterCommit })
    const added = mails.add('x', { id: 'a' })
    await isCommitted
    const look = queue.getAllRaw.bind(queue)
    queue.getAllRaw = async (ids) => {
      const found = await look(ids)
      goOn()
      await added
      return found
    }
    queue.beforeRestore = () => queue.end('a')
    expect(await mails.restore()).to.include({ restored: 0 })
    if (queue.messages.has('a')) queue.end('a') // if nothing was put back, nothing was handled meanwhile
    expect([...queue.messages.keys()]).to.deep.equal([])
  })

  it('does not put back by hand a message that Redis took without an answer and a consumer has handled', async () => {
    const { queue, mails } = await attached()
    await mails.addMany(['a', 'b'].map((id) => ({ payload: id, id, delay: 60_000 })))
    await mails.drain()
    ;(queue.messages as Map<string, StoredRawMessage>).clear()
    const restoreMany = queue.restoreMany.bind(queue)
    queue.restoreMany = async (items, options) => {
      queue.restoreMany = restoreMany
      await restoreMany([...items].slice(0, 1), options)
      queue.end('a')
      throw new ConnectionError('no answer', 'unknown')
    }
    expect(await mails.restore()).to.deep.equal({ checked: 2, restored: 1, refused: 0 })
    expect([...queue.messages.keys()]).to.deep.equal(['b'])
  })

  it('does not put back by hand a message that was handled since the journal was closed', async () => {
    const { journal, queue, mails } = await attached()
    await mails.addMany(['a', 'b'].map((id) => ({ payload: id, id, delay: 60_000 })))
    await mails.drain()
    await journal.close()
    queue.end('a')
    ;(queue.messages as Map<string, StoredRawMessage>).delete('b')
    const url = urls.at(-1)
    const tool = await createJournal({ ...(url !== undefined && { url }), background: false })
    open.push(tool)
    const again = await tool.attach<string>(queue)
    expect(await again.restore()).to.deep.equal({ checked: 1, restored: 1, refused: 0 })
    expect([...queue.messages.keys()]).to.deep.equal(['b'])
  })

  describe('a message that goes to another queue', () => {
    it('is known there before it is final where it was', async () => {
      const [queue, dead] = [new HookedQueue('mails', 'mails:dead'), new HookedQueue('mails:dead')]
      const journal = await make()
      const mails = await journal.attach<string>(queue)
      const letters = await journal.attach<string>(dead)
      await eventually(() => expect([queue.isKept, dead.isKept]).to.deep.equal([true, true]))
      await mails.add('x', { id: 'a' })
      await mails.drain()
      dead.holdReads()
      queue.end('a', 'dead')
      await dead.addMany([{ payload: 'x', id: 'a' }])
      const draining = mails.drain()
      // nothing may happen
      await Promise.race([draining, new Promise((resolve) => setTimeout(resolve, 500))])
      expect((await mails.get('a'))?.state).to.equal('open')
      dead.letReads()
      await draining
      expect([(await mails.get('a'))?.state, (await letters.get('a'))?.state]).to.deep.equal(['dead', 'open'])
    })

    for (const [what, isWiped] of [
      ['loses both queues', true],
      ['goes back in time', false],
    ] as const) {
      it(`is not final where it was when Redis ${what} before it is known there`, async () => {
        const [queue, dead] = [new HookedQueue('mails', 'mails:dead'), new HookedQueue('mails:dead')]
        await Promise.all([queue.keepChanges(), dead.keepChanges()])
        const journal = await make({ background: false })
        const mails = await journal.attach<string>(queue)
        const letters = await journal.attach<string>(dead)
        await mails.add('x', { id: 'a' })
        await Promise.all([mails.drain(), letters.drain()])
        const goBack = [queue.snapshot(), dead.snapshot()]
        queue.end('a', 'dead')
        await dead.addMany([{ payload: 'x', id: 'a' }])
        // between the reads of the two streams, and another drain notices it first
        dead.beforeRead = async () => {
          dead.beforeRead = undefined
          if (isWiped) [queue, dead].forEach((one) => one.wipe())
          else goBack.forEach((back) => back())
          await letters.drain()
        }
        await mails.drain()
        expect([(await mails.get('a'))?.state, await letters.get('a')]).to.deep.equal(['open', null])
        await mails.restore()
        expect([...queue.messages.keys()]).to.deep.equal(['a'])
      })
    }

    it('can go both ways between two queues', async () => {
      const [one, other] = [new HookedQueue('one', 'other'), new HookedQueue('other', 'one')]
      const journal = await make()
      const [ones, others] = [await journal.attach<string>(one), await journal.attach<string>(other)]
      await eventually(() => expect([one.isKept, other.isKept]).to.deep.equal([true, true]))
      const ids = Array.from({ length: 20 }, (_, n) => `m${n}`)
      for (const [at, id] of ids.entries()) {
        const [from, to] = at % 2 === 0 ? [one, other] : [other, one]
        await from.addMany([{ payload: id, id }])
        if (at % 3 > 0) [one, other].forEach((queue) => (queue.clock += 1))
        from.end(id, 'dead')
        await to.addMany([{ payload: id, id }])
      }
      await Promise.all([ones.drain(), others.drain()])
      for (const [at, id] of ids.entries()) {
        const [from, to] = at % 2 === 0 ? [ones, others] : [others, ones]
        expect([(await from.get(id))?.state, (await to.get(id))?.state], id).to.deep.equal(['dead', 'open'])
      }
    })
  })

  it('does not take an extended visibility for a difference', async () => {
    const { queue, mails } = await attached()
    await mails.add('x', { id: 'a' })
    queue.poll('a')
    await mails.drain()
    queue.extend('a', 90_000)
    const said: string[] = []
    for await (const { what } of mails.verify()) said.push(what)
    expect(said).to.deep.equal([])
  })
})
