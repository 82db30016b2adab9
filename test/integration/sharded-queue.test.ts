import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { keySlot } from '../../src/redis/topology/key-slot.js'
import {
  AuthError,
  ConnectionError,
  DurabilityError,
  InvalidArgumentError,
  InvalidTicketError,
  OfferAllError,
  PayloadTooLargeError,
  RedelayedError,
  ShutdownError,
  codecs,
  dueOf,
  type ClientOptions,
  type RedelayedClient,
  type ShardedDelayedQueue,
  type ShardedDelayedQueueOptions,
  type ShardedOfferItem,
} from '../../src/index.js'
import { sourceOf } from '../../src/sharding/shard-source.js'
import { shardOfKey } from '../../src/sharding/shard-of-key.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startCluster, startRedis, type ClusterSetup } from '../support/redis-server.js'
import { deleteKeysOf, rawClient, uniqueName } from '../support/redis.js'
import { startProxy } from '../support/tcp-proxy.js'
import {
  cleanUp,
  expectError,
  javaOffer,
  makeClient,
  numbers,
  onCleanup,
  rawKeys,
  rawTo,
  redisNow,
  rejection,
  track,
  untilRedisClock,
} from './fixtures.js'

/** Long enough to stay pending for the whole test. */
const LATER = 600_000

type Options = Partial<ShardedDelayedQueueOptions<string>>

interface Opened {
  readonly client: RedelayedClient
  readonly name: string
  readonly queue: ShardedDelayedQueue<string>
}

/** How to reach a place, and the server there that holds a key. */
interface Place {
  readonly options: ClientOptions
  holderOf(key: string): Redis
}

/** A queue of strings on a fresh name, or on a given one. */
function openAt(
  { options }: Place,
  { name = uniqueName(), client: given, ...queueOptions }: Options & { name?: string; client?: ClientOptions } = {},
): Opened {
  const names: string[] = []
  if (options.cluster === undefined && options.redis === undefined)
    onCleanup(() => Promise.all(names.map(deleteKeysOf))) // after the shutdown
  const client = makeClient({ ...options, ...given })
  const queue = client.getShardedDelayedQueue<string>(name, { shards: 8, codec: codecs.string(), ...queueOptions })
  names.push(...queue.names)
  return { client, name, queue }
}

function placeOf(cluster: ClusterSetup | undefined): Place {
  if (cluster === undefined) return { options: {}, holderOf: rawClient }
  const raws = cluster.servers.slice(0, 3).map(({ port }) => rawTo(port))
  const holderOf = (key: string): Redis => raws[Math.min(2, Math.floor(keySlot(key) / 5461))]!
  return { options: { cluster: cluster.nodes, blockingConnections: 8 }, holderOf }
}

/** The elements that wait in Redis to be taken, shard by shard. */
async function listsOf(place: Place, queue: ShardedDelayedQueue<string>): Promise<string[][]> {
  return Promise.all(queue.names.map((name) => place.holderOf(name).lrange(name, 0, -1)))
}

/** Takes exactly so many, and says so when there are more. */
async function takeAll(queue: ShardedDelayedQueue<string>, count: number): Promise<string[]> {
  const values: string[] = []
  while (values.length < count) {
    const more = await queue.takeMany(1_000, { timeout: 8_000 })
    if (more.length === 0) throw new Error(`only ${values.length} of ${count} came`)
    values.push(...more)
  }
  expect(values).to.have.length(count)
  return values
}

/** Something to wait for. */
function signalOf(): { given: Promise<void>; give: () => void } {
  let give = (): void => {}
  const given = new Promise<void>((resolve) => (give = resolve))
  return { given, give: () => give() }
}

const sorted = (values: Iterable<string>) => [...values].sort((a, b) => Number(a) - Number(b))

