import { expect } from 'chai'
import type { StoredRawMessage } from 'redelayed'
import { createJournal, type Journal, type JournalOptions, type JournalQueue } from '../index.js'
import type { FaultPoints } from '../journal/journal.js'
import { startSqlite } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { FakeQueue } from './support/fake-queue.js'

/** A queue that lets something else happen between two calls of the journal. */
class HookedQueue extends FakeQueue {
  /** Runs once, just before the next look at messages. */
  onLook: ((ids: readonly string[]) => Promise<void> | void) | undefined

  override async getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    const hook = this.onLook
    this.onLook = undefined
    await hook?.(ids)
    return super.getAllRaw(ids)
  }
}

describe('the journal, when others act between its steps', function () {
  this.timeout(30_000)
  const server = startSqlite()
  const open: Journal[] = []

  after(() => server.stop())
  afterEach(async () => {
    await Promise.all(open.splice(0).map((journal) => journal.close()))
  })

  async function make(options: JournalOptions = {}, points: FaultPoints = {}): Promise<Journal> {
    const journal = await createJournal({ url: await server.fresh(), adoptAfterMs: 60_000, ...options }, points)
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
})
