import { expect } from 'chai'
import { Redis } from 'ioredis'
import { createClient, type RedelayedClient, type ReliableQueue, type StoredRawMessage } from 'redelayed'
import type { Journal, JournalOptions, JournalQueue } from '../index.js'
import { openJournal, type FaultPoints } from '../journal/journal.js'
import { DATABASES, startOrSkip, type TestServer } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'

const HOUR = 3_600_000

type Mails = JournalQueue<string>

for (const database of DATABASES) {
  const [name] = database
  describe(`the journal between Redis and ${name}`, function () {
    this.timeout(60_000)
    let server: TestServer
    let url: string
    const ends: (() => Promise<unknown>)[] = []

    before(async function () {
      server = await startOrSkip(this, database)
    })
    after(() => server?.stop())
    beforeEach(async () => {
      url = await server.fresh()
    })
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end()
    })

    async function redis(...args: string[]): Promise<LosableRedis> {
      const one = await LosableRedis.start(args)
      ends.push(() => one.stop())
      return one
    }

    function connect({ url: of }: LosableRedis, commandTimeout = 1_000): RedelayedClient {
      const client = createClient({ url: of, commandTimeout })
      client.on('error', () => undefined)
      ends.push(() => client.shutdown())
      return client
    }

    async function open(options: JournalOptions = {}, points: FaultPoints = {}): Promise<Journal> {
      const journal = await openJournal({ url, sweepMs: 200, adoptAfterMs: 30_000, ...options }, points)
      ends.push(() => journal.close())
      return journal
    }

    async function set(
      of: LosableRedis,
      options: JournalOptions = {},
      points: FaultPoints = {},
      commandTimeout?: number,
    ): Promise<{ client: RedelayedClient; queue: ReliableQueue<string>; journal: Journal; mails: Mails }> {
      const client = connect(of, commandTimeout)
      const queue = client.getReliableQueue<string>('mails')
      const journal = await open(options, points)
      return { client, queue, journal, mails: await journal.attach(queue) }
    }

    /** Resolves when all of these were restored after the call. */
    function restored(journal: Journal, ...names: string[]): Promise<void> {
      const left = new Set(names)
      return new Promise((resolve) => {
        journal.on('restored', (queue) => {
          left.delete(queue)
          if (left.size === 0) resolve()
        })
      })
    }

    /** Leaves out the times of failed attempts: SQL has them from the change stream, where they can be a millisecond later. */
    const withoutFlight = (message: StoredRawMessage): unknown => ({
      ...message,
      inFlight: false,
      payload: Buffer.from(message.payload).toString(),
      failures: message.failures.map(({ attempt, reason }) => [attempt, reason]),
    })

    async function contentOf(queue: ReliableQueue<string>): Promise<Map<string, unknown>> {
      const found = new Map<string, unknown>()
      for await (const page of queue.listAllRaw()) for (const each of page) found.set(each.id, withoutFlight(each))
      return found
    }

    async function differences(mails: Mails): Promise<unknown[]> {
      const found: unknown[] = []
      for await (const each of mails.verify()) found.push(each)
      return found
    }

    /** Adds messages in all states, with handled, cancelled and dead ones. */
    async function fill(queue: ReliableQueue<string>, mails: Mails): Promise<void> {
      await mails.addMany(
        Array.from({ length: 1_500 }, (_, n) => ({
          payload: `p${n}`,
          id: `m${n}`,
          delay: HOUR + n,
          priority: n % 10,
          headers: { n: String(n), ä: 'ö' },
          ...(n % 3 === 0 && { timeToLive: HOUR }),
          ...(n % 5 === 0 && { deliveryLimit: 7 }),
        })),
      )
      expect(await mails.cancel('m7')).to.equal(true)
      await queue.reschedule('m8', 2 * HOUR, { priority: 1 })
      await queue.updatePayload('m9', 'new')
      await mails.addMany(['handled', 'failed', 'dead', 'held'].map((id) => ({ payload: id, id })))
      // a poll can end before it has found all of them
      for (let taken = 0; taken < 4;) {
        for (const message of await queue.pollMany({ count: 4 - taken, timeout: 5_000, visibilityTimeout: HOUR })) {
          taken++
          if (message.id === 'handled') await message.acknowledge()
          if (message.id === 'failed') await queue.negativeAcknowledge([message], { delay: HOUR, error: 'no luck' })
          if (message.id === 'dead') await queue.negativeAcknowledge([message], { reject: true, error: 'never' })
        }
      }
    }

    it('follows adds, cancels, acknowledgements and dead letters', async () => {
      const { queue, mails, journal } = await set(await redis())
      await fill(queue, mails)
      await mails.drain()
      const dead = await journal.attach(queue.deadLetters)
      await dead.drain()
      const states: Record<string, string | undefined> = {}
      for (const id of ['m0', 'm7', 'handled', 'failed', 'dead', 'held']) states[id] = (await mails.get(id))?.state
      expect(states).to.deep.equal({
        ...{ m0: 'open', m7: 'removed', handled: 'handled', failed: 'open', dead: 'dead', held: 'open' },
      })
      expect(await dead.get('dead')).to.include({ state: 'open' })
      expect((await mails.flow('failed')).map(({ change, error }) => [change, error])).to.deep.equal([
        ['added', null],
        ['polled', null],
        ['failed', 'Error: no luck'],
      ])
      expect([await differences(mails), await differences(dead)]).to.deep.equal([[], []])
    })

    it('puts everything back into a Redis that was killed and lost its data, as it was', async () => {
      const one = await redis()
      const { queue, mails, journal } = await set(one, { adoptAfterMs: 12_000 })
      await fill(queue, mails)
      await Promise.all([mails.drain(), (await journal.attach(queue.deadLetters)).drain()])
      const before = await contentOf(queue)
      const deadBefore = await contentOf(queue.deadLetters)
      expect(before.size).to.equal(1_501)
      const isBack = restored(journal, queue.name, queue.deadLetters.name)
      await one.kill()
      expect(await mails.add('late', { id: 'late', delay: HOUR })).to.include({ outcome: 'journalled' })
      await one.startEmpty()
      await isBack
      await eventually(async () => expect(await queue.contains('late')).to.equal(true))
      await mails.drain()
      const after = await contentOf(queue)
      expect(after.delete('late')).to.equal(true)
      expect(after).to.deep.equal(before)
      expect(await contentOf(queue.deadLetters)).to.deep.equal(deadBefore)
      expect([await differences(mails)]).to.deep.equal([[]])
      await queue.reschedule('m3', 0)
      const [message] = await queue.pollMany({ count: 1, timeout: 5_000 })
      expect(message).to.include({ id: 'm3', payload: 'p3' })
      expect(await message?.acknowledge()).to.equal(true)
      await mails.drain()
      expect((await mails.get('m3'))?.state).to.equal('handled')
    })

    for (const [what, args] of [
      ['an old snapshot', []],
      ['a log that lacks the last moments', ['--appendonly', 'yes', '--appendfsync', 'everysec']],
    ] as const) {
      it(`gives a Redis with ${what} what it lacks, and removes what was handled since`, async () => {
        const one = await redis(...args)
        const { queue, mails, journal } = await set(one)
        const raw = new Redis(one.url)
        ends.push(async () => raw.disconnect())
        raw.on('error', () => undefined)
        await mails.addMany(['stays', 'handled', 'cancelled', 'later'].map((id) => ({ payload: id, id, delay: HOUR })))
        await mails.drain()
        await raw.save()
        const isWritten = async (): Promise<void> => {
          expect(await raw.info('persistence')).to.match(/aof_enabled:0|aof_buffer_length:0\r/)
        }
        await eventually(isWritten)
        one.keepFiles('old')
        await mails.cancel('cancelled')
        await queue.reschedule('later', 2 * HOUR)
        await queue.reschedule('handled', 0)
        await (await queue.poll({ timeout: 5_000 }))?.acknowledge()
        await mails.add('new', { id: 'new', delay: HOUR })
        await mails.drain()
        const before = await contentOf(queue)
        expect([...before.keys()].sort()).to.deep.equal(['later', 'new', 'stays'])
        const isBack = restored(journal, queue.name)
        await one.kill()
        await one.startWith('old')
        await isBack
        await mails.drain()
        expect(await contentOf(queue)).to.deep.equal(before)
        expect(await differences(mails)).to.deep.equal([])
        expect([(await mails.get('handled'))?.state, (await mails.get('cancelled'))?.state]).to.deep.equal([
          'handled',
          'removed',
        ])
      })
    }

    it('gives a Redis with an old snapshot the current dead letters, whatever has happened to them since', async () => {
      const one = await redis()
      const { queue, mails, journal } = await set(one)
      const dead = await journal.attach(queue.deadLetters)
      const raw = new Redis(one.url)
      ends.push(async () => raw.disconnect())
      raw.on('error', () => undefined)
      const die = async (...ids: string[]): Promise<void> => {
        for (const id of ids) expect(await queue.reschedule(id, 0), id).to.equal(true)
        for (let left = ids.length; left > 0;) {
          const taken = await queue.pollMany({ count: left, timeout: 5_000, visibilityTimeout: HOUR })
          await queue.negativeAcknowledge(taken, { reject: true, error: 'never' })
          left -= taken.length
        }
      }
      const redrive = async (...ids: string[]): Promise<void> => {
        expect(await queue.deadLetters.move({ to: queue, ids })).to.equal(ids.length)
        for (const id of ids) expect(await queue.reschedule(id, 2 * HOUR), id).to.equal(true)
      }
      const remove = async (...ids: string[]): Promise<void> => {
        expect(await queue.deadLetters.remove(...ids)).to.equal(ids.length)
      }
      const [alive, buried] = [
        ['dies', 'dies held', 'dies, redriven', 'dies, deleted'],
        ['stays', 'held', 'held, fails', 'redriven', 'redriven, handled', 'redriven, dies', 'deleted'],
      ]
      await mails.addMany([...alive, ...buried].map((id) => ({ payload: id, id, delay: HOUR, headers: { id } })))
      await die(...buried)
      await queue.reschedule('dies held', 0)
      const [held] = await queue.pollMany({ count: 1, timeout: 5_000, visibilityTimeout: HOUR })
      expect(held?.id).to.equal('dies held')
      // both have failed equally often before, so only their failures show which of them has failed here
      for (const id of ['held', 'held, fails']) await queue.deadLetters.reschedule(id, 0, { priority: 9 })
      const heldDead = await queue.deadLetters.pollMany({ count: 2, timeout: 5_000, visibilityTimeout: HOUR })
      expect(heldDead.map(({ id }) => id).sort()).to.deep.equal(['held', 'held, fails'])
      const [stillHeld, fails] = ['held', 'held, fails'].map((id) => heldDead.find((one) => one.id === id)!)
      await Promise.all([mails.drain(), dead.drain()])
      await raw.save()
      one.keepFiles('old')

      await queue.negativeAcknowledge([held!], { reject: true, error: 'never' })
      await die('dies', 'dies, redriven', 'dies, deleted')
      await redrive('redriven', 'redriven, handled', 'redriven, dies', 'dies, redriven')
      await die('redriven, dies')
      await queue.deadLetters.negativeAcknowledge([fails!], { delay: HOUR, error: 'never' })
      await remove('deleted', 'dies, deleted')
      await queue.reschedule('redriven, handled', 0)
      expect(await (await queue.poll({ timeout: 5_000 }))?.acknowledge()).to.equal(true)
      await Promise.all([mails.drain(), dead.drain()])
      const [before, deadBefore] = [await contentOf(queue), await contentOf(queue.deadLetters)]
      expect([...before.keys()].sort()).to.deep.equal(['dies, redriven', 'redriven'])
      const letters = ['dies', 'dies held', 'held', 'held, fails', 'redriven, dies', 'stays']
      expect([...deadBefore.keys()].sort()).to.deep.equal(letters)

      const isBack = restored(journal, queue.name, queue.deadLetters.name)
      await one.kill()
      await one.startWith('old')
      await isBack
      expect(await contentOf(queue)).to.deep.equal(before)
      expect(await contentOf(queue.deadLetters)).to.deep.equal(deadBefore)
      await Promise.all([mails.drain(), dead.drain()])
      expect([await differences(mails), await differences(dead)]).to.deep.equal([[], []])
      expect((await mails.get('redriven, handled'))?.state).to.equal('handled')
      expect(await stillHeld!.acknowledge(), 'its consumer has it still').to.equal(true)
      expect(await fails!.acknowledge(), 'it waits').to.equal(false)
      for (const id of ['deleted', 'dies, deleted']) expect((await dead.get(id))?.state, id).to.equal('removed')
    })

    it('puts messages back with their groups, which keep their turns and limits, and dead letters as they were', async () => {
      const one = await redis()
      const { queue, mails, journal } = await set(one)
      await queue.setConfig({ groupConcurrency: 1 })
      await mails.addMany(['a1', 'a2', 'a3'].map((id) => ({ payload: id, id, delay: HOUR, group: 'a' })))
      await queue.add('b', { id: 'b1', delay: HOUR, group: 'b' }) // by the change stream
      await mails.add('dead', { id: 'dead', group: 'a' })
      const [poison] = await queue.pollMany({ count: 1, timeout: 5_000 })
      await queue.negativeAcknowledge([poison!], { reject: true })
      const dead = await journal.attach(queue.deadLetters)
      await Promise.all([mails.drain(), dead.drain()])
      const [before, deadBefore] = [await contentOf(queue), await contentOf(queue.deadLetters)]
      const isConfigKnown = async (): Promise<void> => {
        const found = await journal.database?.run((sql) =>
          sql.selectFrom('redelayed_positions').select('config').execute(),
        )
        expect(
          found?.some(({ config }) => String(config && Buffer.from(config)).includes('groupConcurrency')),
        ).to.equal(true)
      }
      await eventually(isConfigKnown)
      const isBack = restored(journal, queue.name, queue.deadLetters.name)
      await one.kill()
      await one.startEmpty()
      await isBack
      expect([await contentOf(queue), await contentOf(queue.deadLetters)]).to.deep.equal([before, deadBefore])
      await Promise.all([mails.drain(), dead.drain()])
      expect([await differences(mails), await differences(dead)]).to.deep.equal([[], []])
      const raw = new Redis(one.url)
      ends.push(async () => raw.disconnect())
      expect(await raw.zcard('redelayed:reliable:due-0:{mails}:dead'), 'dead letters have no turns').to.equal(1)
      expect(await raw.zcard('redelayed:reliable:due-10:{mails}:dead')).to.equal(0)
      for (const id of ['a1', 'a2', 'a3', 'b1']) expect(await queue.reschedule(id, 0)).to.equal(true)
      const taken: string[] = []
      await eventually(async () => {
        for (const { id } of await queue.pollMany({ count: 4, visibilityTimeout: HOUR })) taken.push(id)
        expect(taken).to.have.length(2)
      })
      expect(taken.map((id) => id[0]).sort(), 'one of each group').to.deep.equal(['a', 'b'])
      expect(await queue.deadLetters.reschedule('dead', undefined, { priority: 3 })).to.equal(true)
      expect(await queue.deadLetters.move({ to: queue, priority: 3 })).to.equal(1)
      expect(await queue.get('dead')).to.include({ group: 'a', priority: 0 })
      await Promise.all([mails.drain(), dead.drain()])
      expect([await differences(mails), await differences(dead)]).to.deep.equal([[], []])
    })

    it('continues a batch without messages added after the snapshot of Redis, and counts messages handled since as removed', async () => {
      const one = await redis()
      const { queue, mails, journal } = await set(one)
      const raw = new Redis(one.url)
      ends.push(async () => raw.disconnect())
      raw.on('error', () => undefined)
      const batch = queue.batch('import')
      await queue.addMany(
        ['handled', 'stays'].map((id) => ({ payload: id, id, delay: HOUR })),
        { batch: batch.name },
      )
      await mails.drain()
      await raw.save()
      one.keepFiles('old')
      await queue.add('later', { id: 'later', delay: HOUR, batch: batch.name })
      await batch.close({ last: { payload: 'last' } })
      await queue.reschedule('handled', 0)
      await (await queue.poll({ timeout: 5_000 }))?.acknowledge()
      await mails.drain()
      const isBack = restored(journal, queue.name)
      await one.kill()
      await one.startWith('old')
      await isBack
      expect(await batch.counts()).to.include({ state: 'open', total: 2, pending: 1, completed: 0, removed: 1 })
      expect((await queue.get('later'))?.payload, 'it is there without its batch').to.equal('later')
      expect(await batch.close({ last: { payload: 'last' } })).to.include({ state: 'closed', pending: 1 })
      await queue.reschedule('stays', 0)
      await (await queue.poll({ timeout: 5_000 }))?.acknowledge()
      expect(await batch.waitUntilFinished({ timeout: 5_000 })).to.include({ completed: 1, removed: 1, total: 2 })
      expect(await queue.contains('later')).to.equal(true)
    })

    it('has no batch in a Redis that came back empty, and the messages without it', async () => {
      const one = await redis()
      const { queue, mails, journal } = await set(one)
      await queue.add('x', { id: 'a', delay: HOUR, batch: 'import' })
      await mails.drain()
      const isBack = restored(journal, queue.name)
      await one.kill()
      await one.startEmpty()
      await isBack
      expect([await queue.batch('import').counts(), (await queue.get('a'))?.payload]).to.deep.equal([null, 'x'])
      const gone = await queue
        .batch('import')
        .waitUntilFinished({ timeout: 5_000 })
        .catch((thrown: unknown) => thrown)
      expect(gone).to.include({ code: 'ERR_NOT_COMPLETED', reason: 'gone' })
    })

    it('keeps payloads of 16 MiB, and refuses larger ones with nothing half done', async () => {
      const one = await redis()
      const { queue, mails, journal } = await set(one, { adoptAfterMs: 120_000 }, {}, 30_000)
      const small = 'x'.repeat(100_000)
      const payload = 'x'.repeat(16 * 1024 * 1024 - queue.codec.encode(small).length + small.length)
      expect(queue.codec.encode(payload)).to.have.length(16 * 1024 * 1024)
      expect(await mails.add(payload, { id: 'large', delay: HOUR })).to.include({ outcome: 'added' })
      await queue.add(payload, { id: 'by the stream', delay: HOUR })
      const error = await mails.add(`${payload}x`, { id: 'larger' }).catch((thrown: unknown) => thrown)
      expect(error).to.include({ code: 'ERR_PAYLOAD_TOO_LARGE' })
      await mails.drain()
      expect([await queue.contains('larger'), (await mails.get('larger'))?.state]).to.deep.equal([false, 'refused'])
      const isBack = restored(journal, queue.name)
      await one.kill()
      await one.startEmpty()
      await isBack
      for (const id of ['large', 'by the stream']) expect((await queue.get(id))?.payload === payload, id).to.equal(true)
      expect(await differences(mails)).to.deep.equal([])
    })

    it('finishes a restore despite a message that cannot be read', async () => {
      const one = await redis()
      const { client, queue, mails, journal } = await set(one)
      const said: unknown[] = []
      client.on('error', (error) => said.push(error))
      const raw = new Redis(one.url)
      ends.push(async () => raw.disconnect())
      raw.on('error', () => undefined)
      await mails.addMany(['a', 'bad', 'c'].map((id) => ({ payload: id, id, delay: HOUR })))
      await mails.drain()
      await raw.hset('redelayed:reliable:messages:{mails}', 'bad', Buffer.of(255))
      await raw.save()
      one.keepFiles('damaged')
      await mails.add('d', { id: 'd', delay: HOUR })
      await mails.drain()
      const isBack = restored(journal, queue.name)
      await one.kill()
      await one.startWith('damaged')
      await isBack
      expect((await queue.get('d'))?.payload).to.equal('d')
      await mails.drain()
      expect(await differences(mails)).to.deep.equal([
        { queue: 'mails', id: 'bad', what: 'missing in Redis', sql: 'open', redis: 'nothing' },
      ])
      expect(said.map((error) => (error as { code?: unknown }).code)).to.include('ERR_DECODE')
    })

    it('does not reopen handled messages when a snapshot of an earlier epoch comes back', async () => {
      const one = await redis()
      const { queue, mails, journal } = await set(one)
      const raw = new Redis(one.url)
      ends.push(async () => raw.disconnect())
      raw.on('error', () => undefined)
      await mails.add('x', { id: 'a', delay: HOUR })
      await mails.drain()
      await raw.save()
      one.keepFiles('first epoch')
      const { epoch } = await queue.changeStatus()

      const isRestored = restored(journal, queue.name)
      await one.kill()
      await one.startEmpty()
      await isRestored
      expect((await queue.changeStatus()).epoch).to.not.equal(epoch)
      await queue.reschedule('a', 0)
      await (await queue.poll({ timeout: 5_000 }))?.acknowledge()
      await mails.drain()
      expect((await mails.get('a'))?.state).to.equal('handled')

      const isBack = restored(journal, queue.name)
      await one.kill()
      await one.startWith('first epoch')
      await isBack
      await mails.drain()
      expect((await queue.changeStatus()).epoch).to.equal(epoch)
      expect(await queue.contains('a')).to.equal(false)
      expect((await mails.get('a'))?.state).to.equal('handled')
      // a restore puts back what SQL has, so neither it nor the snapshot's own entries add a row
      expect((await mails.flow('a')).filter(({ change }) => change === 'added')).to.have.length(1)
    })

    it('gives a Redis that lost its data the configuration that the queue had', async () => {
      const one = await redis()
      const { queue, mails, journal } = await set(one)
      const config = { delay: HOUR, visibilityTimeout: 77_000, maxSize: 5, deadLetters: false }
      await queue.setConfig(config)
      const before = await queue.getConfig()
      await mails.add('x', { id: 'a', delay: HOUR })
      await mails.drain()
      const seen = async (): Promise<number> => (await mails.add('probe', { id: 'probe' })).dueAt - Date.now()
      await eventually(async () => expect(await seen()).to.be.above(HOUR / 2)) // the journal has read it, and so has SQL
      const isBack = restored(journal, queue.name)
      await one.kill()
      await one.startEmpty()
      await isBack
      expect(await queue.getConfig()).to.deep.equal(before)
      expect((await mails.add('y', { id: 'b' })).dueAt - Date.now()).to.be.above(HOUR / 2)
    })

    it('continues with a restore that was interrupted, in another journal', async () => {
      const one = await redis()
      let pages = 0
      const first = await set(
        one,
        {},
        {
          afterPage: () => {
            if (++pages >= 2) throw new Error('interrupted')
          },
        },
      )
      await first.mails.addMany(
        Array.from({ length: 12_000 }, (_, n) => ({ payload: `p${n}`, id: `m${n}`, delay: HOUR })),
      )
      await first.mails.drain()
      const before = await contentOf(first.queue)
      await one.kill()
      await one.startEmpty()
      await eventually(() => expect(pages).to.be.at.least(2))
      await first.journal.close()
      // four pages of 1,000 are under way at once
      expect(await first.queue.size()).to.be.below(12_000)
      const journal = await open()
      const isBack = restored(journal, first.queue.name)
      const mails = await journal.attach(first.queue)
      await isBack
      await mails.drain()
      expect(await contentOf(first.queue)).to.deep.equal(before)
      expect(await differences(mails)).to.deep.equal([])
    })

    it('adds a message that was committed by a process that died before it could add it', async () => {
      const one = await redis()
      const dying = await set(
        one,
        {},
        {
          afterCommit: () => {
            throw new Error('killed')
          },
        },
      )
      await dying.mails.add('x', { id: 'a', delay: HOUR }).catch(() => undefined)
      await dying.journal.close()
      expect(await dying.queue.contains('a')).to.equal(false)
      const journal = await open({ adoptAfterMs: 1_000 })
      const mails = await journal.attach(dying.queue)
      await eventually(async () => expect(await dying.queue.contains('a')).to.equal(true))
      await mails.drain()
      expect((await mails.get('a'))?.state).to.equal('open')
    })

    describe('two calls that mean one message', () => {
      /** The first call stands still between SQL and Redis, until `goOn`. */
      async function standing(options: JournalOptions = {}) {
        let held: Promise<void> | undefined
        let goOn = (): void => undefined
        const parts = await set(await redis(), options, { afterCommit: () => held })
        const add = (): ReturnType<Mails['add']> => parts.mails.add('x', { id: 'a', onceForMs: HOUR })
        const error = (call: Promise<unknown>): Promise<unknown> => call.catch((thrown: unknown) => thrown)
        const begin = async (): Promise<{ first: Promise<unknown>; goOn: () => void }> => {
          held = new Promise((resolve) => (goOn = resolve))
          const first = error(add())
          await eventually(async () => expect((await parts.mails.get('a'))?.state).to.equal('accepted'))
          held = undefined
          return { first, goOn }
        }
        return { ...parts, add, error, begin }
      }

      it('add it once, also if the first one hangs, and after it was handled', async () => {
        const { queue, mails, add, begin } = await standing()
        const { first, goOn } = await begin()
        expect((await add()).outcome, 'the second one does not wait').to.equal('added')
        expect((await mails.get('a'))?.state, 'SQL knows that Redis has it').to.equal('open')
        expect((await queue.poll())?.id).to.equal('a')
        await queue.remove('a')
        goOn()
        expect(await first).to.include({ outcome: 'kept' })
        for (const state of ['open', 'removed']) {
          expect((await add()).outcome, `the row is ${state}`).to.equal('kept')
          await mails.drain()
        }
        expect(await queue.size()).to.equal(0)
        expect((await mails.add('y', { id: 'a' })).outcome, 'another message under that id').to.equal('added')
      })

      it('are both refused if Redis refuses it, and neither leaves it to be added later', async () => {
        const { queue, mails, add, error, begin } = await standing()
        await queue.setConfig({ maxSize: 1 })
        await queue.add('full', { id: 'other' })
        const { first, goOn } = await begin()
        const second = error(add())
        goOn()
        for (const call of [first, second]) expect(await call).to.include({ code: 'ERR_QUEUE_FULL' })
        expect((await mails.get('a'))?.state).to.equal('refused')
        await queue.remove('other')
        expect((await add()).outcome).to.equal('added')
      })

      it('have an unknown outcome when the instance of the first one has died and Redis refuses the second', async () => {
        const { queue, mails, add, error, begin } = await standing({ adoptAfterMs: 1_000, background: false })
        await queue.setConfig({ maxSize: 1 })
        await queue.add('full', { id: 'other' })
        const { first, goOn } = await begin()
        expect(await error(add())).to.include({ code: 'ERR_JOURNAL_IN_PROGRESS', outcome: 'unknown' })
        expect((await mails.get('a'))?.state).to.equal('accepted')
        goOn()
        await first
      })

      it('add it once if the first one has died and another instance adds the message', async () => {
        const { queue, mails, add, error, begin } = await standing({ adoptAfterMs: 1_000 })
        const { first, goOn } = await begin()
        const { acceptedAt = 0 } = (await mails.get('a')) ?? {}
        await eventually(async () => expect(await queue.now()).to.be.greaterThan(acceptedAt + 500))
        await eventually(async () => expect(await error(add())).to.include({ outcome: 'kept' }))
        expect((await queue.poll())?.id).to.equal('a')
        await queue.remove('a')
        goOn()
        expect(await first).to.include({ outcome: 'journalled' })
        await mails.drain()
        const flow = (await mails.flow('a')).map(({ change }) => change)
        expect(flow).to.deep.equal(['added', 'polled', 'removed'])
      })
    })

    it('adds a message once if two calls for it share a commit that is so slow that another instance adds it', async () => {
      let goOn = (): void => undefined
      const held = new Promise<void>((resolve) => (goOn = resolve))
      const { queue, mails } = await set(await redis(), { adoptAfterMs: 1_000 }, { afterCommit: () => held })
      const calls = [1, 2].map(() => mails.add('x', { id: 'a', onceForMs: HOUR }))
      await eventually(async () => expect((await queue.poll())?.id).to.equal('a'))
      await queue.remove('a')
      goOn()
      expect((await Promise.all(calls)).map(({ outcome }) => outcome)).to.deep.equal(['journalled', 'kept'])
      expect(await queue.size(), 'it was handled').to.equal(0)
      await mails.drain()
      expect((await mails.flow('a')).map(({ change }) => change)).to.deep.equal(['added', 'polled', 'removed'])
    })

    it('leaves a message to another instance if a second call shares it with a call that began long before', async () => {
      const { queue, mails } = await set(await redis(), { adoptAfterMs: 500, lingerMs: 300, background: false })
      const first = mails.add('x', { id: 'a', onceForMs: HOUR })
      const begun = await queue.now()
      await eventually(async () => expect(await queue.now()).to.be.greaterThan(begun + 150))
      const second = await mails.add('x', { id: 'a', onceForMs: HOUR }).catch((thrown: unknown) => thrown)
      expect(await first).to.include({ outcome: 'journalled' })
      expect(second).to.include({ code: 'ERR_JOURNAL_IN_PROGRESS' })
      expect(await queue.contains('a')).to.equal(false)
    })

    it('adds a message once that two instances accept at the same time', async function () {
      if (server.kind === 'sqlite') this.skip() // one process has the file
      const one = await redis()
      const first = await set(one)
      let isSettled: Promise<unknown> = Promise.resolve()
      // the first one's message is handled before the second one goes to Redis
      const second = await set(one, {}, { afterCommit: () => isSettled.then(() => undefined) })
      for (let round = 0; round < 20; round++) {
        const item = { id: `m${round}`, onceForMs: HOUR }
        const adding = first.mails.add('x', item)
        isSettled = adding.then(() => first.queue.remove(item.id))
        const outcomes = [await second.mails.add('x', item), await adding].map(({ outcome }) => outcome)
        expect(outcomes, `round ${round}`).to.have.members(['added', 'kept'])
        await first.queue.remove(item.id)
      }
    })

    it('restores once with two journals at work', async function () {
      if (server.kind === 'sqlite') this.skip() // one process has the file
      const one = await redis()
      const first = await set(one)
      const second = await set(one)
      await Promise.all([
        first.mails.addMany(Array.from({ length: 2_000 }, (_, n) => ({ payload: 'x', id: `a${n}`, delay: HOUR }))),
        second.mails.addMany(Array.from({ length: 2_000 }, (_, n) => ({ payload: 'x', id: `b${n}`, delay: HOUR }))),
      ])
      await Promise.all([first.mails.drain(), second.mails.drain()])
      const before = await contentOf(first.queue)
      expect(before.size).to.equal(4_000)
      const isBack = Promise.race([restored(first.journal, 'mails'), restored(second.journal, 'mails')])
      await one.kill()
      await one.startEmpty()
      await isBack
      await Promise.all([first.mails.drain(), second.mails.drain()])
      expect(await contentOf(first.queue)).to.deep.equal(before)
      expect(await differences(second.mails)).to.deep.equal([])
      expect((await first.mails.flow('a1')).map(({ change }) => change)).to.deep.equal(['added'])
    })

    for (const mode of ['sync', 'async'] as const) {
      it(`adds a message once while the number of shards changes, mode ${mode}`, async () => {
        const one = await redis()
        const ids = Array.from({ length: 100 }, (_, n) => `m${n}`)
        const items = ids.map((id) => ({ payload: id, id, delay: HOUR }))
        const before = connect(one).getShardedReliableQueue<string>('mails', { shards: 4 })
        const first = await open({ mode })
        await (await first.attach(before)).addMany(items)
        await first.close()
        const after = connect(one).getShardedReliableQueue<string>('mails', { shards: 5, formerShards: 4 })
        const mails = await (await open({ mode })).attach(after)
        const again = await mails.addMany(items)
        expect(again.map((result) => 'outcome' in result && result.outcome)).to.deep.equal(ids.map(() => 'kept'))
        const sizes = await Promise.all(after.shards.map((shard) => shard.size()))
        expect(sizes.reduce((sum, size) => sum + size, 0)).to.equal(ids.length)
      })
    }

    it('keeps a sharded queue, shard by shard', async () => {
      const one = await redis()
      const client = connect(one)
      const queue = client.getShardedReliableQueue<string>('mails', { shards: 3 })
      const journal = await open()
      const mails = await journal.attach(queue)
      const ids = Array.from({ length: 600 }, (_, n) => `m${n}`)
      const results = await mails.addMany([
        ...ids.map((id) => ({ payload: id, id, delay: HOUR })),
        { payload: 'drawn', delay: HOUR },
      ])
      expect(new Set(results.map((result) => 'outcome' in result && result.outcome))).to.deep.equal(new Set(['added']))
      expect(await mails.add('again', { id: 'm5', delay: HOUR })).to.include({ outcome: 'kept' })
      expect(await mails.cancel('m6')).to.equal(true)
      await mails.drain()
      expect((await mails.get('m6'))?.state).to.equal('removed')
      const sizes = await Promise.all(queue.shards.map((shard) => shard.size()))
      expect(Math.min(...sizes)).to.be.above(0)
      const isBack = restored(journal, ...queue.names)
      await one.kill()
      await one.startEmpty()
      await isBack
      expect(await Promise.all(queue.shards.map((shard) => shard.size()))).to.deep.equal(sizes)
      const found: unknown[] = []
      for await (const each of mails.verify()) found.push(each)
      expect(found).to.deep.equal([])
      expect((await queue.get('m5'))?.payload).to.equal('m5')
    })
  })
}