for (const where of ['one server', 'a cluster']) {
  describe(`a sharded queue on ${where}`, function () {
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

    const open = (options?: Parameters<typeof openAt>[1]): Opened => openAt(place, options)

    describe('offers', () => {
      it('spread evenly over the shards, which lie in different slots', async () => {
        const { queue } = open()
        await queue.offerAll(numbers(80).map((value) => ({ value, delay: LATER })))
        for (const value of numbers(8)) await queue.offer(value, 10, 'minutes')
        for (const value of numbers(8)) await queue.offerAt(value, new Date(Date.now() + LATER))
        expect(await queue.sizes()).to.deep.equal(new Array(8).fill(12))
        expect(await queue.size()).to.equal(96)
        expect(sorted(await queue.readAll())).to.have.length(96)
        const slots = queue.names.map(keySlot)
        expect(new Set(slots).size).to.equal(8)
        for (const name of queue.names) expect(await place.holderOf(name).zcard(rawKeys(name).timeouts)).to.equal(12)
        if (cluster === undefined) return
        const asked = await Promise.all(queue.names.map((name) => place.holderOf(name).cluster('KEYSLOT', name)))
        expect(asked).to.deep.equal(slots)
        const held = [0, 1, 2].map((node) => slots.filter((slot) => Math.floor(slot / 5461.5) === node).length)
        expect(held).to.deep.equal([3, 3, 2])
      })

      it('of one key go to one shard and keep their order; keys spread', async () => {
        const { queue } = open()
        const items = numbers(400).map((n) => ({ value: n, delay: 40, key: `key ${Number(n) % 20}` }))
        await queue.offerAll(items.slice(0, 200))
        for (const { value, delay, key } of items.slice(200, 220)) await queue.offer(value, delay, { key })
        for (const { value, delay, key } of items.slice(220, 240)) {
          await queue.offer(value, delay, 'milliseconds', { key })
        }
        await queue.offerAll(items.slice(240))
        const taken = await takeAll(queue, 400)
        for (let key = 0; key < 20; key++) {
          const ofKey = taken.filter((value) => Number(value) % 20 === key)
          expect(ofKey, `key ${key}`).to.deep.equal(sorted(ofKey))
        }
        await queue.offerAt('pending', new Date(Date.now() + LATER), { key: 'one' })
        await queue.offerAll(numbers(9).map((value) => ({ value, delay: LATER, key: 'one' })))
        expect((await queue.sizes()).filter((size) => size > 0)).to.deep.equal([10])
        await queue.offerAll(numbers(100).map((value) => ({ value, delay: LATER, key: value })))
        expect((await queue.sizes()).filter((size) => size > 0).length).to.equal(8)
      })

      it('offerAll gives tickets in order, each with its due time', async () => {
        const { queue } = open()
        const items = numbers(300).map((value) => ({ value, delay: LATER + 10_000 * Number(value) }))
        const tickets = await queue.offerAll(new Set(items))
        const dues = tickets.map(dueOf)
        for (let i = 1; i < dues.length; i++) expect(dues[i]! - dues[i - 1]!).to.be.within(5_000, 15_000)
        for (const [i, ticket] of tickets.entries()) if (i % 3 === 0) expect(await queue.cancel(ticket)).to.equal(true)
        expect(sorted(await queue.readAll())).to.deep.equal(numbers(300).filter((_, i) => i % 3 !== 0))
        expect(await queue.offerAll([])).to.deep.equal([])
      })

      it('offerAll with wrong items sends nothing and names all of them', async () => {
        const { queue, name } = open()
        const items: ShardedOfferItem<string>[] = numbers(50).map((value) => ({ value, delay: LATER }))
        items[3] = { value: '3', delay: -1 }
        items[20] = { value: '20', delay: 5, key: '' }
        items[30] = { value: '30', delay: 5, key: 7 as unknown as string }
        items[40] = null as never
        items[49] = { value: null as never, delay: 5 }
        const error = await rejection(queue.offerAll(items))
        if (!(error instanceof OfferAllError)) throw error
        expect(error.failures.map(({ index }) => index)).to.deep.equal([3, 20, 30, 40, 49])
        for (const { error: each } of error.failures) expect(each).to.be.an.instanceOf(InvalidArgumentError)
        expect(error.failures.map(({ error: { message } }) => message).join()).to.include('items[20].key')
        expect(error.queue).to.equal(name)
        expect(error.tickets).to.deep.equal(items.map(() => null))
        expect(await queue.size()).to.equal(0)
      })

      it('offerAll with items that servers refuse sends the others', async () => {
        const { queue, name } = open()
        const refused = [0, 17, 250, 299]
        const items = numbers(300).map((value, index) => ({
          value,
          delay: refused.includes(index) ? Number.MAX_SAFE_INTEGER : LATER,
        }))
        const error = await rejection(queue.offerAll(items))
        if (!(error instanceof OfferAllError)) throw error
        expect(error.failures.map(({ index }) => index)).to.deep.equal(refused)
        expect(error.queue).to.equal(name)
        expect(queue.names).to.include(error.failures[0]!.error.queue)
        error.tickets.forEach((ticket, index) => expect(ticket === null).to.equal(refused.includes(index)))
        expect(sorted(await queue.readAll())).to.deep.equal(numbers(300).filter((_, index) => !refused.includes(index)))
        expect(await queue.cancel(error.tickets[1]!)).to.equal(true)
      })

      it('offerAll where one shard is broken sends to the others, and the errors name the shard', async () => {
        const { queue, client } = open({ deliver: false })
        client.on('error', () => {})
        const broken = queue.names[2]!
        await place.holderOf(broken).set(rawKeys(broken).timeouts, 'no schedule')
        const error = await rejection(queue.offerAll(numbers(80).map((value) => ({ value, delay: LATER }))))
        if (!(error instanceof OfferAllError)) throw error
        expect(error.failures).to.have.length(10)
        for (const { error: each } of error.failures) expect(each).to.include({ code: 'ERR_WRONG_TYPE', queue: broken })
        expect(error.tickets.filter((ticket) => ticket !== null)).to.have.length(70)
        expect(await rejection(queue.size())).to.include({ code: 'ERR_WRONG_TYPE', queue: broken })
      })

      it('with a durability that is not reached carry tickets that fit', async () => {
        const { queue } = open()
        const durability = { replicas: 3, timeoutMs: 20 }
        const error = await rejection(queue.offer('a', LATER, 'milliseconds', { durability, key: 'k' }))
        if (!(error instanceof DurabilityError)) throw error
        expect(await queue.cancel(error.ticket)).to.equal(true)
        const many = await rejection(queue.offerAll([{ value: 'b', delay: LATER }], { durability }))
        if (!(many instanceof OfferAllError)) throw many
        const [failure] = many.failures
        if (!(failure?.error instanceof DurabilityError)) throw many
        expect(await queue.cancel(failure.error.ticket)).to.equal(true)
        expect(await queue.size()).to.equal(0)
      })
    })

    describe('tickets', () => {
      it('cancel and reschedule, from another object and of shards beyond its number', async () => {
        const { queue, name } = open()
        const { queue: smaller } = open({ name, shards: 2, deliver: false })
        const tickets = await queue.offerAll(numbers(16).map((value) => ({ value, delay: LATER })))
        expect(new Set(tickets.map((ticket) => ticket.split('.')[0])).size).to.equal(8)
        for (const ticket of tickets.slice(0, 8)) {
          expect(await smaller.cancel(ticket)).to.equal(true)
          expect(await queue.cancel(ticket)).to.equal(false)
          expect(await queue.reschedule(ticket, 5)).to.equal(null)
        }
        for (const ticket of tickets.slice(8)) {
          const later = await smaller.reschedule(ticket, 20, 'minutes')
          expect(dueOf(later!) - dueOf(ticket)).to.be.within(LATER, LATER + 60_000)
          expect(await queue.reschedule(later!, 10)).to.be.a('string')
        }
        expect(sorted(await takeAll(queue, 8))).to.deep.equal(numbers(8, 8))
        await smaller.destroy()
      })

      it('that are none are refused', async () => {
        const { queue, name, client } = open()
        const ticket = await queue.offer('a', LATER)
        const [shard, inner] = ticket.split('.') as [string, string]
        const plain = client.getDelayedQueue(client.getQueue<string>(queue.names[Number(shard)]!))
        expect(await plain.cancel(inner), 'it is that of the shard').to.equal(true)
        const others = [
          inner,
          `${(Number(shard) + 1) % 8}.${inner}`,
          `255.${inner}`,
          `256.${inner}`,
          `0${shard}.${inner}`,
        ]
        for (const other of [...others, `${shard}.`, `${shard}.${shard}.${inner}`, 'garbage', '', undefined, null, 7]) {
          for (const call of [queue.cancel(other as string), queue.reschedule(other as string, 5)]) {
            const error = await rejection(call)
            expect(error, String(other)).to.be.an.instanceOf(InvalidTicketError)
            expect(error.queue).to.satisfy((queueName: string) => queueName.startsWith(name))
          }
        }
        await plain.destroy()
      })
    })

    describe('pending messages', () => {
      it('are counted, read, found, removed and deleted over all shards', async () => {
        const { queue } = open({ shards: 5 })
        expect(await queue.delete()).to.equal(false)
        await queue.offerAll(numbers(20).map((value) => ({ value, delay: LATER })))
        expect(await queue.contains('7')).to.equal(true)
        expect(await queue.remove('7')).to.equal(true)
        expect(await queue.remove('7')).to.equal(false)
        expect(await queue.contains('7')).to.equal(false)
        expect(sorted(await queue.readAll())).to.deep.equal(numbers(20).filter((value) => value !== '7'))
        await queue.offer('now', 0)
        await eventually(async () => expect(await queue.readySize()).to.equal(1))
        expect(await queue.delete()).to.equal(true)
        expect(await queue.sizes()).to.deep.equal([0, 0, 0, 0, 0])
        expect(await queue.poll()).to.equal('now')
      })

      it("layout: 'redisson' writes the order lists too", async () => {
        const { queue } = open({ shards: 2, layout: 'redisson' })
        expect(queue.layout).to.equal('redisson')
        await queue.offerAll(numbers(4).map((value) => ({ value, delay: LATER })))
        for (const name of queue.names) expect(await place.holderOf(name).llen(rawKeys(name).order)).to.equal(2)
        expect(open().queue.layout).to.equal('compact')
      })

      it('each shard is an ordinary delayed queue, for Java and for us', async () => {
        const { queue, client } = open({ shards: 4 })
        const name = queue.names[3]!
        const raw = place.holderOf(name)
        await javaOffer(name, 'from Java', (await redisNow(raw)) + 20, { redis: raw })
        expect(await queue.take()).to.equal('from Java')
        const plain = client.getBlockingQueue<string>(name, { codec: codecs.string() })
        await client.getDelayedQueue(plain).offer('by its name', 10)
        expect(await queue.take()).to.equal('by its name')
        const waiting = plain.take()
        for (let i = 0; i < 4; i++) await queue.offer('for the plain one', 10)
        expect(await waiting).to.equal('for the plain one')
        expect(await takeAll(queue, 3)).to.deep.equal(new Array(3).fill('for the plain one'))
      })

      it('an undecodable element goes to the quarantine of its shard, and the rest continues', async () => {
        const { queue, client } = open({ shards: 3, codec: codecs.json() })
        const heard: unknown[] = []
        client.on('quarantined', (event) => heard.push(event))
        for (const [i, name] of queue.names.entries()) await place.holderOf(name).rpush(name, 'no json', `"${i}"`)
        expect(sorted(await takeAll(queue, 3))).to.deep.equal(numbers(3))
        const entries = await queue.readQuarantine()
        expect(entries.map(({ bytes }) => bytes.toString())).to.deep.equal(['no json', 'no json', 'no json'])
        expect(await queue.readQuarantine(2)).to.have.length(2)
        expect(heard).to.have.length(3)
        expect(await queue.clearQuarantine()).to.equal(true)
        expect(await queue.readQuarantine()).to.deep.equal([])
      })
    })

    describe('taking', () => {
      it('every element comes once, to many consumers in two clients', async () => {
        const { queue, name } = open()
        const { queue: other } = open({ name })
        const count = 5_000
        const taken: string[] = []
        const controller = new AbortController()
        const { signal } = controller
        const accept = (values: string[]): void => {
          taken.push(...values)
          if (taken.length >= count) controller.abort()
        }
        const consumers = [
          async () => {
            for await (const value of queue.elements({ signal })) accept([value])
          },
          async () => {
            for (;;) accept(await queue.takeMany(17, { signal }))
          },
          async () => {
            for (;;) {
              const value = await other.poll(1, 'seconds', { signal })
              if (value !== null) accept([value])
            }
          },
        ]
        const ended = Promise.allSettled(consumers.map((consume) => consume()))
        await queue.offerAll(numbers(count).map((value) => ({ value, delay: 20 + (Number(value) % 7) * 30 })))
        await ended
        expect(sorted(taken)).to.deep.equal(numbers(count))
        expect((await listsOf(place, queue)).flat()).to.deep.equal([])
      })

      it('a message is taken as soon as it is due, from whichever shard', async () => {
        const { queue } = open()
        const lateness = queue.names.map((): number[] => [])
        for (let i = 0; i < 40; i++) {
          const waiting = queue.take()
          const ticket = await queue.offer(String(i), 30 + (i % 5))
          expect(await waiting).to.equal(String(i))
          const shard = Number(ticket.split('.')[0])
          lateness[shard]!.push((await redisNow(place.holderOf(queue.names[shard]!))) - dueOf(ticket))
        }
        expect(lateness.map(({ length }) => length)).to.deep.equal(queue.names.map(() => 5))
        expect(Math.min(...lateness.flat())).to.be.at.least(0)
        // the best of each: a shard that is not listened to is late every time, a busy machine now and then
        const best = lateness.map((ofShard) => Math.min(...ofShard))
        expect(Math.max(...best), JSON.stringify(lateness)).to.be.below(50)
      })

      it('the ways of taking: poll, poll with a timeout, takeMany, drainTo, and the iterator', async () => {
        const { queue } = open({ shards: 4, deliver: false })
        expect(await queue.poll()).to.equal(null)
        expect(await queue.poll(0)).to.equal(null)
        expect(await queue.poll(20)).to.equal(null)
        expect(await queue.poll(0.02, 'seconds')).to.equal(null)
        expect(await queue.takeMany(5, { timeout: 20 })).to.deep.equal([])
        expect(await queue.takeMany(5, { timeout: 0 })).to.deep.equal([])
        expect(await queue.drainTo()).to.deep.equal([])
        expect(await queue.drainTo(0)).to.deep.equal([])
        for (const [i, name] of queue.names.entries()) {
          await place.holderOf(name).rpush(name, ...numbers(5, 5 * i))
        }
        expect(await queue.readySize()).to.equal(20)
        const taken = [await queue.poll(), await queue.poll(0), await queue.poll(1, 'minutes')] as string[]
        taken.push(...(await queue.drainTo(4)), ...(await queue.takeMany(3, { timeout: 0 })))
        expect(taken).to.have.length(10)
        for await (const value of queue) if (taken.push(value) === 13) break
        taken.push(...(await queue.drainTo()))
        expect(sorted(taken)).to.deep.equal(numbers(20))
        expect(await queue.poll()).to.equal(null)
      })

      it('a poll finds an element that came while the last wait still lingered', async () => {
        const { queue } = open({ shards: 4, deliver: false })
        const name = queue.names[1]!
        for (let i = 0; i < 20; i++) {
          const waiting = queue.take()
          await place.holderOf(name).rpush(name, 'first')
          expect(await waiting).to.equal('first')
          for (const other of queue.names) await place.holderOf(other).rpush(other, 'a')
          expect(await queue.drainTo()).to.deep.equal(['a', 'a', 'a', 'a'])
        }
      })

      it('aborts and timeouts at random moments lose nothing and give nothing twice', async () => {
        const { queue, client } = open()
        const count = 600
        const taken: string[] = []
        const tickets = queue.offerAll(numbers(count).map((value) => ({ value, delay: Number(value) % 500 })))
        const consume = async (): Promise<void> => {
          for (let round = 0; taken.length < count - 100; round++) {
            const controller = new AbortController()
            const { signal } = controller
            setTimeout(() => controller.abort(new Error('enough')), Math.random() * 6)
            const call =
              round % 2 === 0 ? queue.take({ signal }) : queue.poll(1 + Math.floor(Math.random() * 5), { signal })
            const value = await call.catch((error: Error) => {
              if (error.message !== 'enough') throw error
              return null
            })
            if (value !== null) taken.push(value)
          }
        }
        await Promise.all([consume(), consume(), tickets])
        await eventually(async () => expect(await queue.size()).to.equal(0))
        await client.shutdown()
        expect(sorted([...taken, ...(await listsOf(place, queue)).flat()])).to.deep.equal(numbers(count))
      })

      it('consumers deliver, unless `consumersDeliver` is false', async () => {
        const { queue, name } = open({ shards: 3, deliver: false, consumersDeliver: false })
        const waiting = track(queue.take())
        const ticket = await queue.offer('a', 5)
        const shard = queue.names[Number(ticket.split('.')[0])]!
        await untilRedisClock(dueOf(ticket) + 30, place.holderOf(shard))
        expect(waiting.settled).to.equal(false)
        expect(await queue.size()).to.equal(1)
        const { queue: other } = open({ shards: 3, name, deliver: false })
        const first = other.take()
        expect(await Promise.race([waiting.promise, first])).to.equal('a')
        await queue.offer('b', 5)
        expect(await Promise.all([waiting.promise, first])).to.have.members(['a', 'b'])
      })

      it('a signal aborted before takes nothing', async () => {
        const { queue } = open({ shards: 2, deliver: false })
        const [name] = queue.names as [string]
        await place.holderOf(name).rpush(name, 'a')
        const reason = new Error('before')
        const signal = AbortSignal.abort(reason)
        const calls = [queue.take({ signal }), queue.poll(0, { signal }), queue.takeMany(1, { signal, timeout: 0 })]
        for (const call of calls) expect(await rejection(call)).to.equal(reason)
        expect(await queue.readySize()).to.equal(1)
      })

      it('a shard that cannot be taken from is reported, and the others continue', async () => {
        const { queue, client } = open({ shards: 3 })
        const broken = queue.names[1]!
        const keyOf0 = numbers(50).find((key) => shardOfKey(key, 3) === 0)
        await place.holderOf(broken).set(broken, 'no list')
        const errors: RedelayedError[] = []
        client.on('error', (error) => errors.push(error))
        for (let i = 0; i < 10; i++) {
          const waiting = queue.take()
          await queue.offer(String(i), 5, { key: keyOf0 })
          expect(await waiting).to.equal(String(i))
        }
        const waiting = track(queue.take())
        await eventually(() =>
          expect(errors.some(({ queue: of, code }) => of === broken && code === 'ERR_WRONG_TYPE')).to.equal(true),
        )
        expect(waiting.settled).to.equal(false)
        await place.holderOf(broken).del(broken)
        await place.holderOf(broken).rpush(broken, 'works again')
        expect(await waiting.promise).to.equal('works again')
      })
    })

    describe('the end', () => {
      /**
       * Takes from lists that are alike, while the same is popped from each of the others. That lasts 50 ms, which a busy machine
       * can sleep through: then what was taken is put back too, and all begins anew.
       */
      async function takeOfAll(queue: ShardedDelayedQueue<string>, count: number): Promise<string[]> {
        const before = await listsOf(place, queue)
        const popped = before.flat().length - count * before.length
        return eventually(async () => {
          const taken = await queue.takeMany(count * before.length)
          try {
            await eventually(async () => expect(await queue.readySize()).to.equal(popped), 40)
            return taken
          } catch (missed) {
            await eventually(async () => expect(await queue.readySize()).to.equal(before.flat().length - taken.length))
            const lists = await listsOf(place, queue)
            const from = queue.names[lists.findIndex(({ length }, i) => length < before[i]!.length)]!
            await place.holderOf(from).lpush(from, ...taken.toReversed())
            throw missed
          }
        })
      }

      /** Takes one of two elements in each shard, so that the others are at hand. */
      async function takeOneOfMany(queue: ShardedDelayedQueue<string>): Promise<string> {
        for (const [i, name] of queue.names.entries()) await place.holderOf(name).rpush(name, `${i}a`, `${i}b`)
        const [value = ''] = await takeOfAll(queue, 1)
        return value
      }

      it('several of one shard are put back in their order', async () => {
        const { queue, client } = open({ shards: 3, deliver: false })
        for (const name of queue.names) await place.holderOf(name).rpush(name, ...numbers(9))
        expect(await takeOfAll(queue, 3)).to.deep.equal(['0', '1', '2'])
        await client.shutdown()
        const lists = (await listsOf(place, queue)).toSorted((a, b) => b.length - a.length)
        expect(lists).to.deep.equal([numbers(9), numbers(9), numbers(6, 3)])
      })

      const restOf = (queue: ShardedDelayedQueue<string>, taken: string) =>
        queue.names.map((_, i) => [`${i}a`, `${i}b`].filter((value) => value !== taken))

      it('a shutdown puts back elements popped without a take, at their places; twice is fine', async () => {
        const { queue, client } = open({ shards: 5, deliver: false })
        const taken = await takeOneOfMany(queue)
        await Promise.all([client.shutdown(), client.shutdown()])
        await client.shutdown()
        expect(await listsOf(place, queue)).to.deep.equal(restOf(queue, taken))
        expect(await rejection(queue.take())).to.be.an.instanceOf(ShutdownError)
        expect(await rejection(queue.poll())).to.be.an.instanceOf(ShutdownError)
      })

      it('a take that begins while a shutdown waits for deliveries loses nothing', async () => {
        const { queue, client } = open({ shards: 5, deliver: false, consumersDeliver: false })
        for (const [i, name] of queue.names.entries()) await place.holderOf(name).rpush(name, `${i}a`, `${i}b`)
        expect(await queue.size()).to.equal(0) // it is connected
        const { transfers } = queue.handle.context
        const close = transfers.close.bind(transfers)
        const begun = signalOf()
        transfers.close = async () => {
          await begun.given
          await close()
        }
        const closing = client.shutdown()
        const taken = await queue.take()
        begun.give()
        await closing
        expect(await listsOf(place, queue)).to.deep.equal(restOf(queue, taken))
      })

      it('so does destroy, and a pause of the consumer', async () => {
        for (const end of ['destroy', 'pause']) {
          const { queue } = open({ shards: 5, deliver: false })
          const taken = await takeOneOfMany(queue)
          if (end === 'destroy') await queue.destroy()
          await eventually(async () => expect(await listsOf(place, queue)).to.deep.equal(restOf(queue, taken)))
        }
      })

      it('a consumer that ends leaves its elements to the others', async () => {
        const { queue, name } = open({ shards: 5, deliver: false })
        const { queue: other } = open({ shards: 5, name, deliver: false })
        const taken = await takeOneOfMany(queue)
        const all = [taken, ...(await takeAll(other, 9))]
        expect(all.toSorted()).to.deep.equal(restOf(queue, '').flat())
      })

      it('destroy ends waits and refuses calls; a second one does nothing', async () => {
        const { queue, name } = open()
        const waits = [queue.take(), queue.poll(60_000), queue.takeMany(5), queue.elements().next()].map(rejection)
        await queue.size()
        await queue.destroy()
        await queue.destroy()
        for (const error of await Promise.all(waits)) {
          expect(error).to.be.an.instanceOf(ShutdownError).and.to.have.property('queue', name)
        }
        const calls = [
          () => queue.offer('a', 5),
          () => queue.offerAt('a', new Date()),
          () => queue.offerAll([{ value: 'a', delay: 5 }]),
          () => queue.cancel('0.x'),
          () => queue.reschedule('0.x', 5),
          () => queue.take(),
          () => queue.poll(),
          () => queue.poll(5),
          () => queue.takeMany(5),
          () => queue.drainTo(),
          () => queue.size(),
          () => queue.readySize(),
          () => queue.readAll(),
          () => queue.contains('a'),
          () => queue.remove('a'),
          () => queue.delete(),
          () => queue.readQuarantine(),
        ]
        for (const call of calls) {
          await expectError([ShutdownError, { code: 'ERR_SHUTDOWN', queue: name }], call)
        }
      })

      it('a shutdown ends waits, and nothing can be got afterwards', async () => {
        const { queue, client, name } = open()
        const waiting = rejection(queue.take())
        await queue.size()
        await client.shutdown()
        expect(await waiting)
          .to.be.an.instanceOf(ShutdownError)
          .and.to.have.property('queue', name)
        expect(() => client.getShardedDelayedQueue(name, { shards: 2 })).to.throw(ShutdownError)
        expect(await rejection(queue.offerAll([{ value: 'a', delay: 5 }]))).to.be.an.instanceOf(ShutdownError)
      })
    })

    describe('another number of shards', () => {
      it('more: consumers first, then producers; nothing moves and nothing is lost', async () => {
        const { queue: before, name } = open({ shards: 4 })
        const keyed = numbers(100).map((value) => ({ value, delay: 100, key: value }))
        await before.offerAll(keyed)
        const { queue: consumer } = open({ shards: 8, name })
        expect(consumer.names.slice(0, 4)).to.deep.equal(before.names)
        const { queue: producer } = open({ shards: 8, name, deliver: false })
        await before.offerAll(keyed.map((item) => ({ ...item, value: `1${item.value.padStart(3, '0')}` })))
        await producer.offerAll(keyed.map((item) => ({ ...item, value: `2${item.value.padStart(3, '0')}` })))
        const taken = await takeAll(consumer, 300)
        expect(sorted(taken)).to.deep.equal([...numbers(100), ...numbers(100, 1_000), ...numbers(100, 2_000)])
      })

      it('fewer: with formerShards all are delivered and taken, and offers go to the first', async () => {
        const { queue: before, name } = open({ shards: 16, deliver: false })
        await before.offerAll(numbers(160).map((value) => ({ value, delay: 20 })))
        const fewer = { shards: 4, formerShards: 16, name }
        const { queue: idle } = open({ ...fewer, deliver: false }) // so that all are pending while they are counted
        expect(idle.shardCount).to.equal(4)
        expect(idle.names).to.deep.equal(before.names)
        await idle.offerAll(numbers(40, 160).map((value) => ({ value, delay: 20 })))
        expect(await idle.sizes()).to.deep.equal([...new Array<number>(4).fill(20), ...new Array<number>(12).fill(10)])
        expect(sorted(await idle.readAll())).to.deep.equal(numbers(200))
        expect(sorted(await takeAll(open(fewer).queue, 200))).to.deep.equal(numbers(200))
        expect(open({ shards: 4, formerShards: 2 }).queue.names).to.have.length(4)
      })
    })
  }).timeout(20_000)
}

