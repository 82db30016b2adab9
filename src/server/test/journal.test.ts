import { expect } from 'chai'
import { sql } from 'kysely'
import { ConnectionError, QueueFullError, type StoredRawMessage } from 'redelayed'
import { createJournal, JournalError, type Journal, type JournalOptions, type JournalQueue } from '../index.js'
import { JournalDatabase } from '../database/database.js'
import { parseJournalUrl } from '../config/journal-options.js'
import { AttachedQueue } from '../journal/attached-queue.js'
import { Drain } from '../journal/drain.js'
import { openJournal, type FaultPoints } from '../journal/journal.js'
import { Positions } from '../journal/positions.js'
import type { RestoreProgress } from '../journal/repair.js'
import { writersOf } from '../journal/rows.js'
import { pause } from '../pause.js'
import { DATABASES, startOrSkip, statement, type TestServer } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { FakeQueue, NEVER_PRUNED } from './support/fake-queue.js'

/** One of its messages is polled and fails at each read. */
class RestlessQueue extends FakeQueue {
  override async getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    if (this.messages.has('busy')) {
      this.clock += 1
      this.poll('busy')
      this.fail('busy', 'no', 0)
    }
    return super.getAllRaw(ids)
  }
}

/** Bytes as a SQL literal. */
function bytesIn({ kind }: TestServer, text: string): string {
  const hex = Buffer.from(text).toString('hex')
  return kind === 'postgres' ? `'\\x${hex}'::bytea` : `x'${hex}'`
}

