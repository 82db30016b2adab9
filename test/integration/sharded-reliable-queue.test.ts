import { expect } from 'chai'
import type { Redis } from 'ioredis'
import {
  ConnectionError,
  AddManyError,
  InvalidArgumentError,
  QueueFullError,
  RedelayedError,
  RejectMessage,
  ShutdownError,
  codecs,
  type ClientOptions,
  type RedelayedClient,
  type ReliableMessage,
  type ShardedReliableQueue,
  type ShardedReliableQueueOptions,
  type StoredRawMessage,
} from '../../src/index.js'
import { deadLettersOf, listKeys, reliableKeys } from '../../src/keys.js'
import { keySlot } from '../../src/redis/topology/key-slot.js'
import { shardOfKey } from '../../src/sharding/shard-of-key.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startCluster, startRedis, type ClusterSetup } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, expectError, makeClient, numbers, onCleanup, rawTo, rejection, track } from './fixtures.js'

const LATER = 600_000
const SHARDS = 8

type Queue = ShardedReliableQueue<string>
type Message = ReliableMessage<string>
type Options = Partial<ShardedReliableQueueOptions<string>> & { name?: string; client?: RedelayedClient }

/** How to reach a place, and the server there that holds a key. */
interface Place {
  readonly options: ClientOptions
  holderOf(key: string): Redis
}

function placeOf(cluster: ClusterSetup | undefined): Place {
  if (cluster === undefined) return { options: {}, holderOf: rawClient }
  const raws = cluster.servers.slice(0, 3).map(({ port }) => rawTo(port))
  return {
    options: { cluster: cluster.nodes },
    holderOf: (key) => raws[Math.min(2, Math.floor(keySlot(key) / 5461))]!,
  }
}

function openAt(
  place: Place,
  { name = uniqueName('sharded'), client = makeClient(place.options), ...options }: Options = {},
) {
  const queue = client.getShardedReliableQueue<string>(name, { shards: SHARDS, codec: codecs.string(), ...options })
  if (place.options.cluster === undefined && place.options.host === undefined) onCleanup(() => forget(queue.names))
  return { client, name, queue }
}

async function forget(names: readonly string[]): Promise<void> {
  const keys = names.flatMap((name) => [reliableKeys(name), reliableKeys(deadLettersOf(name))].flatMap(listKeys))
  await rawClient().unlink(...keys)
}

/** Until a consumer is subscribed at every shard: it waits there then. */
async function waitsAtAll(place: Place, { names }: Queue): Promise<void> {
  const holders = [...new Set(names.map((name) => place.holderOf(reliableKeys(name).messages)))]
  await eventually(async () => {
    for (const name of names) {
      const { channel } = reliableKeys(name)
      const replies = await Promise.all(holders.map((raw) => raw.call('PUBSUB', 'NUMSUB', channel)))
      const subscribed = replies.reduce((sum: number, reply) => sum + Number((reply as unknown[])[1]), 0)
      expect(subscribed, name).to.be.at.least(1)
    }
  })
}

/** Polls and acknowledges exactly so many. */
async function handled(queue: Queue, count: number): Promise<Message[]> {
  const messages: Message[] = []
  while (messages.length < count) {
    const more = await queue.pollMany({ count: 100, timeout: 10_000 })
    if (more.length === 0) throw new Error(`only ${messages.length} of ${count} came`)
    expect(await queue.acknowledge(...more)).to.deep.equal(more.map(() => true))
    messages.push(...more)
  }
  expect(messages).to.have.length(count)
  return messages
}

const payloadsOf = (messages: Iterable<{ payload: string }>) => Array.from(messages, ({ payload }) => payload)
async function idsOf(infos: AsyncIterable<{ id: string }>): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of infos) ids.push(id)
  return ids
}

const sorted = (values: Iterable<string>) => [...values].sort((a, b) => Number(a) - Number(b))

