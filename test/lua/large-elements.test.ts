/** Nothing says how large elements are before they are read, so no script may read or move many of them at once. */
import { expect } from 'chai'
import { codecs, createClient, type BlockingQueue, type DelayedQueue, type RedelayedClient } from '../../src/index.js'
import { ORDERS } from '../integration/fixtures.js'
import { LEASE_MS, LEAST_LEASE_MS, SUBSCRIBERS_PER_LEASE_MS } from '../../src/store/lease.js'
import { run } from '../../src/store/run.js'
import { transfer } from '../../src/store/scripts.js'
import { commandCalls, ordered, raw, unordered, useRedis, type Fixture } from './support.js'

const LARGE = 'x'.repeat(200 * 1024)
const HOUR = 3_600_000

describe('large elements', function () {
  this.timeout(60_000)
  const rig = useRedis([])
  let client: RedelayedClient
  let queue: BlockingQueue<string>
  const delayed = {} as Record<(typeof ORDERS)[number], DelayedQueue<string>>

  before(async () => {
    const { port } = rig.redis.options
    client = createClient({ url: `redis://127.0.0.1:${port}` })
    queue = client.getBlockingQueue('elements', { codec: codecs.string() })
    await rig.redis.rpush('elements', ...Array.from({ length: 100 }, (_, n) => `${n}${LARGE}`))
    for (const layout of ORDERS) {
      const destination = client.getBlockingQueue(`pending ${layout}`, { codec: codecs.string() })
      delayed[layout] = client.getDelayedQueue(destination, { layout: layout })
      for (let n = 0; n < 100; n++) await delayed[layout].offer(`${n}${LARGE}`, HOUR)
    }
  })
  after(() => client.shutdown())

  /** The calls, each with what it gives; those that change nothing first. */
  const calls: Record<string, [action: () => Promise<unknown>, expected: unknown]> = {
    contains: [() => queue.contains('absent'), false],
    containsAll: [() => queue.containsAll(['absent']), false],
    drainTo: [async () => (await queue.drainTo(90)).map((value) => parseInt(value, 10)), Array.from(Array(90).keys())],
    'drainTo of all': [
      async () => (await queue.drainTo()).map((value) => parseInt(value, 10)),
      [90, 91, 92, 93, 94, 95, 96, 97, 98, 99],
    ],
  }
  for (const layout of ORDERS) {
    Object.assign(calls, {
      [`contains of pending ones, layout '${layout}'`]: [() => delayed[layout].contains('absent'), false],
      [`containsAll of pending ones, layout '${layout}'`]: [() => delayed[layout].containsAll(['absent']), false],
      [`remove of pending ones, layout '${layout}'`]: [() => delayed[layout].remove('absent'), false],
      [`removeAll of pending ones, layout '${layout}'`]: [() => delayed[layout].removeAll(['absent']), false],
      [`poll of pending ones, layout '${layout}'`]: [async () => (await delayed[layout].poll(100)).length, 100],
    })
  }
  for (const [name, [action, result]] of Object.entries(calls)) {
    it(`are read by many scripts of about a mebibyte: ${name}`, async () => {
      let got: unknown
      const { evalsha = 0, eval: evals = 0 } = await commandCalls(rig.redis, async () => (got = await action()))
      expect(got).to.deep.equal(result)
      // 20 MB of elements, or the 2 MB that are left
      expect(evalsha + evals).to.be.at.least(name === 'drainTo of all' ? 2 : 15)
    })
  }
})