for (const database of DATABASES) {
  const [name] = database
  describe(`the journal in ${name}`, function () {
    this.timeout(30_000)
    let server: TestServer
    let url: string
    const open: Journal[] = []

    before(async function () {
      server = await startOrSkip(this, database)
    })
    after(async () => {
      await server?.stop()
    })
    beforeEach(async () => {
      url = await server.fresh()
    })
    afterEach(async () => {
      await Promise.all(open.splice(0).map((journal) => journal.close()))
    })

    /** Its background work is rare, so that the tests decide when it looks. */
    async function make(options: JournalOptions = {}, points: FaultPoints = {}): Promise<Journal> {
      const journal = await openJournal({ url, adoptAfterMs: 60_000, ...NEVER_PRUNED, ...options }, points)
      open.push(journal)
      return journal
    }

    async function attached(
      queue = new FakeQueue('mails'),
      options: JournalOptions = {},
      points: FaultPoints = {},
    ): Promise<{ journal: Journal; queue: FakeQueue; mails: JournalQueue<string> }> {
      const journal = await make(options, points)
      const mails = await journal.attach<string>(queue)
      await eventually(() =>
        queue.readChanges({ id: '0-0', epoch: null }, 1).then(({ status }) => expect(status).to.equal('ok')),
      )
      return { journal, queue, mails }
    }

    async function saidBy(mails: JournalQueue<string>): Promise<string[]> {
      const said: string[] = []
      for await (const { id, what } of mails.verify()) said.push(`${id} ${what}`)
      return said.sort()
    }

    async function stateOf(mails: JournalQueue<string>, id: string): Promise<string | undefined> {
      await mails.drain()
      return (await mails.get(id))?.state
    }

    it('has news when Redis went back to an end that SQL had before', async () => {
      const database = await JournalDatabase.open(parseJournalUrl(url), { migrate: true })
      try {
        const queue = new FakeQueue('mails')
        const mails = new AttachedQueue(queue) as AttachedQueue
        const drain = new Drain(database, new Positions(database), writersOf(database))
        await drain.run(mails)
        await queue.addMany([{ id: 'a', payload: 'x' }])
        await drain.run(mails)
        await drain.run(mails)
        expect(await drain.hasNews(mails), 'nothing has happened').to.equal(false)
        const goBack = queue.snapshot()
        queue.clock += 10
        await queue.addMany([{ id: 'b', payload: 'y' }])
        await drain.run(mails)
        goBack()
        expect(await drain.hasNews(mails)).to.equal(true)
        expect(await drain.run(mails)).to.include({ hasForgotten: true })
      } finally {
        await database.close()
      }
    })

    it('has a dead letter before it knows the message as dead', async () => {
      const database = await JournalDatabase.open(parseJournalUrl(url), { migrate: true })
      try {
        const queue = Object.assign(new FakeQueue('mails'), { deadLettersName: 'mails:dead' })
        const dead = new FakeQueue('mails:dead')
        const deadLetters = new AttachedQueue(dead, { isForDeadLetters: true }) as AttachedQueue
        const mails = new AttachedQueue(queue, { deadLetters }) as AttachedQueue
        const drain = new Drain(database, new Positions(database), writersOf(database))
        drain.add(deadLetters)
        const states = async (): Promise<string[]> => {
          const rows = await database.run((db) =>
            db.selectFrom('redelayed_messages').select(['queue', 'state']).orderBy('queue').execute(),
          )
          return rows.map((row) => `${Buffer.from(row.queue).toString()} ${row.state}`)
        }
        await drain.run(mails)
        await queue.addMany([{ id: 'a', payload: 'x' }])
        await drain.run(mails)
        queue.end('a', 'dead')
        await dead.addMany([{ id: 'a', payload: 'x' }])
        dead.isDown = true
        await drain.run(mails).catch(() => undefined)
        expect(await states()).to.deep.equal(['mails open'])
        dead.isDown = false
        await drain.run(mails)
        expect(await states()).to.deep.equal(['mails dead', 'mails:dead open'])
      } finally {
        await database.close()
      }
    })

    it('has the failures with which a dead letter came, also of one that died again under its id', async () => {
      const database = await JournalDatabase.open(parseJournalUrl(url), { migrate: true })
      try {
        const dead = new FakeQueue('mails:dead')
        const attachedDead = new AttachedQueue(dead, { isForDeadLetters: true }) as AttachedQueue
        const drain = new Drain(database, new Positions(database), writersOf(database))
        await drain.run(attachedDead)
        for (const reason of ['first', 'second']) {
          await dead.remove('a')
          await dead.addMany([{ id: 'a', payload: 'x' }])
          const failures = [{ attempt: 1, at: new Date(5), reason }]
          ;(dead.messages as Map<string, StoredRawMessage>).set('a', { ...dead.messages.get('a')!, failures })
          await drain.run(attachedDead)
          const [row] = await database.run((db) => db.selectFrom('redelayed_messages').select('failures').execute())
          expect(Buffer.from(row?.failures ?? []).toString(), reason).to.equal(`[[1,5,"${reason}"]]`)
        }
      } finally {
        await database.close()
      }
    })

    it('has the failures with which a dead letter came also if it failed once more before it was read', async () => {
      const database = await JournalDatabase.open(parseJournalUrl(url), { migrate: true })
      try {
        const dead = new FakeQueue('mails:dead')
        const attachedDead = new AttachedQueue(dead, { isForDeadLetters: true }) as AttachedQueue
        const drain = new Drain(database, new Positions(database), writersOf(database))
        await drain.run(attachedDead)
        await dead.addMany([{ id: 'a', payload: 'x' }])
        const failures = [{ attempt: 1, at: new Date(5), reason: 'before' }]
        ;(dead.messages as Map<string, StoredRawMessage>).set('a', { ...dead.messages.get('a')!, failures })
        dead.poll('a')
        dead.fail('a', 'after', 500)
        const read = dead.readChanges.bind(dead)
        // it fails after its changes were read and before they are written
        dead.readChanges = async (...args) => {
          const reading = await read(...args)
          dead.readChanges = read
          dead.poll('a')
          dead.fail('a', 'later', 500)
          return reading
        }
        await drain.run(attachedDead)
        await drain.run(attachedDead)
        const [row] = await database.run((db) => db.selectFrom('redelayed_messages').select('failures').execute())
        const known = `[[1,5,"before"],[1,${dead.clock},"after"],[2,${dead.clock},"later"]]`
        expect(Buffer.from(row?.failures ?? []).toString()).to.equal(known)
      } finally {
        await database.close()
      }
    })

    it('takes only those failures from Redis with which a message came, and the later ones from the changes', async () => {
      const { queue, mails } = await attached()
      const reasons = async (id: string): Promise<string[] | undefined> =>
        (await mails.get(id))?.failures.map(({ reason }) => reason)
      await queue.addMany([{ id: 'a', payload: 'x' }])
      queue.poll('a')
      // it fails after its changes were read and before they are written
      const read = queue.readChanges.bind(queue)
      queue.readChanges = async (...args) => {
        const reading = await read(...args)
        queue.readChanges = read
        queue.fail('a', 'later', 500)
        return reading
      }
      await mails.drain()
      await mails.drain()
      expect(await reasons('a')).to.deep.equal(['later'])
    })

    it('has a message before Redis does', async () => {
      let inSql: string | undefined
      let inRedis: boolean | undefined
      const queue = new FakeQueue('mails')
      const { mails } = await attached(
        queue,
        {},
        {
          afterCommit: async () => {
            inSql = (await mails.get('a'))?.state
            inRedis = queue.messages.has('a')
          },
        },
      )
      const accepted = await mails.add('hello', {
        id: 'a',
        delay: 5_000,
        priority: 7,
        headers: { from: 'ada' },
        timeToLive: 9_000,
      })
      expect([inSql, inRedis]).to.deep.equal(['accepted', false])
      expect(accepted).to.include({ id: 'a', outcome: 'added' })
      const message = queue.messages.get('a')
      expect(message).to.include({ dueAt: accepted.dueAt, priority: 7, expiresAt: accepted.dueAt + 9_000 })
      expect(await stateOf(mails, 'a')).to.equal('open')
      expect(await mails.get('a')).to.deep.include({
        headers: { from: 'ada' },
        payload: Buffer.from('hello'),
        attempts: 0,
      })
    })

    it('follows a message to its end', async () => {
      const { queue, mails } = await attached()
      await mails.add('x', { id: 'a' })
      queue.poll('a')
      queue.fail('a', 'no', 500)
      await mails.drain()
      expect(await mails.get('a')).to.include({ state: 'open', attempts: 1, dueAt: queue.clock + 500 })
      expect((await mails.get('a'))?.failures.map(({ reason }) => reason)).to.deep.equal(['no'])
      queue.poll('a')
      queue.end('a')
      expect(await stateOf(mails, 'a')).to.equal('handled')
      const flow = await mails.flow('a')
      expect(flow.map(({ change }) => change)).to.deep.equal(['added', 'polled', 'failed', 'polled', 'acknowledged'])
      expect(queue.released).to.equal(queue.stream.at(-1)?.position.id)
    })

    it('puts back everything that Redis has lost, as it was', async () => {
      const { journal, queue, mails } = await attached()
      const ids = Array.from({ length: 2_345 }, (_, n) => `m${n}`)
      await mails.addMany(
        ids.map((id, n) => ({ payload: `p${n}`, id, delay: n, priority: n % 10, headers: { n: String(n) } })),
      )
      queue.poll('m1')
      queue.fail('m1', 'no', 70_000)
      queue.poll('m2')
      queue.end('m2')
      await mails.drain()
      const before = new Map(queue.messages)
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      queue.wipe()
      await restored
      expect(queue.messages.size).to.equal(2_344)
      for (const [id, message] of before)
        expect(queue.messages.get(id), id).to.deep.equal({
          ...message,
          inFlight: false,
          payload: Buffer.from(message.payload),
        })
      const differences = []
      for await (const difference of mails.verify()) differences.push(difference)
      expect(differences).to.deep.equal([])
    })

    it('puts a message back with its group, and one that failed without a reason with that failure', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', group: 'tenant ä', delay: 60_000 })
      await queue.addMany([{ payload: 'y', id: 'b', group: 'tenant b' }])
      await mails.drain()
      queue.poll('b')
      queue.fail('b', '', 60_000)
      await mails.drain()
      expect([(await mails.get('a'))?.group, (await mails.get('b'))?.group]).to.deep.equal(['tenant ä', 'tenant b'])
      const before = new Map(queue.messages)
      for (const isEmpty of [true, false]) {
        const goBack = queue.snapshot()
        queue.clock += 10
        await mails.add('z', { id: `more ${isEmpty}`, group: 'tenant c', delay: 60_000 })
        await mails.drain()
        const restored = new Promise((resolve) => journal.once('restored', resolve))
        if (isEmpty) queue.wipe()
        else goBack()
        await restored
        expect(queue.messages.get(`more ${isEmpty}`)?.group).to.equal('tenant c')
      }
      for (const [id, message] of before) {
        const { group, failures, priority } = message
        expect(queue.messages.get(id), id).to.deep.include({ group, failures, priority })
      }
      expect(await saidBy(mails)).to.deep.equal([])
    })

    it('gives a message its group if Redis has an older one of its id without it', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      const date = new Date(queue.messages.get('a')?.dueAt ?? NaN)
      const goBack = queue.snapshot()
      queue.clock += 10
      await queue.remove('a')
      await mails.drain()
      await mails.add('x', { id: 'a', group: 'tenant', date })
      await mails.drain()
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      goBack()
      await restored
      expect(queue.messages.get('a')?.group).to.equal('tenant')
    })

    it('gives a Redis that went back in time what it lacks, and removes what was final', async () => {
      const { journal, queue, mails } = await attached()
      await mails.addMany(['done', 'later', 'stays'].map((id) => ({ payload: id, id, delay: 60_000 })))
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      queue.end('done')
      queue.reschedule('later', queue.clock + 999_000)
      await mails.add('new', { id: 'new', delay: 60_000 })
      await mails.drain()
      const due = queue.messages.get('later')?.dueAt
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      goBack()
      await restored
      expect([...queue.messages.keys()].sort()).to.deep.equal(['later', 'new', 'stays'])
      expect(queue.messages.get('later')?.dueAt).to.equal(due)
    })

    it('notices a Redis that went back and has counted on since', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'old', delay: 60_000 })
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      await mails.add('x', { id: 'lost', delay: 60_000 })
      await mails.drain()
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      queue.clock += 10
      goBack()
      await queue.addMany([{ payload: 'y', id: 'other' }])
      await restored
      expect([...queue.messages.keys()].sort()).to.deep.equal(['lost', 'old', 'other'])
      expect(await stateOf(mails, 'other')).to.equal('open')
    })

    it('has a failed attempt once that failed again in a Redis that went back in time', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a' })
      await mails.drain()
      const goBack = queue.snapshot()
      const fail = (reason: string): void => {
        queue.clock += 10
        queue.poll('a')
        queue.fail('a', reason, 60_000)
      }
      fail('before')
      await mails.drain()
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      goBack()
      queue.clock += 120_000
      fail('again')
      await restored
      await mails.drain()
      expect((await mails.get('a'))?.failures.map(({ attempt, reason }) => [attempt, reason])).to.deep.equal([
        [1, 'again'],
      ])
      expect(await saidBy(mails)).to.deep.equal([])
    })

    /** What SQL knows and Redis forgets, and what happens in Redis before the journal has put it back. */
    const REWOUND: readonly (readonly [
      what: string,
      forgotten: (queue: FakeQueue) => void,
      since: (queue: FakeQueue) => void,
    ])[] = [
      ['failed, and is rescheduled', fails, (queue) => queue.reschedule('a', queue.clock + 70_000)],
      ['failed, and is delivered', fails, (queue) => queue.poll('a')],
      [
        'failed, and is delivered twice, then fails',
        fails,
        (queue) => {
          queue.poll('a')
          fails(queue)
        },
      ],
      ['was updated, and fails', (queue) => queue.update('a', 'newer'), fails],
      ['was handled, and is delivered', (queue) => queue.end('a'), (queue) => queue.poll('a')],
      [
        'was updated and failed, and is updated, then fails',
        (queue) => {
          queue.update('a', 'newer')
          fails(queue)
        },
        (queue) => {
          queue.update('a', 'other')
          fails(queue)
        },
      ],
    ]

    function fails(queue: FakeQueue): void {
      queue.poll('a')
      queue.fail('a', `at ${queue.clock}`, 60_000)
    }

    for (const [what, forgotten, since] of REWOUND)
      for (const withFailures of [false, true])
        it(`agrees with a Redis that went back in time on a message that ${what}${withFailures ? ', after a failure' : ''}`, async () => {
          const { journal, queue, mails } = await attached()
          await mails.add('x', { id: 'a', timeToLive: 900_000 })
          if (withFailures) fails(queue)
          await mails.drain()
          const goBack = queue.snapshot()
          queue.clock += 10
          forgotten(queue)
          await mails.drain()
          const restored = new Promise((resolve) => journal.once('restored', resolve))
          goBack()
          queue.clock += 120_000
          since(queue)
          await restored
          await mails.drain()
          expect(await saidBy(mails)).to.deep.equal([])
        })

    it('does not bring a handled message back when an older change comes late', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a' })
      await mails.drain()
      const goBack = queue.snapshot()
      queue.clock += 10
      queue.poll('a')
      queue.end('a')
      await mails.drain()
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      goBack()
      await restored
      expect(queue.messages.has('a')).to.equal(false)
      expect(['handled', 'removed']).to.include(await stateOf(mails, 'a'))
    })

    it('adds a message that was accepted by an instance that died before it could add it', async () => {
      const queue = new FakeQueue('mails')
      const { journal, mails } = await attached(
        queue,
        { sweepMs: 100 },
        {
          afterCommit: () => {
            throw new Error('killed')
          },
        },
      )
      const failed = await mails.add('x', { id: 'a', delay: 5 }).catch((error: unknown) => error)
      expect(failed).to.be.an('error')
      expect(queue.messages.has('a')).to.equal(false)
      const adopted = new Promise((resolve) => journal.once('adopted', (_, count) => resolve(count)))
      queue.clock += 65_000
      expect(await adopted).to.equal(1)
      expect(await stateOf(mails, 'a')).to.equal('open')
    })

    it('does not add a message again that was handled before the change stream was read', async () => {
      const { queue, mails, journal } = await attached(undefined, { sweepMs: 100 })
      let adopted = 0
      journal.on('adopted', (_, count) => (adopted += count))
      await mails.add('x', { id: 'a' })
      queue.poll('a')
      queue.end('a')
      queue.clock += 65_000
      await mails.drain()
      expect(await stateOf(mails, 'a')).to.equal('handled')
      expect([adopted, queue.messages.size]).to.deep.equal([0, 0])
    })

    it('accepts a message while Redis is down, and adds it when Redis is back', async () => {
      const { queue, mails, journal } = await attached(undefined, { sweepMs: 100 })
      queue.addMany = async () => {
        throw new ConnectionError('down', 'not-applied')
      }
      expect(await mails.add('x', { id: 'a' })).to.include({ outcome: 'journalled' })
      const adopted = new Promise((resolve) => journal.once('adopted', resolve))
      queue.clock += 65_000
      await adopted
      expect(queue.messages.has('a')).to.equal(true)
    })

    it('does not add a message later that Redis refused', async () => {
      const { queue, mails } = await attached()
      queue.addMany = async () => {
        throw new QueueFullError()
      }
      const error = await mails.add('x', { id: 'a' }).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'ERR_QUEUE_FULL' })
      expect((await mails.get('a'))?.state).to.equal('refused')
    })

    it('keeps the message of an id, and gives the id to a new one when that was handled', async () => {
      const { queue, mails } = await attached()
      await mails.add('one', { id: 'a', delay: 60_000 })
      expect(await mails.add('two', { id: 'a' })).to.include({ outcome: 'kept' })
      await mails.drain()
      expect(Buffer.from((await mails.get('a'))!.payload).toString()).to.equal('one')
      queue.end('a')
      // not drained: SQL takes it for open
      expect(await mails.add('three', { id: 'a' })).to.include({ outcome: 'added' })
      expect(Buffer.from((await mails.get('a'))!.payload).toString()).to.equal('three')
      expect(await stateOf(mails, 'a')).to.equal('open')
    })

    it('does not bring back a cancelled message', async () => {
      const { journal, queue, mails } = await attached()
      await mails.add('x', { id: 'a', delay: 60_000 })
      expect(await mails.cancel('a')).to.equal(true)
      expect((await mails.get('a'))?.state).to.equal('removed')
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      queue.wipe()
      await restored
      expect(queue.messages.size).to.equal(0)
      expect(await mails.cancel('a')).to.equal(false)
    })

    it('does not cancel a message that a consumer has', async () => {
      const { queue, mails } = await attached()
      await mails.add('x', { id: 'a' })
      queue.poll('a')
      expect(await mails.cancel('a')).to.equal(false)
      expect(await stateOf(mails, 'a')).to.equal('open')
    })

    it('knows that all messages were cleared', async () => {
      const { queue, mails } = await attached()
      await mails.addMany(['a', 'b'].map((id) => ({ payload: id, id })))
      queue.clear()
      await mails.add('x', { id: 'c' })
      expect([await stateOf(mails, 'a'), await stateOf(mails, 'b'), await stateOf(mails, 'c')]).to.deep.equal([
        'removed',
        'removed',
        'open',
      ])
    })

    it('follows Redis with the mode async', async () => {
      const { queue, mails, journal } = await attached(undefined, { mode: 'async' })
      const addMany = queue.addMany.bind(queue)
      let before: unknown
      queue.addMany = async (items) => {
        before = await mails.get('a')
        return addMany(items)
      }
      await mails.add('x', { id: 'a', delay: 60_000, headers: { h: '1' } })
      expect(before).to.equal(null)
      expect(await stateOf(mails, 'a')).to.equal('open')
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      queue.wipe()
      await restored
      expect(queue.messages.get('a')).to.deep.include({ headers: { h: '1' }, payload: Buffer.from('x') })
    })

    it('asks Redis for payloads that the stream does not have', async () => {
      const queue = new FakeQueue('mails')
      queue.withPayloads = false
      const { mails } = await attached(queue, { mode: 'async' })
      await mails.add('x', { id: 'a', delay: 60_000 })
      await mails.drain()
      expect((await mails.get('a'))?.payload).to.deep.equal(Buffer.from('x'))
    })

    it('takes ids for different that differ in case, in spaces at the end, or in a zero byte', async () => {
      const { mails } = await attached()
      const ids = ['a', 'A', 'a ', 'a\0', 'ä', 'Ä', 'a'.repeat(512)]
      await mails.addMany(ids.map((id) => ({ payload: id, id, delay: 60_000 })))
      await mails.drain()
      for (const id of ids) expect(Buffer.from((await mails.get(id))!.payload).toString(), id).to.equal(id)
    })

    it('takes payloads of 16 MiB', async () => {
      const { mails } = await attached()
      const payload = 'x'.repeat(16 * 1024 * 1024)
      await mails.add(payload, { id: 'large', delay: 60_000 })
      expect((await mails.get('large'))?.payload.length).to.equal(payload.length)
    })

    it('drains in two instances at once, and has each change once', async function () {
      if (server.kind === 'sqlite') this.skip() // one process has the file
      const { queue, mails } = await attached()
      const other = await (await make()).attach<string>(queue)
      const ids = Array.from({ length: 500 }, (_, n) => `m${n}`)
      for (const id of ids) {
        await queue.addMany([{ payload: id, id }])
        queue.poll(id)
        queue.end(id)
      }
      await Promise.all([mails.drain(), other.drain(), mails.drain()])
      for (const id of [ids[0]!, ids[250]!, ids[499]!]) {
        expect((await mails.flow(id)).map(({ change }) => change)).to.deep.equal(['added', 'polled', 'acknowledged'])
        expect((await mails.get(id))?.state).to.equal('handled')
      }
    })

    it('continues with a restore that was interrupted', async () => {
      let pages = 0
      const queue = new FakeQueue('mails')
      const first = await attached(
        queue,
        {},
        {
          afterPage: () => {
            if (++pages === 2) throw new Error('killed')
          },
        },
      )
      await first.mails.addMany(Array.from({ length: 3_500 }, (_, n) => ({ payload: 'x', id: `m${n}`, delay: 60_000 })))
      await first.mails.drain()
      const killed = new Promise((resolve) => first.journal.once('error', resolve))
      queue.wipe()
      await killed
      const restored = new Promise((resolve) => first.journal.once('restored', resolve))
      await restored
      expect(queue.messages.size).to.equal(3_500)
    })

    it('says during a restore how far it is, its rate, and the time left', async () => {
      const pageMs = 200
      const queue = new FakeQueue('mails')
      // a bound for the rate
      const { journal, mails } = await attached(queue, {}, { afterPage: () => pause(pageMs) })
      await mails.addMany(Array.from({ length: 2_500 }, (_, n) => ({ payload: 'x', id: `m${n}`, delay: 60_000 })))
      await mails.drain()
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      const said: { readonly progress: RestoreProgress; readonly seconds: number }[] = []
      const wipedAt = performance.now()
      journal.on('restoring', (progress) => said.push({ progress, seconds: (performance.now() - wipedAt) / 1000 }))
      queue.wipe()
      await restored
      const open = said.filter(({ progress }) => progress.stage === 'open')
      // further pages are restored while the first one is noted
      expect(open).to.have.length(3) // a page of 1,000 each
      for (const { progress } of open) expect(progress.restored).to.equal(progress.checked)
      expect(open[0]?.progress.checked).to.be.oneOf([1_000, 2_000, 2_500])
      open.forEach(({ progress, seconds }, pages) => {
        const { checked, total, perSecond, left } = progress
        expect(total).to.equal(2_500)
        // it began after the loss, and waits after each page
        expect(perSecond).to.be.at.least(Math.floor(checked / seconds))
        if (pages > 0) expect(perSecond).to.be.at.most((checked / (pages * pageMs)) * 1_050)
        const expected = ((2_500 - checked) / perSecond) * 1_000
        expect(left).to.be.closeTo(expected, 1 + expected / 100)
      })
      expect(open.at(-1)?.progress).to.include({ checked: 2_500, restored: 2_500, left: 0 })
    })

    it('restores by hand: some messages, also expired ones, or as a dry run', async () => {
      const { queue, mails } = await attached()
      await mails.addMany(['a', 'b', 'c'].map((id) => ({ payload: id, id, delay: 60_000, timeToLive: 5 })))
      queue.end('c', 'expired')
      await mails.drain()
      const gone = ['a', 'b'].map((id) => [id, (queue.messages as Map<string, never>).delete(id)])
      expect(gone).to.have.length(2)
      expect(await mails.restore({ dryRun: true })).to.deep.equal({ checked: 2, restored: 2, refused: 0 })
      expect(queue.messages.size).to.equal(0)
      expect(await mails.restore({ ids: ['a', 'nothing'] })).to.deep.equal({ checked: 1, restored: 1, refused: 0 })
      expect(await mails.restore()).to.deep.equal({ checked: 2, restored: 1, refused: 0 })
      expect(await mails.restore({ expired: true })).to.deep.equal({ checked: 3, restored: 1, refused: 0 })
      expect(queue.messages.get('c')?.expiresAt).to.equal(null)
    })

    it('reports what differs', async () => {
      const { queue, mails } = await attached()
      await mails.addMany(['a', 'b', 'c'].map((id) => ({ payload: id, id, delay: 60_000 })))
      await mails.drain()
      const messages = queue.messages as Map<
        string,
        typeof queue.messages extends ReadonlyMap<string, infer M> ? M : never
      >
      messages.delete('a')
      messages.set('b', { ...messages.get('b')!, dueAt: 5 })
      messages.set('d', { ...messages.get('c')!, id: 'd' })
      expect(await saidBy(mails)).to.deep.equal(['a missing in Redis', 'b due time', 'd missing in SQL'])
    })

    it('reports each differing part of a message once', async () => {
      const { queue, mails } = await attached()
      const all = { headers: { from: 'ada' }, timeToLive: 90_000, deliveryLimit: 3, delay: 60_000 }
      const ids = ['priority', 'group', 'attempts', 'failures', 'headers', 'expiry', 'delivery limit', 'payload']
      await mails.addMany([...ids, 'same'].map((id) => ({ ...all, payload: 'x', id, group: 'a' })))
      for (const id of ['failures', 'same']) {
        queue.poll(id)
        queue.fail(id, 'no', 60_000)
      }
      await mails.drain()
      expect(await saidBy(mails)).to.deep.equal([])
      const change = (id: string, part: Partial<StoredRawMessage>): void => {
        ;(queue.messages as Map<string, StoredRawMessage>).set(id, { ...queue.messages.get(id)!, ...part })
      }
      change('priority', { priority: 4 })
      change('group', { group: 'b' })
      change('attempts', { attempts: 2 })
      change('failures', { failures: [{ attempt: 1, at: new Date(queue.clock), reason: 'other' }] })
      change('headers', { headers: { from: 'bob' } })
      change('expiry', { expiresAt: null })
      change('delivery limit', { deliveryLimit: 4 })
      change('payload', { payload: Buffer.from('y') })
      expect(await saidBy(mails)).to.deep.equal(ids.map((id) => `${id} ${id}`).sort())
    })

    it('reports rows that no journal has written, and messages never known as added', async () => {
      const { journal, mails } = await attached()
      await mails.addMany(['bad', 'late'].map((id) => ({ payload: id, id, delay: 600_000 })))
      await mails.drain()
      const update = async (set: string, id: string): Promise<void> => {
        const text = `update redelayed_messages set ${set} where id = ${bytesIn(server, id)}`
        await journal.database?.run((db) => sql.raw(text).execute(db))
      }
      await update(`headers = ${bytesIn(server, '{')}`, 'bad')
      await update("state = 'accepted'", 'late')
      expect(await saidBy(mails)).to.deep.equal(['bad unreadable in SQL'])
      // twice the 60 s after which it would be added
      await update('accepted_at = accepted_at - 121000', 'late')
      expect(await saidBy(mails)).to.deep.equal(['bad unreadable in SQL', 'late not known as added in SQL'])
    })

    it('reports no difference for a message that changes while it is compared', async () => {
      const { queue, mails } = await attached(new RestlessQueue('mails'))
      await mails.addMany(['busy', 'broken'].map((id) => ({ payload: id, id })))
      await mails.drain()
      const messages = queue.messages as Map<string, StoredRawMessage>
      messages.set('broken', { ...messages.get('broken')!, priority: 5 })
      expect(await saidBy(mails)).to.deep.equal(['broken priority'])
      const notSettled: string[] = []
      const said = []
      for await (const { id } of mails.verify({ onNotSettled: (id) => notSettled.push(id) })) said.push(id)
      expect([said, notSettled]).to.deep.equal([['broken'], ['busy']])
    })

    it('removes by itself messages that were final for long enough, some at a time', async () => {
      const { journal, queue, mails } = await attached()
      const ids = Array.from({ length: 2_500 }, (_, n) => `m${n}`)
      await mails.addMany(ids.map((id) => ({ payload: id, id, delay: 60_000 })))
      await mails.add('x', { id: 'open', delay: 60_000 })
      await queue.remove(...ids)
      await mails.drain()
      await journal.close()
      // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with its object
      const { transaction } = JournalDatabase.prototype
      let transactions = 0
      JournalDatabase.prototype.transaction = function (
        this: JournalDatabase,
        ...args: Parameters<typeof transaction>
      ) {
        transactions++
        return transaction.apply(this, args)
      } as typeof transaction
      try {
        const next = await make({ retentionMs: 1_000 })
        const pruned = await next.attach<string>(queue)
        await eventually(async () => expect(await pruned.get('m2499')).to.equal(null))
        await eventually(async () => expect(await pruned.flow('m2499')).to.deep.equal([]))
        // 3 with at most 1,000 messages, and 6 with at most 1,000 of their 5,001 changes
        expect(transactions).to.be.at.least(9)
        expect((await pruned.get('open'))?.state).to.equal('open')
      } finally {
        JournalDatabase.prototype.transaction = transaction
      }
    })

    it('removes only messages that were final for long enough', async () => {
      const { journal, queue, mails } = await attached()
      await mails.addMany(['a', 'b'].map((id) => ({ payload: id, id, delay: 60_000 })))
      queue.end('a')
      await mails.drain()
      expect(await journal.prune(0)).to.deep.equal({ messages: 1, flow: 3 })
      expect([await mails.get('a'), (await mails.get('b'))?.state]).to.deep.equal([null, 'open'])
    })

    it('refuses tables that a newer version has changed', async () => {
      await (await make()).close()
      await statement(url, "insert into redelayed_migrations (name, timestamp) values ('9999-later', '2030')")
      const error = await createJournal({ url }).catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(JournalError).and.include({ code: 'ERR_JOURNAL_SCHEMA_NEWER' })
      expect((error as Error).message).to.include('(9999-later); install that version, nothing was changed')
    })

    it('does not make its tables if it may not', async () => {
      const error = await createJournal({ url, migrate: false }).catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(JournalError).and.include({ code: 'ERR_JOURNAL_SCHEMA_OLDER' })
      expect((error as Error).message).to.include('run "redelayed-server journal migrate"')
    })

    it('finds messages by their business key, accepted or read from the change stream', async () => {
      const { queue, mails } = await attached()
      const headers = { 'redelayed-biz-key': 'order 1/ü' }
      await mails.addMany(['c', 'a', 'b'].map((id) => ({ payload: id, id, delay: 60_000, headers })))
      await queue.addMany([{ id: 'd', payload: 'd', delay: 60_000, headers }])
      await mails.addMany([{ payload: 'x', id: 'x', delay: 60_000, headers: { 'redelayed-biz-key': 'order 2' } }])
      await mails.addMany([{ payload: 'y', id: 'y', delay: 60_000 }])
      await mails.drain()
      expect(await mails.idsWithBizKey('order 1/ü', null, 100)).to.deep.equal(['a', 'b', 'c', 'd'])
      expect(await mails.idsWithBizKey('order 1/ü', 'a', 2)).to.deep.equal(['b', 'c'])
      expect(await mails.idsWithBizKey('order', null, 100)).to.deep.equal([])
      await mails.cancel('a')
      await mails.drain()
      expect(await mails.idsWithBizKey('order 1/ü', null, 2)).to.deep.equal(['a', 'b'])
    })

    it('brings the tables of an earlier version up to date with their messages', async () => {
      const { mails, journal } = await attached()
      await mails.add('x', { id: 'before', delay: 60_000 })
      await journal.close()
      const where = server.kind === 'mysql' ? ' on redelayed_messages' : ''
      await statement(url, `drop index redelayed_messages_biz_key${where}`)
      await statement(url, 'alter table redelayed_messages drop column biz_key')
      await statement(url, 'alter table redelayed_messages drop column message_group')
      await statement(url, "delete from redelayed_migrations where name >= '0003'")
      const again = await attached()
      expect(Buffer.from((await again.mails.get('before'))!.payload).toString()).to.equal('x')
      await again.mails.add('y', { id: 'after', delay: 60_000, headers: { 'redelayed-biz-key': 'k' } })
      expect(await again.mails.idsWithBizKey('k', null, 10)).to.deep.equal(['after'])
      await again.mails.add('z', { id: 'grouped', delay: 60_000, group: 'a' })
      expect((await again.mails.get('grouped'))?.group).to.equal('a')
    })

    it('does all of a transaction or nothing', async () => {
      await (await make()).close()
      const database = new JournalDatabase(parseJournalUrl(url))
      const failed = await database
        .transaction(async (transaction) => {
          await sql`delete from redelayed_migrations`.execute(transaction)
          throw new Error('no')
        })
        .catch((error: unknown) => error)
      expect(failed).to.include({ code: 'ERR_JOURNAL_QUERY' })
      expect(await database.pendingMigrations()).to.deep.equal([])
      await database.close()
    })
  })
}