for (const where of ['one server', 'a cluster']) {
  describe(`a sharded reliable queue on ${where}`, function () {
    let cluster: ClusterSetup | undefined
    let place: Place

    before(async function () {
      if (where === 'one server') return
      this.timeout(30_000)
      requireServerBin(this)
      cluster = await startCluster()
    })
    after(() => cluster?.stop())
    beforeEach(() => {
      place = placeOf(cluster)
    })
    afterEach(cleanUp)

    const open = (options?: Options) => openAt(place, options)
    const isAt = async (name: string, id: string): Promise<boolean> => {
      const { messages } = reliableKeys(name)
      return (await place.holderOf(messages).hexists(messages, id)) === 1
    }

    describe('adding', () => {
      it('puts each message into the shard of its id, also of an id that was drawn', async () => {
        const { queue } = open()
        const items = numbers(160).map((payload, at) => ({
          payload,
          delay: LATER,
          ...(at % 2 === 0 && { id: `own ${payload}` }),
        }))
        const added = await queue.addMany(items)
        expect(new Set(added.map(({ outcome }) => outcome))).to.deep.equal(new Set(['added']))
        added.push(await queue.add('one', { delay: LATER }), await queue.addTask('task', 'two', { delay: LATER }))
        for (const { id } of added) expect(await isAt(queue.names[shardOfKey(id, SHARDS)]!, id), id).to.equal(true)
        const sizes = await queue.sizes()
        expect(sizes.reduce((sum, size) => sum + size, 0)).to.equal(162)
        expect(Math.min(...sizes), 'all have some').to.be.greaterThan(0)
        expect(new Set(queue.names.map(keySlot)).size).to.equal(SHARDS)
        const infos = await queue.getAll(added.map(({ id }) => id))
        expect(infos.map((info) => info?.payload)).to.deep.equal([...numbers(160), 'one', 'two'])
      })

      it('are polled until they have as many bytes as the caller wants, over all shards', async () => {
        const { queue } = open()
        await queue.addMany(numbers(10).map((id) => ({ id, payload: id.repeat(700_000) })))
        const all: string[] = []
        for (const [maxBytes, count] of [
          [1, 1],
          [2_000_000, 3],
          [2_000_000, 3],
          [undefined, 3],
        ] as const) {
          const messages = await queue.pollMany({ count: 100, maxBytes })
          expect(messages.length, `${maxBytes}`).to.equal(count)
          all.push(...messages.map(({ id }) => id))
          await queue.acknowledge(...messages)
        }
        expect(sorted(all)).to.deep.equal(numbers(10))
      })

      it('of many resolves in their order, and names the messages that were not added', async () => {
        const { queue } = open()
        await queue.setConfig({ maxSize: 2 })
        const failed = await addingFails(queue, numbers(100))
        expect(failed.results.filter((result) => result !== null)).to.have.length(2 * SHARDS)
        failed.results.forEach((result, at) => expect(result?.id ?? String(at)).to.equal(String(at)))
        for (const { error } of failed.failures) {
          expect(error).to.be.instanceOf(QueueFullError)
          expect(error.queue).to.be.oneOf([...queue.names])
        }
        expect(await queue.addMany([])).to.deep.equal([])
      })

      it('checks all before anything is sent', async () => {
        const { queue } = open()
        const wrong = { payload: 'b', priority: 11 }
        expect(await rejection(queue.addMany([{ payload: 'a' }, wrong]))).to.be.instanceOf(InvalidArgumentError)
        expect(await queue.size()).to.equal(0)
      })

      it('keeps, replaces and postpones by id', async () => {
        const { queue } = open()
        await queue.add('a', { id: 'x', delay: LATER })
        expect(await queue.add('b', { id: 'x' })).to.deep.equal({ id: 'x', outcome: 'kept' })
        expect(await queue.add('c', { id: 'x', delay: LATER, existing: 'replace' })).to.deep.equal({
          id: 'x',
          outcome: 'replaced',
        })
        expect((await queue.add('d', { id: 'x', delay: 0, existing: 'postpone' })).outcome).to.equal('postponed')
        expect(payloadsOf(await handled(queue, 1))).to.deep.equal(['c'])
      })

      it('deduplicates payloads over all shards, and refuses to where an id places them', async () => {
        const { queue } = open()
        const deduplicate = { by: 'payload', forMs: 60_000 } as const
        const outcomes = []
        for (const payload of [...numbers(20), ...numbers(20)])
          outcomes.push((await queue.add(payload, { deduplicate })).outcome)
        expect(outcomes).to.deep.equal([...numbers(20).map(() => 'added'), ...numbers(20).map(() => 'duplicate')])
        const refused = await rejection(queue.add('x', { id: 'x', deduplicate }))
        expect(refused).to.be.instanceOf(InvalidArgumentError)
        expect(refused.message).to.include('deduplicate')
        expect(await queue.size()).to.equal(20)
        expect((await queue.add('y', { id: 'y', deduplicate: { by: 'id', forMs: 60_000 } })).outcome).to.equal('added')
      })
    })

    describe('operations by id', () => {
      it('find the shard', async () => {
        const { queue } = open()
        await queue.addMany(numbers(40).map((id) => ({ payload: id, id, delay: LATER })))
        expect(await queue.contains('7')).to.equal(true)
        expect(await queue.containsMany([...numbers(50), 'none'])).to.equal(40)
        expect(await queue.get('none')).to.equal(null)
        expect(await queue.cancel('0')).to.equal(true)
        expect(await queue.cancel('0')).to.equal(false)
        expect(await queue.remove(...numbers(5))).to.equal(4)
        expect(await queue.updatePayload('5', 'five')).to.equal(true)
        expect(await queue.reschedule('5', 0, { priority: 9 })).to.equal(true)
        expect(await queue.reschedule('none', 0)).to.equal(false)
        const [five] = await handled(queue, 1)
        expect([five?.payload, five?.priority]).to.deep.equal(['five', 9])
        expect(sorted(await idsOf(queue.listAll({ state: 'delayed' })))).to.deep.equal(numbers(34, 6))
        const { total, delayed, visible, inFlight, dead } = await queue.counts()
        expect([total, delayed, visible, inFlight, dead]).to.deep.equal([34, 34, 0, 0, 0])
        expect(await queue.clear()).to.equal(true)
        expect(await queue.isEmpty()).to.equal(true)
      })

      it('restore messages in their shards, as they were, where they are not in any', async () => {
        const { queue: before, client, name } = open()
        const headers = { from: 'ada' }
        await before.addMany(numbers(80).map((id) => ({ payload: id, id, delay: LATER, priority: 3, headers })))
        const pages: StoredRawMessage[][] = []
        for await (const page of before.listAllRaw({ pageSize: 7 })) pages.push(page)
        const saved = pages.flat()
        expect(sorted(saved.map(({ id }) => id))).to.deep.equal(sorted(numbers(80)))
        expect(await before.getAllRaw(saved.map(({ id }) => id))).to.deep.equal(saved)
        expect(await before.restoreMany(saved)).to.deep.equal(saved.map(() => 'present'))
        await before.remove(...numbers(60))
        const outcomes = await before.restoreMany(saved)
        expect(outcomes).to.deep.equal(saved.map(({ id }) => (Number(id) < 60 ? 'restored' : 'present')))
        expect(await before.getAllRaw(saved.map(({ id }) => id))).to.deep.equal(saved)
        for (const id of numbers(80)) expect(await isAt(before.names[shardOfKey(id, SHARDS)]!, id), id).to.equal(true)
        const { queue: fewer } = open({ shards: 3, formerShards: SHARDS, client, name })
        expect(await fewer.restoreMany(saved)).to.deep.equal(saved.map(() => 'present'))
        expect(await fewer.size()).to.equal(80)
        expect(await fewer.countDelayedMessages()).to.equal(80)
        expect(await fewer.countUnacknowledgedMessages()).to.equal(0)
        const wrong = [...saved.slice(0, 5), { ...saved[5]!, dueAt: -1 }]
        await before.remove(...numbers(80))
        const error = await rejection(before.restoreMany(wrong))
        expect(error).to.be.instanceOf(InvalidArgumentError).that.includes({ queue: name })
        expect(error.message).to.include('items[5].dueAt')
        expect(await before.isEmpty()).to.equal(true)
        expect(Math.abs((await before.now()) - Date.now())).to.be.below(60_000)
      })

      it('restore a message of a schedule in the shard of the schedule', async () => {
        const { queue } = open()
        await queue.upsertSchedule('daily', 'x', { every: LATER })
        const saved: StoredRawMessage[] = []
        for await (const page of queue.listAllRaw()) saved.push(...page)
        expect(saved).to.have.length(1)
        expect(await queue.restoreMany(saved)).to.deep.equal(['present'])
        expect(await queue.size()).to.equal(1)
      })

      it('refuse an invalid id', async () => {
        const { queue, name } = open()
        for (const call of [
          () => queue.cancel(''),
          () => queue.get('\ud800'),
          () => queue.remove('a', 'x'.repeat(600)),
        ]) {
          const error = await rejection(call())
          expect(error).to.be.instanceOf(InvalidArgumentError)
          expect(error.queue).to.equal(name)
        }
      })
    })

    describe('polling', () => {
      it('waits at all shards, and gets a message from any', async () => {
        const { queue } = open()
        for (const payload of numbers(24)) {
          const polled = queue.poll({ timeout: 20_000 })
          await queue.add(payload)
          const message = await polled
          expect(message?.payload).to.equal(payload)
          expect(await message?.acknowledge()).to.equal(true)
        }
      })

      it('takes from all shards, also one by one and slowly, and loses no attempt of messages that it gives back', async () => {
        const { queue } = open()
        await queue.addMany(numbers(400).map((payload) => ({ payload })))
        const shards = new Set<number>()
        for (let i = 0; i < 64 && shards.size < SHARDS; i++) {
          const message = await queue.poll({ timeout: 10_000 })
          shards.add(shardOfKey(message!.id, SHARDS))
          expect(message?.attempt).to.equal(1)
          await message?.acknowledge()
          // what came beyond the call is put back when its waits end
          if (i % 4 === 0) await eventually(async () => expect((await queue.counts()).inFlight).to.equal(0))
        }
        expect(shards.size).to.equal(SHARDS)
        await eventually(async () => expect((await queue.counts()).inFlight).to.equal(0))
        for (const { attempt } of await handled(queue, await queue.size())) expect(attempt).to.equal(1)
      })

      it('gives back the surplus when several shards served a call for one', async () => {
        const { queue } = open()
        const polled = queue.poll({ timeout: 20_000 })
        await waitsAtAll(place, queue)
        await queue.addMany(numbers(80).map((payload) => ({ payload })))
        await (await polled)?.acknowledge()
        await eventually(async () => expect((await queue.counts()).inFlight).to.equal(0))
        for (const { attempt } of await handled(queue, 79)) expect(attempt).to.equal(1)
      })

      it('without a timeout takes all that is there, up to the count', async () => {
        const { queue } = open()
        expect(await queue.poll()).to.equal(null)
        await queue.addMany(numbers(100).map((payload) => ({ payload })))
        const [some, rest] = [await queue.pollMany({ count: 30 }), await queue.pollMany({ count: 1_000 })]
        expect([some.length, rest.length]).to.deep.equal([30, 70])
        expect(sorted(payloadsOf([...some, ...rest]))).to.deep.equal(numbers(100))
      })

      it('acknowledges messages in advance with `auto`, and none that no call gets', async () => {
        const { queue } = open()
        await queue.addMany(numbers(40).map((payload) => ({ payload })))
        const seen: string[] = []
        for (let i = 0; i < 40; i++) {
          const message = await queue.poll({ acknowledge: 'auto', timeout: 10_000 })
          seen.push(message!.payload)
          if (i === 20) await eventually(async () => expect((await queue.counts()).inFlight).to.equal(0))
        }
        expect(sorted(seen)).to.deep.equal(numbers(40))
        expect(await queue.isEmpty()).to.equal(true)
      })

      it('ends by its timeout, its signal and the shutdown, and leaves nothing in flight', async () => {
        const { queue, client } = open()
        expect(await queue.poll({ timeout: 50 })).to.equal(null)
        const reason = new Error('enough')
        const controller = new AbortController()
        const aborted = queue.pollMany({ count: 5, timeout: Infinity, signal: controller.signal })
        controller.abort(reason)
        expect(await rejection(aborted)).to.equal(reason)
        const waiting = track(queue.poll({ timeout: Infinity }))
        await client.shutdown()
        expect(await rejection(waiting.promise)).to.be.instanceOf(ShutdownError)
        expect(await rejection(queue.poll({ timeout: 10 }))).to.be.instanceOf(ShutdownError)
      })

      it('refuses wrong options', async () => {
        const { queue, name } = open()
        for (const options of [
          { count: 2 },
          { visibility: 1 },
          { timeout: -1 },
          { acknowledge: 'later' },
          { visibilityTimeout: 0 },
        ]) {
          const error = await rejection(queue.poll(options as object))
          expect(error).to.be.instanceOf(InvalidArgumentError)
          expect(error.queue).to.equal(name)
        }
        expect(await rejection(queue.pollMany({ count: 1_001 }))).to.be.instanceOf(InvalidArgumentError)
      })
    })

    describe('answers', () => {
      it('acknowledges, extends and gives back messages of several shards in one call, in their order', async () => {
        const { queue } = open()
        await queue.addMany(numbers(60).map((id) => ({ payload: id, id })))
        const messages = await queue.pollMany({ count: 60 })
        expect(messages).to.have.length(60)
        await queue.remove('3', '30')
        const isLost = ({ id }: Message) => id === '3' || id === '30'
        expect(await queue.extend(messages, 50_000)).to.deep.equal(messages.map((message) => !isLost(message)))
        const [some, rest] = [messages.slice(0, 30), messages.slice(30)]
        expect(await queue.acknowledge(...some)).to.deep.equal(some.map((message) => !isLost(message)))
        const given = await queue.negativeAcknowledge(rest, { error: new Error('not now') })
        expect(given).to.deep.equal(rest.map((message) => !isLost(message)))
        const again = await handled(queue, rest.filter((message) => !isLost(message)).length)
        for (const { attempt } of again) expect(attempt).to.equal(2)
        expect(await queue.acknowledge()).to.deep.equal([])
      })

      it('takes receipts, wherever another number of shards has put their messages', async () => {
        const { queue: before, client, name } = open({ shards: 2 })
        await before.addMany(numbers(30).map((id) => ({ payload: id, id })))
        const receipts = (await before.pollMany({ count: 30 })).map(({ receipt }) => receipt)
        const { queue } = open({ shards: 7, formerShards: 2, client, name })
        expect(await queue.extend(receipts, 50_000)).to.deep.equal(receipts.map(() => true))
        expect(await queue.negativeAcknowledge(receipts.slice(20))).to.deep.equal(numbers(10).map(() => true))
        const answers = await queue.acknowledge(...receipts)
        expect(answers).to.deep.equal(receipts.map((_, at) => at < 20))
        expect(await queue.size()).to.equal(10)
        expect(await rejection(queue.acknowledge('none'))).to.be.instanceOf(InvalidArgumentError)
      })

      it('refuses messages of another queue, and sends nothing', async () => {
        const { queue, client } = open()
        const { queue: other } = open({ client })
        await queue.add('a')
        await other.add('b')
        const [own, strange] = [await queue.poll(), await other.poll()]
        expect(await rejection(queue.acknowledge(own!, strange!))).to.be.instanceOf(InvalidArgumentError)
        expect(await own?.acknowledge()).to.equal(true)
        expect(await strange?.acknowledge()).to.equal(true)
      })
    })

    it('keeps dead letters in their shards, finds them by id, and moves them back', async () => {
      const { queue } = open()
      await queue.setConfig({ deliveryLimit: 1 })
      await queue.addMany(numbers(30).map((id) => ({ payload: id, id })))
      await queue.negativeAcknowledge(await queue.pollMany({ count: 100 }), { error: new Error('bad') })
      expect((await queue.counts()).dead).to.equal(30)
      expect((await queue.deadLetters.get('11'))?.failures[0]?.reason).to.include('bad')
      expect(await queue.deadLetters.cancel('0')).to.equal(true)
      expect(await queue.redrive(10)).to.equal(10)
      expect([(await queue.counts()).dead, await queue.size()]).to.deep.equal([19, 10])
      expect(await queue.redrive()).to.equal(19)
      expect(await queue.redrive()).to.equal(0)
      // a second dead letter of one id has a name of its own, and stays in the shard
      await queue.negativeAcknowledge(await queue.pollMany({ count: 100 }), { reject: true })
      await queue.add('11', { id: '11' })
      await queue.negativeAcknowledge(await queue.pollMany({ count: 100 }), { reject: true })
      const ids = await idsOf(queue.deadLetters.listAll())
      const second = ids.find((id) => id.startsWith('11~'))
      expect((await queue.deadLetters.get(second ?? ''))?.payload).to.equal('11')
    })

    it('keeps each schedule in the shard of its name, and finds the messages of its ticks', async () => {
      const { queue } = open()
      expect(await queue.upsertSchedule('daily', 'x', { every: 3_600_000 })).to.equal(true)
      expect(await queue.upsertSchedule('daily', 'x', { every: 3_600_000 })).to.equal(false)
      await queue.upsertSchedule('hourly', 'y', { every: 1_800_000 })
      expect((await queue.listSchedules()).map(({ name }) => name)).to.deep.equal(['daily', 'hourly'])
      const [{ lastPrepared }] = (await queue.listSchedules()) as unknown as [{ lastPrepared: Date }]
      expect((await queue.get(`daily@${lastPrepared.getTime()}`))?.payload).to.equal('x')
      expect((await queue.sizes())[shardOfKey('daily', SHARDS)]).to.be.at.least(1)
      expect(await queue.removeSchedule('daily')).to.equal(true)
      expect(await queue.removeSchedule('daily')).to.equal(false)
      await queue.upsertSchedule('quick', 'z', { every: 200 })
      const ticks = (await handled(queue, 3)).map(({ id }) => id)
      expect(new Set(ticks).size).to.equal(3)
      await queue.removeSchedule('quick')
    })

    it('sets the configuration of all shards', async () => {
      const { queue, client } = open()
      await queue.setConfig({ visibilityTimeout: 5_000, maxSize: 7 })
      expect(await queue.setConfigIfAbsent({ maxSize: 9 })).to.equal(false)
      for (const shard of queue.names) {
        expect(await client.getReliableQueue(shard).getConfig()).to.deep.equal({ visibilityTimeout: 5_000, maxSize: 7 })
      }
      expect(await queue.getConfig()).to.deep.equal({ visibilityTimeout: 5_000, maxSize: 7 })
      await queue.disableOperation('poll')
      await queue.add('a')
      expect(await queue.poll()).to.equal(null)
      await queue.enableOperation('poll')
      expect((await queue.poll())?.payload).to.equal('a')
    })

    it('pauses a task in all shards', async () => {
      const { queue } = open()
      await queue.pauseTask('t')
      for (const payload of numbers(20)) await queue.addTask('t', payload)
      await queue.addTask('u', 'other')
      const taken = []
      for (let n = 0; n < 40 && taken.length === 0; n++) taken.push(...(await queue.pollMany({ count: 100 })))
      expect(taken.map(({ payload }) => payload)).to.deep.equal(['other'])
      expect(await queue.pausedTasks()).to.deep.equal(['t'])
      expect((await queue.totals()).tasks).to.deep.equal({ paused: 1 })
      await queue.resumeTask('t')
      expect(await queue.pausedTasks()).to.deep.equal([])
      expect((await handled(queue, 20)).length).to.equal(20)
    })

    it('adds up the completed messages that its shards keep, and is paused where one of them is', async () => {
      const { queue } = open()
      await queue.setConfig({ keepCompleted: 100 })
      await queue.addMany(numbers(30).map((payload) => ({ payload })))
      await handled(queue, 30)
      await queue.shards[1]!.disableOperation('poll')
      expect(await queue.totals()).to.deep.include({ completed: { kept: 30 }, paused: { add: false, poll: true } })
      await queue.shards[0]!.disableOperation('add')
      expect((await queue.totals()).paused).to.deep.equal({ add: true, poll: true })
    })

    it('pauses a group in all shards', async () => {
      const { queue } = open()
      await queue.pauseGroup('t')
      await queue.addMany(numbers(60).map((payload) => ({ payload, group: 't' })))
      await queue.add('other', { group: 'u' })
      expect((await queue.pollMany({ count: 100 })).map(({ payload }) => payload)).to.deep.equal(['other'])
      await queue.shards[0]!.resumeGroup('t')
      expect(await queue.pausedGroups()).to.deep.equal(['t'])
      expect(await queue.countsOfGroup('t')).to.include({ visible: 60, inFlight: 0, paused: true })
      const totals = await queue.totals()
      const { visible: resumed } = await queue.shards[0]!.countsOfGroup('t')
      expect(totals.heldBack).to.deep.equal({ byPause: 60 - resumed, byLimit: 0 })
      expect(totals.groups.paused).to.equal(queue.shards.length - 1)
      expect([totals.paused, totals.completed]).to.deep.equal([{ add: false, poll: false }, { kept: 0 }])
      await queue.resumeGroup('t')
      expect(await queue.pausedGroups()).to.deep.equal([])
      expect((await handled(queue, 60)).length).to.equal(60)
    })

    it('emits the events of any shard to its listeners', async () => {
      const { queue } = open()
      const seen: string[] = []
      const note = ({ queue, count }: { queue: string; count: number }) =>
        void seen.push(...new Array<string>(count).fill(queue))
      queue.on('added', note)
      // so many that no shard gets none
      await queue.addMany(numbers(300).map((payload) => ({ payload })))
      queue.off('added', note)
      await queue.add('x')
      expect(seen).to.have.length(300)
      expect(new Set(seen).size).to.equal(SHARDS)
      for (const name of seen) expect(name).to.be.oneOf([...queue.names])
    })

    describe('workers', () => {
      it('handle each message once, with the name of the queue; failures and rejections go their ways', async () => {
        const { queue, client, name } = open()
        await queue.addMany(numbers(300).map((payload) => ({ payload })))
        const seen: string[] = []
        const names = new Set<string>()
        const worker = client.createWorker(
          queue,
          (payload, context) => {
            names.add(context.queue)
            if (payload === '7') throw new RejectMessage('never')
            if (payload === '8' && context.message.attempt === 1) throw new Error('once more')
            seen.push(payload)
          },
          { concurrency: 20, prefetch: 10, backoff: { type: 'fixed', delay: 1 } },
        )
        await eventually(() => expect(worker.counts.completed).to.equal(299), 20_000)
        expect(sorted(seen)).to.deep.equal(numbers(300).filter((payload) => payload !== '7'))
        expect(names).to.deep.equal(new Set([name]))
        expect([worker.counts.rejected, worker.counts.failed]).to.deep.equal([1, 1])
        expect((await queue.counts()).dead).to.equal(1)
        await worker.close()
        expect((await queue.counts()).inFlight).to.equal(0)
      })

      it('extend long messages in all shards, besides an ordinary queue', async () => {
        const { queue, client, name } = open()
        const plain = client.getReliableQueue<string>(`${name}:plain`, { codec: codecs.string() })
        onCleanup(() => (cluster === undefined ? forget([plain.name]) : undefined))
        let running = 0
        const visibilityTimeout = 2_000
        const [worker, other] = [0, 1].map(() =>
          client.createWorker(
            [plain, { queue, weight: 2 }],
            async (_payload, { message: { id, polledAt } }) => {
              running++
              // until it is extended after its first visibility would have ended
              await eventually(
                async () => {
                  const info = (await plain.get(id)) ?? (await queue.get(id))
                  expect(info?.visibleAt).to.be.greaterThan(polledAt + 2 * visibilityTimeout)
                },
                20_000,
                100,
              )
            },
            { concurrency: 30, visibilityTimeout },
          ),
        )
        await plain.add('plain')
        await queue.addMany(numbers(20).map((payload) => ({ payload })))
        await eventually(() => expect(worker!.counts.completed + other!.counts.completed).to.equal(21), 30_000)
        expect(running, 'each was handled once').to.equal(21)
      })
    })

    describe('another number of shards', () => {
      it('more: earlier messages are found and polled, and a new one meets that of the same id', async () => {
        const { queue: before, client, name } = open({ shards: 3 })
        await before.setConfig({ visibilityTimeout: 12_345 })
        await before.addMany(numbers(60).map((id) => ({ payload: id, id, delay: LATER })))
        await before.upsertSchedule('daily', 'x', { every: 3_600_000 })
        const { queue } = open({ shards: 8, formerShards: 3, client, name })
        await queue.setConfig(await queue.getConfig())
        expect(await client.getReliableQueue(queue.names[7]!).getConfig()).to.deep.equal({ visibilityTimeout: 12_345 })
        expect((await queue.getAll(numbers(60))).map((info) => info?.payload)).to.deep.equal(numbers(60))
        const again = await queue.addMany(numbers(70).map((id) => ({ payload: `new ${id}`, id, delay: LATER })))
        expect(again.map(({ outcome }) => outcome)).to.deep.equal(
          numbers(70).map((_, at) => (at < 60 ? 'kept' : 'added')),
        )
        await queue.upsertSchedule('daily', 'x', { every: 3_600_000 })
        expect(await queue.listSchedules()).to.have.length(1)
        expect(await queue.containsMany(numbers(70))).to.equal(70)
        for (const id of numbers(70)) expect(await queue.reschedule(id, 0), id).to.equal(true)
        await queue.removeSchedule('daily')
        expect(sorted((await handled(queue, 70)).map(({ id }) => id))).to.deep.equal(numbers(70))
      })

      for (const [what, shards] of [
        ['more', { before: 3, after: 8 }],
        ['fewer', { before: 8, after: 3 }],
      ] as const) {
        it(`${what}: a dead letter whose id was added again stays, and the others are redriven`, async () => {
          const { queue: before, client, name } = open({ shards: shards.before })
          // more than are looked for together; the first ones stay, and some have a group
          const ids = numbers(240)
          await before.setConfig({ deliveryLimit: 1 })
          await before.addMany(
            ids.map((id, at) => ({ payload: 'old', id, ...(at % 3 === 0 && { group: `g${at % 5}` }) })),
          )
          while ((await before.counts()).dead < 240)
            await before.negativeAcknowledge(await before.pollMany({ count: 300 }), { reject: true })
          await before.deadLetters.add('old', { id: '240', group: 'added there' })

          const { queue } = open({ shards: shards.after, formerShards: shards.before, client, name })
          const again = ids.filter((id) => shardOfKey(id, shards.before) !== shardOfKey(id, shards.after)).slice(0, 110)
          expect(again.length).to.equal(110)
          await queue.addMany(again.map((id) => ({ payload: 'new', id, delay: LATER })))
          const left = ids.filter((id) => !again.includes(id))
          expect(await queue.redrive(50)).to.equal(50)
          expect(await queue.redrive(1_000)).to.equal(left.length - 50 + 1)
          expect(await queue.redrive(1_000)).to.equal(0)
          expect(sorted(await idsOf(queue.deadLetters.listAll()))).to.deep.equal(sorted(again))
          expect(sorted(await idsOf(queue.listAll())), 'none is there twice').to.deep.equal(numbers(241))

          await queue.remove(...again)
          expect(await queue.redrive(1_000)).to.equal(110)
          expect(payloadsOf(await handled(queue, 241))).to.deep.equal(numbers(241).map(() => 'old'))
          expect((await queue.counts()).dead).to.equal(0)
        })
      }

      it('a redrive counts what it moved, and goes on without the dead letters that need a silent shard', async () => {
        const { queue: before, client, name } = open({ shards: 3 })
        await before.setConfig({ deliveryLimit: 1 })
        await before.addMany(numbers(240).map((id) => ({ payload: id, id })))
        while ((await before.counts()).dead < 240)
          await before.negativeAcknowledge(await before.pollMany({ count: 300 }), { reject: true })

        const { queue } = open({ shards: 8, formerShards: 3, client, name })
        const silent = queue.shards[5]!
        let asked = 0
        silent.contains = async () => {
          asked++
          throw new ConnectionError('this shard is silent', 'not-applied')
        }
        const needIt = numbers(240).filter((id) => queue.shardsOf(id).includes(silent))
        expect(needIt.length).to.be.greaterThan(3)
        expect(await queue.redrive(20)).to.equal(20)
        expect((await queue.counts()).dead).to.equal(220)
        expect(await queue.redrive(1_000)).to.equal(220 - needIt.length)
        expect(sorted(await idsOf(queue.deadLetters.listAll()))).to.deep.equal(sorted(needIt))
        asked = 0
        expect(await rejection(queue.redrive())).to.be.instanceOf(ConnectionError)
        expect(asked, 'it is not asked again for each dead letter').to.be.at.most(needIt.length)
        Reflect.deleteProperty(silent, 'contains')
        expect(await queue.redrive()).to.equal(needIt.length)
      })

      it('dead letters of one id in two shards come back one after the other', async () => {
        const { queue: before, client, name } = open({ shards: 3 })
        const id = numbers(100).find((each) => shardOfKey(each, 3) !== shardOfKey(each, 8)) ?? ''
        const { queue: after } = open({ shards: 8, formerShards: 3, client, name })
        for (const queue of [before, after]) {
          await queue.add('x', { id })
          await queue.negativeAcknowledge(await after.pollMany({ count: 1, timeout: 10_000 }), { reject: true })
        }
        expect((await after.counts()).dead).to.equal(2)
        for (const left of [1, 0]) {
          expect(await after.redrive()).to.equal(1)
          expect((await after.counts()).dead).to.equal(left)
          await handled(after, 1)
        }
      })

      it('a schedule that moves continues after its last prepared tick', async () => {
        const { queue: before, client, name } = open({ shards: 3 })
        const id = numbers(100).find((each) => shardOfKey(each, 3) !== shardOfKey(each, 8)) ?? ''
        const schedule = ['x', { every: 3_600_000, missed: 'all' }] as const
        await before.upsertSchedule(id, ...schedule)
        const next = (await before.listSchedules())[0]!.lastPrepared.getTime()
        // as if nothing had polled the shard for ten hours
        const { repeats, ticks } = reliableKeys(before.names[shardOfKey(id, 3)]!)
        const raw = place.holderOf(repeats)
        const state = (await raw.hget(repeats, id))!
        const last = next - 36_000_000
        await raw.hset(repeats, id, state.replace(String(next), String(last)))
        await raw.zadd(ticks, last, id)
        await before.remove(`${id}@${next}`)

        const { queue } = open({ shards: 8, formerShards: 3, client, name })
        expect(await queue.upsertSchedule(id, ...schedule)).to.equal(true)
        expect(await queue.upsertSchedule(id, ...schedule)).to.equal(false)
        const missed = (await handled(queue, 9)).map((message) => message.id).sort()
        expect(missed).to.deep.equal(numbers(9).map((_, at) => `${id}@${last + 3_600_000 * (at + 1)}`))
        const [info, ...others] = await queue.listSchedules()
        expect(others).to.deep.equal([])
        expect(info!.lastPrepared.getTime()).to.be.at.least(next)
      })

      it('fewer: those beyond get no new ids, and are polled and read until they are empty', async () => {
        const { queue: before, client, name } = open({ shards: 8 })
        await before.addMany(numbers(80).map((id) => ({ payload: id, id, delay: LATER })))
        const { queue } = open({ shards: 3, formerShards: 8, client, name })
        const beyond = async () => (await queue.sizes()).slice(3).reduce((sum, size) => sum + size, 0)
        const left = await beyond()
        expect(left).to.be.greaterThan(10)
        await queue.addMany(numbers(40, 80).map((id) => ({ payload: id, id, delay: LATER })))
        expect(await beyond()).to.equal(left)
        expect(await queue.containsMany(numbers(120))).to.equal(120)
        expect(queue.shardCount).to.equal(3)
        expect(queue.shards.map((shard) => shard.name)).to.deep.equal(before.names)
        expect(await Promise.all(queue.shards.map((shard) => shard.size()))).to.deep.equal(await queue.sizes())
        const [id = ''] = numbers(40, 80)
        expect(await queue.shardsOf(id)[0].contains(id)).to.equal(true)
        expect(queue.deadLetters.shards.map((shard) => shard.name)).to.deep.equal(before.names.map(deadLettersOf))
        for (const id of numbers(120)) await queue.reschedule(id, 0)
        await handled(queue, 120)
        expect(await beyond()).to.equal(0)
      })

      it('while producers and workers run: nothing is lost, and nothing is handled twice', async () => {
        const { queue: before, client, name } = open({ shards: 2 })
        const { queue: after } = open({ shards: 8, formerShards: 2, client, name })
        const seen: string[] = []
        const note = (payload: string) => void seen.push(payload)
        const old = client.createWorker(before, note, { concurrency: 5 })
        const adding = (queue: Queue, from: number) =>
          Promise.all(numbers(150, from).map((payload) => queue.add(payload, { delay: Number(payload) % 200 })))
        await adding(before, 0)
        const wide = client.createWorker(after, note, { concurrency: 5 })
        await Promise.all([adding(before, 150), adding(after, 300)])
        await old.close()
        await adding(after, 450)
        await eventually(() => expect(seen.length).to.be.at.least(600), 20_000)
        await wide.close()
        expect(sorted(seen)).to.deep.equal(numbers(600))
        expect(await after.isEmpty()).to.equal(true)
      })
    })
  })
}