describe('transfers of large entries', function () {
  this.timeout(60_000)
  const rig = useRedis([])
  const SIZE = 50 * 1024
  const LARGE_ENTRIES = 400
  const MOST = 1024 * 1024
  const payload = 'x'.repeat(SIZE)
  const argsOf = (queue: Fixture) => ({
    channel: queue.keys.channel,
    nowMs: 1_000,
    budgetUs: 600_000_000, // only bytes end a script
    limit: 10_000,
    client: 'A',
    leaseMs: LEASE_MS,
    leastLeaseMs: LEAST_LEASE_MS,
    subscribersPerLeaseMs: SUBSCRIBERS_PER_LEASE_MS,
    idleMs: 1_000,
    announce: false,
    renew: false,
    bytes: MOST,
    largeHead: '',
    largeFirst: '',
    buckets: true,
  })

  /** Runs the script once with `redis.call` replaced by one that counts the bytes of replies. */
  async function readBy(queue: Fixture): Promise<{ moved: number; bytes: number }> {
    const counting = `
      local server, readBytes = redis, 0
      local function counted(reply)
        if type(reply) == 'string' then readBytes = readBytes + #reply end
        if type(reply) == 'table' then for _, element in ipairs(reply) do counted(element) end end
        return reply
      end
      local redis = {
        call = function(...) return counted(server.call(...)) end,
        pcall = function(...) return counted(server.pcall(...)) end,
      }
      local function transferred()
        ${transfer.source.source}
      end
      local reply = transferred()
      return {reply[1], readBytes}`
    const { timeouts, order, destination, quarantine, leader, wheel } = queue.keys
    const args = argsOf(queue)
    const values = transfer.source.args as Record<string, string>
    const ordered = Object.keys(values)
      .map((name) => args[name as keyof typeof args])
      .map((arg) => (arg === false ? 0 : arg))
    const reply = await rig.redis.eval(
      counting,
      6,
      timeouts,
      order,
      destination,
      quarantine,
      leader,
      wheel,
      ...(ordered as (string | number)[]),
    )
    const [moved, bytes] = reply as [number, number]
    return { moved, bytes }
  }

  const layouts = {
    'with an order list': ordered,
    'without an order list': unordered,
  }
  for (const [what, entryOf] of Object.entries(layouts)) {
    const small = Array.from({ length: 210 }, (_, n) => entryOf(`s${n}`, 'small'))
    const large = Array.from({ length: LARGE_ENTRIES }, (_, n) => entryOf(`l${n}`, `${n}:${payload}`))
    const fill = async (entries: readonly Buffer[], order = entries): Promise<Fixture> => {
      const queue = await rig.queue()
      for (const [n, entry] of entries.entries()) await rig.redis.zadd(queue.keys.timeouts, n, entry)
      if (entryOf === ordered) for (const entry of order) await rig.redis.rpush(queue.keys.order, entry)
      return queue
    }

    it(`are many scripts that move a mebibyte each, ${what}`, async () => {
      const queue = await fill([...small, ...large])
      const moves: number[] = []
      for (let isDue = true; isDue;) {
        const { moved, next } = await run(rig.sender, transfer, queue.keys, argsOf(queue))
        moves.push(moved)
        isDue = next !== null
      }
      expect(moves[0]).to.be.within(210, 210 + 21)
      expect(Math.max(...moves.slice(1))).to.be.at.most(21)
      expect(moves.length).to.be.at.least(LARGE_ENTRIES / 21)
      const payloads = await rig.redis.lrange(queue.keys.destination, 0, -1)
      expect(payloads.map((text) => text.split(':')[0])).to.deep.equal([
        ...small.map(() => 'small'),
        ...large.map((_, n) => String(n)),
      ])
      expect(await rig.redis.llen(queue.keys.order)).to.equal(0)
    })

    it(`read 64 entries more than they move at most, ${what}`, async () => {
      const queue = await fill([...small, ...large])
      const { moved, bytes } = await readBy(queue)
      expect(moved).to.be.within(210, 210 + 21)
      // those moved are read once more in the order list; the last one is the next head
      expect(bytes).to.be.within(SIZE * 20, SIZE * (64 + 2 * 21 + 1) + 100_000)
    })

    it(`read two entries at first, ${what}`, async () => {
      const queue = await fill(Array.from({ length: 40 }, (_, n) => entryOf(`h${n}`, `${n}:${'x'.repeat(MOST)}`)))
      const { moved, bytes } = await readBy(queue)
      expect(moved).to.equal(1)
      expect(bytes).to.be.at.most(4 * MOST + 1_000)
    })
  }

  it('read at most 64 large elements of the order list that are not due', async () => {
    const due = Array.from({ length: 210 }, (_, n) => ordered(`s${n}`, 'small'))
    const queue = await rig.queue()
    for (const [n, entry] of due.entries()) await rig.redis.zadd(queue.keys.timeouts, n, entry)
    for (const entry of due.slice(0, 100)) await rig.redis.rpush(queue.keys.order, entry)
    for (let n = 0; n < 400; n++) {
      const later = ordered(`l${n}`, payload)
      await rig.redis.zadd(queue.keys.timeouts, 5_000, later)
      await rig.redis.rpush(queue.keys.order, later)
    }
    const [first, second] = [await readBy(queue), await readBy(queue)]
    expect([first.moved, second.moved]).to.deep.equal([210, 0])
    // each page that begins out of order reads the head of the list once
    expect(first.bytes).to.be.at.most(SIZE * 64 * 5)
  })

  it('set aside a mebibyte of unreadable entries each, and of negative due times', async () => {
    for (const score of [1, -1]) {
      const queue = await rig.queue()
      for (let n = 0; n < 100; n++) await rig.redis.zadd(queue.keys.timeouts, score, raw(`bad ${n} ${payload}`))
      const { malformed, negative } = await run(rig.sender, transfer, queue.keys, argsOf(queue))
      expect(malformed + negative).to.be.within(20, 22)
    }
  })
})