describe('a sharded queue, wrong arguments', () => {
  const place = placeOf(undefined)
  afterEach(cleanUp)

  const wrongOptions: [options: Record<string, unknown>, says: string[]][] = [
    [{}, ['shards', 'undefined']],
    [{ shards: 0 }, ['shards', '1 to 256', '0']],
    [{ shards: 257 }, ['shards', '257']],
    [{ shards: 1.5 }, ['shards', '1.5']],
    [{ shards: '4' }, ['shards', 'a string of 1 character']],
    [{ shards: 4, formerShards: 0 }, ['formerShards', '0']],
    [{ shards: 4, formerShards: 257 }, ['formerShards', '257']],
    [{ shards: 4, layout: 'fifo' }, ['layout', 'a string of 4 characters']],
    [{ shards: 4, deliver: 'no' }, ['deliver', 'a string of 2 characters']],
    [{ shards: 4, consumersDeliver: 1 }, ['consumersDeliver', '1']],
    [{ shards: 4, codec: {} }, ['codec']],
    [{ shards: 4, shard: 3 }, ['options.shard', 'formerShards']],
  ]
  for (const [options, says] of wrongOptions) {
    it(`options ${JSON.stringify(options)}`, async () => {
      const client = makeClient()
      const get = () => client.getShardedDelayedQueue(uniqueName(), options as unknown as { shards: number })
      await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', says }], get)
    })
  }

  it('names with braces, mappers that make some or make all names alike, and no options at all', async () => {
    const invalid = (says: string[]) => [InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', says }] as const
    const client = makeClient()
    for (const name of ['{a}', 'a}b', 'a{b', '']) {
      await expectError([...invalid(['name'])], () => client.getShardedDelayedQueue(name, { shards: 2 }))
    }
    await expectError([...invalid(['options'])], () => client.getShardedDelayedQueue('a', undefined as never))
    const unmap = (name: string) => name
    for (const map of [(name: string) => `{all}:${name}`, () => 'always this']) {
      const mapped = makeClient({ nameMapper: { map, unmap } })
      await expectError([...invalid(['nameMapper'])], () => mapped.getShardedDelayedQueue('a', { shards: 2 }))
    }
  })

  it('a nameMapper is asked for each shard, but not again, and the keys have its names', async () => {
    const prefix = uniqueName('app')
    let asked = 0
    const nameMapper = {
      map: (name: string) => (asked++, `${prefix}:${name}`),
      unmap: (name: string) => name.slice(prefix.length + 1),
    }
    const { queue, client } = openAt(place, { client: { nameMapper }, shards: 2, name: 'mapped' })
    onCleanup(() => Promise.all(queue.names.map((name) => deleteKeysOf(`${prefix}:${name}`))))
    expect(queue.names.every((name) => name.startsWith('mapped:'))).to.equal(true)
    await queue.offerAll(numbers(4).map((value) => ({ value, delay: LATER })))
    for (const name of queue.names) {
      expect(await rawClient().zcard(rawKeys(`${prefix}:${name}`).timeouts)).to.equal(2)
    }
    const before = asked
    expect(client.getShardedDelayedQueue('mapped', { shards: 2 }).names).to.deep.equal(queue.names)
    expect(asked - before, 'the names are known').to.be.at.most(5)
  })

  it('of calls', async () => {
    const { queue, name } = openAt(place, { shards: 2, deliver: false })
    const any = (value: unknown) => value as never
    const calls: [call: () => unknown, says: string][] = [
      [() => queue.offer('a', -1), 'delay'],
      [() => queue.offer('a', any('5')), 'delay'],
      [() => queue.offer('a', 5, any('weeks')), 'unit of delay'],
      [() => queue.offer('a', 5, any(null)), 'unit of delay'],
      [() => queue.offer(any(null), 5), 'value'],
      [() => queue.offer('a', 5, { key: '' }), 'key'],
      [() => queue.offer('a', 5, { key: any(7) }), 'key'],
      [() => queue.offer('a', 5, any({ keys: 'a' })), 'options.keys'],
      [() => queue.offer('a', 5, 'seconds', any(null)), 'options'],
      [() => queue.offer('a', 5, { durability: any({}) }), 'durability'],
      [() => queue.offerAt('a', any('tomorrow')), 'date'],
      [() => queue.offerAt('a', new Date(), any({ x: 1 })), 'options.x'],
      [() => queue.offerAll([], any({ key: 'a' })), 'options.key'],
      [() => queue.reschedule('0.x', -1), ''],
      [() => queue.poll(-1), 'timeout'],
      [() => queue.poll(1, any('weeks')), 'unit of timeout'],
      [() => queue.takeMany(0), 'max'],
      [() => queue.takeMany(10_001), 'max'],
      [() => queue.takeMany(1, any({ wait: 1 })), 'options.wait'],
      [() => queue.takeMany(1, { timeout: -1 }), 'timeout'],
      [() => queue.drainTo(-1), 'max'],
      [() => queue.readQuarantine(0), 'limit'],
    ]
    for (const [call, says] of calls) {
      const error = await rejection(Promise.resolve().then(call))
      expect(error, says).to.be.an.instanceOf(says === '' ? RedelayedError : InvalidArgumentError)
      expect(error.message).to.include(says)
      if (says !== '') expect(error.queue, says).to.equal(name)
    }
    expect(await queue.size()).to.equal(0)
    const { queue: narrow, name: itsName } = openAt(place, { shards: 2, client: { maxPayloadBytes: 3 } })
    const tooLarge = { code: 'ERR_PAYLOAD_TOO_LARGE', queue: itsName }
    await expectError([PayloadTooLargeError, tooLarge], () => narrow.offer('abcd', 5))
  })

  it('an unreachable server: takes fail like those of a plain queue, and nothing is left behind', async () => {
    const { queue, client } = openAt(place, { shards: 4, client: { url: 'redis://127.0.0.1:1', connectTimeout: 100 } })
    client.on('error', () => {})
    expect(await rejection(queue.take())).to.be.an.instanceOf(ConnectionError)
    expect(await rejection(queue.poll())).to.be.an.instanceOf(ConnectionError)
  })

  it('a user who may not take: an AuthError, and a ShutdownError afterwards', async () => {
    const user = uniqueName('user').replaceAll(':', '-')
    await rawClient().call('ACL', 'SETUSER', user, 'on', '>secret', '~*', '&*', '+@all', '-blmpop', '-blpop')
    onCleanup(() => rawClient().call('ACL', 'DELUSER', user))
    const { queue, client } = openAt(place, {
      shards: 3,
      client: { username: user, password: 'secret' },
    })
    client.on('error', () => {})
    expect(await rejection(queue.take())).to.be.an.instanceOf(AuthError)
    for (let i = 0; i < 3; i++) {
      expect(await rejection(queue.poll(2_000)), 'a limited time is no empty answer').to.be.an.instanceOf(AuthError)
      expect(await rejection(queue.takeMany(2, { timeout: 2_000 }))).to.be.an.instanceOf(AuthError)
    }
    await client.shutdown()
    expect(await rejection(queue.take())).to.be.an.instanceOf(ShutdownError)
  })
})

describe('a sharded queue on a connection that sends again by itself', function () {
  this.timeout(30_000)
  afterEach(cleanUp)

  for (const kind of ['a client of the user', 'a cluster']) {
    it(`${kind}: elements that are put back while the connection breaks are put back once`, async function () {
      requireServerBin(this)
      const setup = kind === 'a cluster' ? await startCluster({ masters: 1, replicas: 1 }) : undefined
      const server = setup?.servers[0] ?? (await startRedis())
      onCleanup(() => (setup ?? server).stop())
      const proxy = await startProxy({ targetPort: server.port })
      onCleanup(() => proxy.stop())
      const near = { host: '127.0.0.1', port: proxy.port }
      const natMap = { [`127.0.0.1:${server.port}`]: near }
      const redis =
        setup === undefined ? new Redis({ ...near, retryStrategy: () => 50 }) : new Cluster([near], { natMap })
      redis.on('error', () => {})
      onCleanup(() => redis.disconnect())
      const { queue } = openAt(
        { options: { redis }, holderOf: () => rawTo(server.port) },
        { shards: 1, deliver: false },
      )
      const plain = rawTo(server.port)
      const [name] = queue.names as [string]
      const { context } = queue.handle
      const source = sourceOf<string>(context, { name, keys: context.keysOf(name), codec: codecs.string() }, {})
      await plain.rpush(name, 'c')
      await source.putBack([held('b')]) // the connection is open
      proxy.blackhole('toClient')
      const failure = rejection(source.putBack([held('a1'), held('a2')]))
      await eventually(async () => expect(await plain.llen(name)).to.equal(4))
      proxy.blackhole(false)
      proxy.cut()
      const error = await failure
      expect(error).to.be.an.instanceOf(ConnectionError).and.to.have.property('outcome', 'unknown')
      await eventually(async () => expect(await queue.readySize()).to.equal(4)) // it is back, and has sent what it had
      expect(await plain.lrange(name, 0, -1)).to.deep.equal(['a1', 'a2', 'b', 'c'])
    })
  }
})

const held = (value: string) => ({ value, bytes: Buffer.from(value) })

describe('a sharded queue, when a master of a cluster dies', function () {
  let cluster: ClusterSetup

  before(async function () {
    this.timeout(60_000)
    requireServerBin(this)
    cluster = await startCluster({ replicas: 1 })
  })
  after(() => cluster?.stop())
  afterEach(cleanUp)

  it('the other shards continue, and the rest comes from its successor', async () => {
    const place = placeOf(cluster)
    for (const { port } of cluster.servers) {
      await rawTo(port).config('SET', 'cluster-require-full-coverage', 'no')
    }
    const { queue, client } = openAt(place, { shards: 6 })
    client.on('error', () => {})
    const master = cluster.servers[1]!
    const isThere = (ticket: string): boolean => {
      const slot = keySlot(queue.names[Number(ticket.split('.')[0])]!)
      return slot >= 5461 && slot < 10923
    }
    const warm = queue.take()
    await queue.offer('warm', 5)
    expect(await warm).to.equal('warm')
    const durability = { replicas: 1, timeoutMs: 5_000 }
    const items = numbers(60).map((value) => ({ value, delay: 1_500 }))
    const tickets = await queue.offerAll(items, { durability })
    const there = numbers(60).filter((_, i) => isThere(tickets[i]!))
    const elsewhere = numbers(60).filter((value) => !there.includes(value))
    expect(there).to.have.length(20)
    await master.kill()
    onCleanup(() => master.restart()) // the plain connections to it end well then

    const taken: string[] = []
    const lateness: number[] = []
    while (taken.length < elsewhere.length) {
      const value = await queue.take()
      taken.push(value)
      const ticket = tickets[Number(value)]!
      if (!isThere(ticket)) lateness.push(Date.now() - dueOf(ticket))
    }
    const others = taken.filter((value) => elsewhere.includes(value))
    expect(others.length, 'those of the living masters come first').to.be.at.least(elsewhere.length - 5)
    expect(Math.max(...lateness), 'and are not held up').to.be.below(1_000)
    taken.push(...(await takeAll(queue, 60 - taken.length)))
    expect(sorted(taken)).to.deep.equal(numbers(60))
  }).timeout(60_000)
})
