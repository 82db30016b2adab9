import { expect } from 'chai'
import { ConnectionError } from 'redelayed'
import { createJournal, type Journal, type JournalOptions, type JournalQueue } from '../index.js'
import { startSqlite } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { FakeQueue, NEVER_PRUNED } from './support/fake-queue.js'

const ADOPT_AFTER_MS = 60_000

/** One id, two messages: the old one is final, then another is accepted, and Redis comes back with the old one. */
describe('the journal, where an id was given to another message', function () {
  this.timeout(30_000)
  const server = startSqlite()
  const open: Journal[] = []

  after(() => server.stop())
  afterEach(async () => {
    await Promise.all(open.splice(0).map((journal) => journal.close()))
  })

  async function attached(
    options: JournalOptions = {},
  ): Promise<{ journal: Journal; queue: FakeQueue; mails: JournalQueue<string> }> {
    const queue = new FakeQueue('mails')
    const journal = await createJournal({
      url: await server.fresh(),
      adoptAfterMs: ADOPT_AFTER_MS,
      sweepMs: 100,
      ...NEVER_PRUNED,
      ...options,
    })
    open.push(journal)
    await queue.keepChanges()
    return { journal, queue, mails: await journal.attach<string>(queue) }
  }

  const restored = (journal: Journal): Promise<unknown> => new Promise((resolve) => journal.once('restored', resolve))
  const textOf = (message: { readonly payload: Uint8Array } | null | undefined): string | undefined =>
    message ? Buffer.from(message.payload).toString() : undefined

  /** Resolves with a function that sets Redis back to the time when it had the old message. */
  async function handled(queue: FakeQueue, mails: JournalQueue<string>): Promise<() => void> {
    await mails.add('old', { id: 'a', delay: 10_000 })
    await mails.drain()
    const goBack = queue.snapshot()
    queue.clock += 10
    queue.end('a')
    await mails.drain()
    expect(await mails.get('a')).to.include({ state: 'handled' })
    return goBack
  }

  /** While Redis does not answer. */
  async function accept(queue: FakeQueue, mails: JournalQueue<string>): Promise<void> {
    queue.addMany = async () => {
      throw new ConnectionError('down', 'not-applied')
    }
    expect(await mails.add('new', { id: 'a', delay: 90_000 })).to.include({ outcome: 'journalled' })
    delete (queue as Partial<FakeQueue>).addMany
  }

  const isNew = async (queue: FakeQueue, mails: JournalQueue<string>): Promise<void> => {
    expect(textOf(queue.messages.get('a'))).to.equal('new')
    await mails.drain()
    expect(await mails.get('a')).to.include({ state: 'open' })
    expect(textOf(await mails.get('a'))).to.equal('new')
  }

  /** A message was accepted while Redis was away, which came back with the old message of its id. */
  const wentBack = async () => {
    const { journal, queue, mails } = await attached()
    const goBack = await handled(queue, mails)
    await accept(queue, mails)
    const isBack = restored(journal)
    goBack()
    await isBack
    return { queue, mails }
  }

  const isAdopted = async (queue: FakeQueue): Promise<void> => {
    queue.clock += ADOPT_AFTER_MS + 1_000
    await eventually(() => expect(textOf(queue.messages.get('a'))).to.equal('new'))
  }

  it('adds a message that was accepted while Redis was away, in the place of the old message', async () => {
    const { queue, mails } = await wentBack()
    expect(textOf(queue.messages.get('a')), 'it may be on its way').to.equal('old')
    await isAdopted(queue)
    await isNew(queue, mails)
  })

  it('keeps the accepted message when a consumer handles the old one', async () => {
    const { queue, mails } = await wentBack()
    queue.clock += 10
    queue.poll('a')
    await mails.drain()
    queue.end('a')
    await mails.drain()
    expect(await mails.get('a')).to.include({ state: 'accepted' })
    expect(textOf(await mails.get('a'))).to.equal('new')
    await isAdopted(queue)
    await isNew(queue, mails)
  })

  it('adds the accepted message in the place of the old one, which a consumer has', async () => {
    const { queue, mails } = await wentBack()
    queue.clock += 10
    queue.poll('a', 10 * ADOPT_AFTER_MS)
    await isAdopted(queue)
    expect(queue.messages.get('a')).to.include({ inFlight: false, attempts: 0 })
    await isNew(queue, mails)
  })

  for (const [when, isKnown] of [
    ['before the journal has seen it', false],
    ['before the repair has come to it', true],
  ] as const) {
    it(`adds a message in the place of the old one that came back, ${when}`, async () => {
      const { queue, mails } = await attached({ background: false })
      const goBack = await handled(queue, mails)
      goBack()
      if (isKnown) await mails.drain()
      expect(await mails.add('new', { id: 'a', delay: 90_000 })).to.include({ outcome: 'added' })
      await isNew(queue, mails)
    })
  }

  it('adds a message in the place of the old one that came back, also where a consumer has that', async () => {
    const { queue, mails } = await attached({ background: false })
    const goBack = await handled(queue, mails)
    goBack()
    queue.clock += 10
    queue.poll('a')
    expect(await mails.add('new', { id: 'a', delay: 90_000 })).to.include({ outcome: 'added' })
    await isNew(queue, mails)
  })

  for (const [what, comesBack] of [
    ['with the old message', true],
    ['without a message of the id', false],
  ] as const) {
    it(`adds a message again that a failover loses before SQL has read of it, ${what}`, async () => {
      const { queue, mails } = await attached({ background: false })
      await mails.add('old', { id: 'a', delay: 10_000 })
      if (!comesBack) queue.poll('a')
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      queue.end('a')
      const addMany = queue.addMany.bind(queue)
      queue.addMany = async (items) => {
        const added = await addMany(items)
        goBack()
        if (!comesBack) (queue.messages as Map<string, unknown>).delete('a')
        return added
      }
      expect(await mails.add('new', { id: 'a', delay: 90_000 })).to.include({ outcome: 'added' })
      await isNew(queue, mails)
    })
  }

  it('leaves a message to its consumer where a call for it is repeated, and Redis answers that it was added', async () => {
    const { queue, mails } = await attached({ background: false })
    await mails.add('x', { id: 'a', delay: 10_000 })
    queue.poll('a')
    await mails.drain()
    const { dueAt } = queue.messages.get('a') ?? {}
    queue.addMany = (items) => Promise.resolve([...items].map(({ id = '' }) => ({ id, outcome: 'added' })))
    expect(await mails.add('x', { id: 'a', delay: 90_000 })).to.include({ outcome: 'added' })
    expect(queue.messages.get('a')).to.include({ inFlight: true, dueAt })
    expect(await mails.get('a')).to.include({ state: 'open' })
  })

  it('cancels the accepted message, and the old one with it', async () => {
    const { queue, mails } = await attached({ background: false })
    const goBack = await handled(queue, mails)
    await accept(queue, mails)
    goBack()
    await mails.drain()
    expect(await mails.cancel('a')).to.equal(true)
    expect(queue.messages.has('a')).to.equal(false)
    await mails.drain()
    expect(await mails.get('a')).to.include({ state: 'removed' })
  })
})