describe('a sharded reliable queue, wrong arguments', () => {
  afterEach(cleanUp)

  const wrong: [options: Record<string, unknown>, says: string[]][] = [
    [{}, ['shards', 'undefined']],
    [{ shards: 0 }, ['shards', '1 to 256', '0']],
    [{ shards: 257 }, ['shards', '257']],
    [{ shards: 1.5 }, ['shards', '1.5']],
    [{ shards: NaN }, ['shards', 'NaN']],
    [{ shards: '4' }, ['shards', 'a string of 1 character']],
    [{ shards: [4] }, ['shards', 'array']],
    [{ shards: 4, formerShards: 0 }, ['formerShards', '0']],
    [{ shards: 4, formerShards: 1e9 }, ['formerShards', '1000000000']],
    [{ shards: 4, codec: {} }, ['codec']],
    [{ shards: 4, layout: 'compact' }, ['options.layout', 'formerShards']],
  ]
  for (const [options, says] of wrong) {
    it(`${JSON.stringify(options)} is refused`, async () => {
      const open = () =>
        makeClient().getShardedReliableQueue('x', options as unknown as ShardedReliableQueueOptions<string>)
      await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', says }], open)
    })
  }

  it('names that would put all shards into one slot are refused, and mappers that make all names alike', () => {
    for (const name of ['', '{a}', 'a}b']) {
      expect(() => makeClient().getShardedReliableQueue(name, { shards: 2 }), name).to.throw(InvalidArgumentError)
    }
    const alike = makeClient({ nameMapper: { map: () => 'x', unmap: (name) => name } })
    expect(() => alike.getShardedReliableQueue('a', { shards: 2 })).to.throw(InvalidArgumentError, /nameMapper/)
  })

  it('a mapper decides what the shards are called in Redis, and their dead letters stay in their slots', async () => {
    const client = makeClient({ nameMapper: { map: (name) => `app:${name}`, unmap: (name) => name.slice(4) } })
    const queue = client.getShardedReliableQueue<string>(uniqueName('mapped'), { shards: 3, codec: codecs.string() })
    onCleanup(() => forget(queue.names.map((name) => `app:${name}`)))
    await queue.setConfig({ deliveryLimit: 1 })
    const { id } = await queue.add('a')
    expect(await rawClient().hexists(reliableKeys(`app:${queue.names[shardOfKey(id, 3)]!}`).messages, id)).to.equal(1)
    await queue.negativeAcknowledge(await queue.pollMany({ count: 1 }))
    expect((await queue.deadLetters.get(id))?.payload).to.equal('a')
    expect(await queue.redrive()).to.equal(1)
  })
})

