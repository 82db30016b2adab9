import { expect } from 'chai'
import fc from 'fast-check'
import { run } from '../../src/store/run.js'
import type { ArgsOf } from '../../src/store/script.js'
import { cancelOrReschedule } from '../../src/store/scripts.js'
import {
  commandCalls,
  expected,
  old,
  ordered,
  readable,
  rejection,
  unordered,
  useRedis,
  type Fixture,
  type Rig,
  type State,
} from './support.js'

type Args = ArgsOf<(typeof cancelOrReschedule)['source']>

const NOW = 1_000_000
const REMOVE = -1
const MAX = Number.MAX_SAFE_INTEGER

function cancelOrRescheduleIn(
  rig: Rig,
  queue: Fixture,
  args: Partial<Args> & Pick<Args, 'due' | 'prefix'>,
): Promise<number | null> {
  return run(rig.sender, cancelOrReschedule, queue.keys, {
    channel: queue.keys.channel,
    nowMs: NOW,
    delayMs: REMOVE,
    ...args,
  })
}

/** The part of an entry in its ticket: the length of the id, and the id. */
function prefixOf(entry: Buffer): Buffer {
  return entry.subarray(0, 1 + entry[0]!)
}

describe('cancel-or-reschedule.lua', () => {
  const rig = useRedis()
  const [a, b, c, d, e] = [
    ordered('a', 'A'),
    ordered('b', 'B'),
    unordered('a', 'C'),
    unordered('d', 'D'),
    old('e', 'E'),
  ]
  const zeros = ordered('z\0\0\0\0\0\0\0', 'Z')
  const all: State = {
    timeouts: [
      [a, 10],
      [b, 20],
      [c, 20],
      [e, 20],
      [d, 30],
    ],
    order: [b, e, a],
  }

  const cases: {
    what: string
    before?: State
    args: Partial<Args> & Pick<Args, 'due' | 'prefix'>
    reply: number | null
    after?: State
    published?: number[]
  }[] = [
    {
      what: 'announces the first one behind entries with a negative due time, which are never delivered',
      before: {
        timeouts: [
          [b, -1],
          [a, 10],
          [d, 30],
        ],
      },
      args: { due: 10, prefix: prefixOf(a), delayMs: 0 },
      reply: NOW,
      after: {
        timeouts: [
          [b, -1],
          [d, 30],
          [a, NOW],
        ],
      },
      published: [30],
    },
    {
      what: 'removes the head and announces the next one',
      args: { due: 10, prefix: prefixOf(a) },
      reply: 0,
      after: {
        timeouts: [
          [b, 20],
          [c, 20],
          [e, 20],
          [d, 30],
        ],
        order: [b, e],
      },
      published: [20],
    },
    {
      what: 'removes another one without a word',
      args: { due: 20, prefix: prefixOf(b) },
      reply: 0,
      after: {
        timeouts: [
          [a, 10],
          [c, 20],
          [e, 20],
          [d, 30],
        ],
        order: [e, a],
      },
    },
    {
      what: 'removes one with a 9-byte id, whose first bytes are those of another id',
      args: { due: 20, prefix: prefixOf(c) },
      reply: 0,
      after: {
        timeouts: [
          [a, 10],
          [b, 20],
          [e, 20],
          [d, 30],
        ],
        order: [b, e, a],
      },
    },
    {
      what: 'removes the last one of all, and there is nothing to announce',
      before: { timeouts: [[a, 10]], order: [a] },
      args: { due: 10, prefix: prefixOf(a) },
      reply: 0,
      after: {},
    },
    {
      what: 'removes an entry of the old format, by its first 8 bytes',
      args: { due: 20, prefix: e.subarray(0, 8) },
      reply: 0,
      after: {
        timeouts: [
          [a, 10],
          [b, 20],
          [c, 20],
          [d, 30],
        ],
        order: [b, a],
      },
    },
    {
      what: 'finds nothing in an empty queue',
      before: {},
      args: { due: 10, prefix: prefixOf(a) },
      reply: null,
      after: {},
    },
    { what: 'does not find an id at another due time', args: { due: 20, prefix: prefixOf(a) }, reply: null },
    {
      what: 'does not find an id that is not there',
      args: { due: 20, prefix: prefixOf(ordered('bb', '')) },
      reply: null,
    },
    {
      what: 'does not take an id for another of the other length',
      args: { due: 30, prefix: prefixOf(ordered('d', '')) },
      reply: null,
    },
    { what: 'does not reschedule what is not there', args: { due: 11, prefix: prefixOf(a), delayMs: 5 }, reply: null },
    {
      what: 'moves the head behind the others and announces the new head',
      args: { due: 10, prefix: prefixOf(a), delayMs: 5 },
      reply: NOW + 5,
      after: {
        timeouts: [
          [b, 20],
          [c, 20],
          [e, 20],
          [d, 30],
          [a, NOW + 5],
        ],
        order: [b, e, a],
      },
      published: [20],
    },
    {
      what: 'announces the head again when it stays the head with another due time',
      before: {
        timeouts: [
          [a, 10],
          [b, NOW + 9],
        ],
        order: [a, b],
      },
      args: { due: 10, prefix: prefixOf(a), delayMs: 5 },
      reply: NOW + 5,
      after: {
        timeouts: [
          [a, NOW + 5],
          [b, NOW + 9],
        ],
        order: [a, b],
      },
      published: [NOW + 5],
    },
    {
      what: 'announces an entry that becomes the head',
      before: {
        timeouts: [
          [a, NOW + 7],
          [d, NOW + 9],
        ],
        order: [a],
      },
      args: { due: NOW + 9, prefix: prefixOf(d), delayMs: 0 },
      reply: NOW,
      after: {
        timeouts: [
          [d, NOW],
          [a, NOW + 7],
        ],
        order: [a],
      },
      published: [NOW],
    },
    {
      what: 'moves an entry between others without a word',
      args: { due: 20, prefix: prefixOf(c), delayMs: 5 },
      reply: NOW + 5,
      after: {
        timeouts: [
          [a, 10],
          [b, 20],
          [e, 20],
          [d, 30],
          [c, NOW + 5],
        ],
        order: [b, e, a],
      },
    },
    {
      what: 'takes the largest due time that is a whole number',
      args: { due: 30, prefix: prefixOf(d), delayMs: MAX - NOW },
      reply: MAX,
      after: {
        timeouts: [
          [a, 10],
          [b, 20],
          [c, 20],
          [e, 20],
          [d, '9007199254740991'],
        ],
        order: [b, e, a],
      },
    },
    {
      what: 'refuses a due time above 2^53-1',
      args: { due: 10, prefix: prefixOf(a), delayMs: MAX - NOW + 1 },
      reply: -2,
    },
    {
      what: 'finds an entry at the largest due time',
      before: {
        timeouts: [
          [a, '9007199254740991'],
          [b, '9007199254740991'],
        ],
        order: [a, b],
      },
      args: { due: MAX, prefix: prefixOf(b) },
      reply: 0,
      after: { timeouts: [[a, '9007199254740991']], order: [a] },
    },
    {
      what: 'does not take poison for an id that goes on with zeros',
      before: {
        timeouts: [
          [b, 10],
          ['\x08z', 10],
          [zeros, 10],
        ],
      },
      args: { due: 10, prefix: prefixOf(zeros) },
      reply: 0,
      after: {
        timeouts: [
          [b, 10],
          ['\x08z', 10],
        ],
      },
    },
    {
      what: 'is not led astray by poison of the same millisecond',
      before: {
        timeouts: [
          ['', 10],
          ['\x08', 10],
          ['\x08a', 10],
          [a, 10],
          ['\x08b', 10],
          [b, 10],
          ['\x09', 10],
          ['\xff', 10],
        ],
      },
      args: { due: 10, prefix: prefixOf(b) },
      reply: 0,
      after: {
        timeouts: [
          ['', 10],
          ['\x08', 10],
          ['\x08a', 10],
          [a, 10],
          ['\x08b', 10],
          ['\x09', 10],
          ['\xff', 10],
        ],
      },
    },
  ]
  for (const { what, before = all, args, reply, after = before, published = [] } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      expect(await cancelOrRescheduleIn(rig, queue, args)).to.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('uses the clock of the server without a given time', async () => {
    const queue = await rig.queue(all)
    const millis = async () => {
      const [seconds, micros] = (await rig.redis.time()) as unknown as [string, string]
      return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
    }
    const earliest = (await millis()) + 700
    const due = await cancelOrRescheduleIn(rig, queue, { due: 30, prefix: prefixOf(d), nowMs: -1, delayMs: 700 })
    expect(due).to.be.within(earliest, (await millis()) + 700)
    expect((await queue.read()).timeouts.at(-1)).to.deep.equal([readable(d), String(due)])
  })

  it('changes nothing when the order list is not a list', async () => {
    const queue = await rig.queue({ timeouts: all.timeouts! })
    await rig.redis.set(queue.keys.order, 'in the way')
    expect(await rejection(cancelOrRescheduleIn(rig, queue, { due: 10, prefix: prefixOf(a) }))).to.include({
      code: 'ERR_WRONG_TYPE',
    })
    await rig.redis.del(queue.keys.order)
    expect(await queue.read()).to.deep.equal(expected({ timeouts: all.timeouts! }))
    expect(await queue.published()).to.deep.equal([])
  })

  it('finds exactly the right one of random ids of one millisecond', async () => {
    const id = (size: number) => fc.uint8Array({ minLength: size, maxLength: size })
    const entry = fc.oneof(
      id(8).map((bytes) => ordered(Buffer.from(bytes).toString('latin1'), 'x')),
      id(9).map((bytes) => unordered(Buffer.from(bytes).toString('latin1'), 'x')),
    )
    const entries = fc.uniqueArray(entry, { minLength: 1, maxLength: 40, selector: (bytes) => bytes.toString('hex') })
    const queue = await rig.queue()
    await fc.assert(
      fc.asyncProperty(entries, fc.nat(), fc.nat(), async (pending, chosen, absent) => {
        const target = pending[chosen % pending.length]!
        const missing = pending[absent % pending.length]!
        const others = pending.filter((bytes) => bytes !== target).sort((x, y) => Buffer.compare(x, y))
        const order = pending.filter((bytes) => bytes[0] === 8)
        await queue.write({ timeouts: pending.map((bytes) => [bytes, 10] as const), order })

        expect(await cancelOrRescheduleIn(rig, queue, { due: 10, prefix: prefixOf(target) })).to.equal(0)
        if (missing === target)
          expect(await cancelOrRescheduleIn(rig, queue, { due: 10, prefix: prefixOf(missing) })).to.equal(null)

        const after = {
          timeouts: others.map((bytes) => [bytes, 10] as const),
          order: order.filter((x) => x !== target),
        }
        expect(await queue.read()).to.deep.equal(expected(after))
      }),
      { numRuns: 60 },
    )
  }).timeout(30_000)

  describe('on a server of its own', () => {
    const own = useRedis([])

    it('reads the head only where the entry was it, or may be: the head can be of any size', async () => {
      const entries = ['a', 'b', 'c', 'd', 'e'].map((id) => unordered(id, 'x'))
      const [head, same, other, last] = entries as [Buffer, Buffer, Buffer, Buffer]
      const queue = await own.queue({
        timeouts: [
          [head, 10],
          [other, 20],
          [same, 20],
          [last, 30],
        ],
      })
      const readsOf = async (
        entry: Buffer,
        due: number,
        delayMs = REMOVE,
      ): Promise<[reads: number, heard: string[]]> => {
        const args = { due, prefix: prefixOf(entry), delayMs }
        const calls = await commandCalls(own.redis, () => cancelOrRescheduleIn(own, queue, args))
        return [calls.zrangebyscore ?? 0, await queue.published()]
      }
      expect(await readsOf(last, 30)).to.deep.equal([0, []])
      expect(await readsOf(same, 20, 50)).to.deep.equal([0, []])
      expect(await readsOf(head, 10)).to.deep.equal([1, ['20']])
      expect(await readsOf(other, 20, 5)).to.deep.equal([0, [String(NOW + 5)]])
      await queue.write({
        timeouts: [
          [head, 10],
          [same, 10],
        ],
      })
      expect(await readsOf(same, 10)).to.deep.equal([1, []])
    })

    it('finds one of 5,000 entries of one millisecond with a few commands', async function () {
      this.timeout(30_000)
      const ids = Array.from({ length: 2500 }, (_, n) => String((n * 7919) % 10_007).padStart(8, '0'))
      const pending = [...ids.map((id) => ordered(id, 'x')), ...ids.map((id) => unordered(id, 'x'))]
      const rest = Array.from({ length: 100 }, (_, n) => ordered(`rest${n}`, 'x'))
      const queue = await own.queue({
        timeouts: [
          ...rest.map((entry, n) => [entry, 900 + n] as const),
          ...pending.map((entry) => [entry, 5000] as const),
        ],
        order: pending.slice(0, 2500),
      })
      const left = new Set(pending.map(readable))
      for (const entry of [...pending.slice(0, 8), ...pending.slice(2500, 2508), pending[4999]!]) {
        let reply: number | null = null
        const calls = await commandCalls(own.redis, async () => {
          reply = await cancelOrRescheduleIn(own, queue, { due: 5000, prefix: prefixOf(entry) })
        })
        expect(reply).to.equal(0)
        expect(calls.zrange).to.be.within(2, 16)
        // removing from the order list walks it, and entries with a 9-byte id are not there
        expect(calls.lrem ?? 0).to.equal(entry[0] === 9 ? 0 : 1)
        left.delete(readable(entry))
        const { timeouts, order } = await queue.read()
        expect(new Set(timeouts.slice(100).map(([member]) => member))).to.deep.equal(left)
        expect(order.length).to.equal([...left].filter((member) => member.startsWith('\\x08')).length)
      }
    })

    it('announces a new due time behind an entry of another program that is overdue by more than 365 days', async () => {
      const nowMs = 4_000_000_000_000
      const queue = await own.queue({
        timeouts: [
          [b, 0.5],
          [a, nowMs + 9],
        ],
      })
      await cancelOrRescheduleIn(own, queue, { due: nowMs + 9, prefix: prefixOf(a), nowMs, delayMs: 5 })
      expect(await queue.published()).to.deep.equal([String(nowMs + 5)])
    })

    it('reschedules nothing when memory is out, but still removes', async () => {
      const queue = await own.queue(all)
      await own.redis.config('SET', 'maxmemory', '1')
      try {
        const refused = cancelOrRescheduleIn(own, queue, { due: 10, prefix: prefixOf(a), delayMs: 5 })
        expect(await rejection(refused)).to.include({ redisCode: 'OOM' })
        expect(await queue.read()).to.deep.equal(expected(all))
        expect(await cancelOrRescheduleIn(own, queue, { due: 10, prefix: prefixOf(a) })).to.equal(0)
      } finally {
        await own.redis.config('SET', 'maxmemory', '0')
      }
    })
  })
})