describe('a sharded reliable queue that is idle', () => {
  afterEach(cleanUp)

  it('sends no script while it waits, and one for a message in one shard', async function () {
    requireServerBin(this)
    const server = await startRedis()
    onCleanup(() => server.stop())
    const raw = rawTo(server.port)
    const client = makeClient({ url: server.url, sweepInterval: 3_600_000 })
    const queue = client.getShardedReliableQueue<string>('idle', { shards: SHARDS, codec: codecs.string() })
    const scripts = async (): Promise<number> => {
      const stats = await raw.info('commandstats')
      return ['eval', 'evalsha'].reduce(
        (sum, name) => sum + Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
        0,
      )
    }
    const settled = async (): Promise<number> => {
      let before = -1
      await eventually(
        async () => {
          const [last, now] = [before, await scripts()]
          before = now
          expect(now).to.equal(last)
        },
        10_000,
        300,
      )
      return before
    }
    const first = queue.poll({ timeout: Infinity })
    const atRest = await settled()
    expect(await settled(), 'while nothing comes').to.equal(atRest)
    // a consumer in a loop: the waits at the other shards go on
    let message = first
    for (const payload of numbers(10)) {
      await queue.add(payload)
      const polled = await message
      message = queue.poll({ timeout: Infinity })
      expect(polled?.payload).to.equal(payload)
      await polled?.acknowledge()
    }
    const perMessage = ((await settled()) - atRest) / 10
    expect(perMessage, 'add, poll, acknowledge, and poll once more').to.be.at.most(5)
    await queue.add('last')
    expect((await message)?.payload).to.equal('last')
  })
})

describe('a sharded reliable queue, when a master of a cluster dies', function () {
  this.timeout(60_000)
  let cluster: ClusterSetup
  before(async function () {
    requireServerBin(this)
    cluster = await startCluster({ replicas: 0 })
  })
  after(() => cluster?.stop())
  afterEach(cleanUp)

  it('the other shards continue, and calls that need the dead one report it', async () => {
    const client = makeClient({ cluster: cluster.nodes, commandTimeout: 1_000, connectTimeout: 1_000 })
    client.on('error', () => {})
    const queue = client.getShardedReliableQueue<string>(uniqueName('sharded'), { shards: 6, codec: codecs.string() })
    // else a cluster without one of its masters refuses everything
    for (const { port } of cluster.servers) await rawTo(port).config('SET', 'cluster-require-full-coverage', 'no')
    expect(await queue.size(), 'connected').to.equal(0)
    await cluster.servers[0]!.kill('SIGKILL')
    onCleanup(() => cluster.servers[0]!.restart())
    const isDead = (id: string) => keySlot(queue.names[shardOfKey(id, 6)]!) < 5_461
    const ids = numbers(60)
    const failed = await eventuallyAdds(queue, ids)
    expect(failed.failures.map(({ index }) => isDead(ids[index]!)).every(Boolean)).to.equal(true)
    const alive = ids.filter((id) => !isDead(id))
    const got = new Set<string>()
    await eventually(async () => {
      for (const message of await queue.pollMany({ count: 100, timeout: 2_000 })) {
        if (await message.acknowledge()) got.add(message.id)
      }
      expect(sorted(got)).to.deep.equal(sorted(alive))
    }, 30_000)
    expect(await rejection(queue.counts())).to.be.instanceOf(RedelayedError)
  })
})

/** Until only those fail whose master is dead. */
function eventuallyAdds(queue: Queue, ids: readonly string[]): Promise<AddManyError> {
  return eventually(async () => {
    const error = await addingFails(queue, ids)
    for (const { index } of error.failures)
      expect(keySlot(queue.names[shardOfKey(ids[index]!, queue.shardCount)]!), ids[index]).to.be.below(5_461)
    return error
  }, 30_000)
}

async function addingFails(queue: Queue, ids: readonly string[]): Promise<AddManyError> {
  const error = await rejection(queue.addMany(ids.map((id) => ({ payload: id, id }))))
  if (error instanceof AddManyError) return error
  throw error
}
