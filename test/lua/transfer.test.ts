import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { LEAST_LEASE_MS, SUBSCRIBERS_PER_LEASE_MS } from '../../src/store/lease.js'
import { run } from '../../src/store/run.js'
import type { ArgsOf } from '../../src/store/script.js'
import { transfer, type TransferReply } from '../../src/store/scripts.js'
import {
  ALL_BYTES,
  commandCalls,
  expected,
  hex,
  old,
  ordered,
  rejection,
  unordered,
  useRedis,
  type Fixture,
  type Rig,
  type State,
} from './support.js'

type Args = ArgsOf<(typeof transfer)['source']>

const NOW = 1_000_000
/** Long, because a lease ends by the server's clock too. */
const LEASE = 60_000
const IDLE = 3_600_000
const HOUR = 3_600_000

/** The lease that a script takes if it leads because more entries are due. */
const LEADS = { leader: 'self', leaseUntil: NOW + LEASE } as const

const NOTHING: Omit<TransferReply, 'workedUs'> = {
  moved: 0,
  next: null,
  now: NOW,
  latenessMs: 0,
  malformed: 0,
  negative: 0,
  subscribers: 1,
  orderError: '',
  leader: 'none',
  leaseUntil: 0,
  orphans: 0,
  quarantineError: '',
  postponed: 0,
  largeHead: '',
  largeFirst: '',
  promoted: 0,
  wheelError: '',
}

/** The reply without the duration, which differs in every run. */
async function transferOf(
  rig: Rig,
  queue: Fixture,
  args: Partial<Args> = {},
): Promise<Omit<TransferReply, 'workedUs'>> {
  const { workedUs, ...reply } = await run(rig.sender, transfer, queue.keys, {
    channel: queue.keys.channel,
    nowMs: NOW,
    budgetUs: 1_000_000,
    limit: 10_000,
    client: 'A',
    leaseMs: LEASE,
    leastLeaseMs: LEAST_LEASE_MS,
    subscribersPerLeaseMs: SUBSCRIBERS_PER_LEASE_MS,
    idleMs: IDLE,
    announce: false,
    renew: false,
    bytes: 2 * 2 ** 20,
    largeHead: '',
    largeFirst: '',
    buckets: true,
    ...args,
  })
  expect(workedUs).to.be.at.least(0)
  return reply
}

/** Whether scripts of the server can measure time: not on Redis 7.2 and Valkey 7.2. */
async function canMeasure(rig: Rig): Promise<boolean> {
  const source = `
    local before = redis.call('TIME')
    for _ = 1, 100000 do redis.sha1hex('') end
    local after = redis.call('TIME')
    return (rawget(_G, 'os') or before[2] ~= after[2]) and 1 or 0`
  return (await rig.redis.eval(source, 0)) === 1
}

interface Case {
  what: string
  before: State
  args?: Partial<Args>
  reply: Partial<TransferReply>
  after: State
  published: number[]
}

function table(rig: Rig, cases: Case[]): void {
  for (const { what, before, args, reply, after, published } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      expect(await transferOf(rig, queue, args)).to.deep.equal({ ...NOTHING, ...reply })
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }
}

describe('transfer.lua', () => {
  const rig = useRedis()

  describe('entries', () => {
    const [a, b, c, d] = [ordered('a', 'A'), unordered('b', 'B'), old('c', 'C'), ordered('d', 'D')]
    // where an id of 0x18 bytes would end, it has the length of what follows
    const LOOKS_NEW = hex('08 3132333435363738 0200000000000000 6869')
    const redisson = hex('08 4142434445464748 0400000000000000 22686922')
    const redissonOld = hex('81e97df41022b143 0400000000000000 22686922')
    table(rig, [
      { what: 'moves nothing from an empty queue', before: {}, reply: {}, after: {}, published: [] },
      {
        what: 'moves the bytes that Redisson writes, of both versions',
        before: {
          timeouts: [
            [redisson, 5],
            [redissonOld, 6],
          ],
          order: [redisson, redissonOld],
        },
        reply: { moved: 2, latenessMs: NOW - 5 },
        after: { destination: ['"hi"', '"hi"'] },
        published: [NOW + IDLE],
      },
      {
        what: 'moves all three formats from one schedule, in the order of due times, behind what is there',
        before: {
          timeouts: [
            [d, 4],
            [b, 3],
            [c, 2],
            [a, 1],
          ],
          order: [a, c, d],
          destination: ['there'],
        },
        reply: { moved: 4, latenessMs: NOW - 1 },
        after: { destination: ['there', 'A', 'C', 'B', 'D'] },
        published: [NOW + IDLE],
      },
      {
        what: 'takes from the head of the order list only what it moved',
        before: {
          timeouts: [
            [a, 1],
            [b, 2],
            [c, 3],
            [d, NOW + 9],
          ],
          order: [a, c, d],
        },
        reply: { moved: 3, next: NOW + 9, latenessMs: NOW - 1 },
        after: { timeouts: [[d, NOW + 9]], order: [d], destination: ['A', 'B', 'C'] },
        published: [NOW + 9],
      },
      {
        what: 'moves all three formats out of offer order too',
        before: {
          timeouts: [
            [a, 4],
            [b, 3],
            [c, 2],
            [d, 1],
          ],
          order: [a, c, d],
        },
        reply: { moved: 4, latenessMs: NOW - 1 },
        after: { destination: ['D', 'C', 'B', 'A'] },
        published: [NOW + IDLE],
      },
      {
        what: 'moves entries with ids of any length, and expects none but those of 8 and 16 bytes in the order list',
        before: {
          timeouts: [1, 5, 6, 8, 9, 13, 16, 255].map((size) => [unordered('x', `${size}`, size), size]),
          order: [unordered('x', '8', 8), unordered('x', '16', 16)],
        },
        reply: { moved: 8, latenessMs: NOW - 1 },
        after: { destination: ['1', '5', '6', '8', '9', '13', '16', '255'] },
        published: [NOW + IDLE],
      },
      {
        what: 'takes an old entry that begins with 07 for what it is, and removes it from the order list',
        before: {
          timeouts: [
            [ordered('a', 'A'), 2],
            [old('\x07b', 'B'), 1],
          ],
          order: [ordered('a', 'A'), old('\x07b', 'B')],
        },
        reply: { moved: 2, latenessMs: NOW - 1 },
        after: { destination: ['B', 'A'] },
        published: [NOW + IDLE],
      },
      {
        what: 'takes an old entry for what it is if its payload looks like the end of a header',
        before: {
          timeouts: [[old('\x18b', LOOKS_NEW), 1]],
          order: [old('\x18b', LOOKS_NEW)],
        },
        reply: { moved: 1, latenessMs: NOW - 1 },
        after: { destination: [LOOKS_NEW] },
        published: [NOW + IDLE],
      },
      {
        what: 'moves empty payloads',
        before: {
          timeouts: [
            [old('x', ''), 1],
            [ordered('y', ''), 2],
            [unordered('z', ''), 3],
          ],
          order: [old('x', ''), ordered('y', '')],
        },
        reply: { moved: 3, latenessMs: NOW - 1 },
        after: { destination: ['', '', ''] },
        published: [NOW + IDLE],
      },
      {
        what: 'keeps all 256 byte values in ids and payloads',
        before: {
          timeouts: [
            [ordered('\x00\xff\r\n\x80\x08\x09"', ALL_BYTES), 1],
            [unordered('\xff\x00\xfe\x01\x7f\x80\r\n\x09', ALL_BYTES), 2],
            [old('\x80\xff\xff\x00\x00\r\n\x43', ALL_BYTES), 3],
          ],
          order: [ordered('\x00\xff\r\n\x80\x08\x09"', ALL_BYTES), old('\x80\xff\xff\x00\x00\r\n\x43', ALL_BYTES)],
        },
        reply: { moved: 3, latenessMs: NOW - 1 },
        after: { destination: [ALL_BYTES, ALL_BYTES, ALL_BYTES] },
        published: [NOW + IDLE],
      },
      {
        what: 'reads a length of more than two bytes',
        before: {
          timeouts: [[ordered('a', Buffer.alloc(70_000, 'x')), 1]],
          order: [ordered('a', Buffer.alloc(70_000, 'x'))],
        },
        reply: { moved: 1, latenessMs: NOW - 1 },
        after: { destination: [Buffer.alloc(70_000, 'x')] },
        published: [NOW + IDLE],
      },
      {
        what: 'delivers entries of one millisecond in the order of their ids, compared as unsigned bytes',
        before: {
          timeouts: [
            [ordered('\x00\x00\x00\x03', '3'), 7],
            [ordered('\x00\x00\x00\xff', '255'), 7],
            [ordered('\x00\x00\x01\x00', '256'), 7],
            [ordered('\x00\x00\x00\x7f', '127'), 7],
            [ordered('\x00\x00\x00\x01', '1'), 7],
            [ordered('\xff\x00\x00\x00', 'last'), 7],
          ],
        },
        reply: { moved: 6, latenessMs: NOW - 7 },
        after: { destination: ['1', '3', '127', '255', '256', 'last'] },
        published: [NOW + IDLE],
      },
      {
        what: 'delivers an entry that the order list does not know',
        before: {
          timeouts: [
            [a, 1],
            [d, 2],
          ],
          order: [d],
        },
        reply: { moved: 2, latenessMs: NOW - 1 },
        after: { destination: ['A', 'D'] },
        published: [NOW + IDLE],
      },
      {
        what: 'leaves elements of the order list alone that are not due',
        before: {
          timeouts: [
            [a, 1],
            [d, NOW + 2],
          ],
          order: [d, a, ordered('stale', 'S')],
        },
        reply: { moved: 1, latenessMs: NOW - 1, next: NOW + 2 },
        after: { destination: ['A'], timeouts: [[d, NOW + 2]], order: [d, ordered('stale', 'S')] },
        published: [NOW + 2],
      },
      {
        what: 'sets aside what is at the head of the order list only, where every delivery would walk past it',
        before: {
          timeouts: [
            [a, 1],
            [d, 2],
          ],
          order: [ordered('stale', 'S'), a, d],
        },
        reply: { moved: 2, latenessMs: NOW - 1, orphans: 1 },
        after: {
          destination: ['A', 'D'],
          quarantine: [Buffer.concat([Buffer.from(`order-orphan ${NOW} `), ordered('stale', 'S')])],
        },
        published: [NOW + IDLE],
      },
    ])
  })

  describe('due times', () => {
    const [a, b] = [ordered('a', 'A'), ordered('b', 'B')]
    table(rig, [
      {
        what: 'takes what is due exactly now, and not what is due a millisecond later',
        before: {
          timeouts: [
            [a, NOW],
            [b, NOW + 1],
          ],
          order: [a, b],
        },
        reply: { moved: 1, next: NOW + 1 },
        after: { timeouts: [[b, NOW + 1]], order: [b], destination: ['A'] },
        published: [NOW + 1],
      },
      {
        what: 'takes a due time of 0',
        before: { timeouts: [[a, 0]], order: [a] },
        reply: { moved: 1, latenessMs: NOW },
        after: { destination: ['A'] },
        published: [NOW + IDLE],
      },
      {
        what: 'moves nothing early, and says nothing about it',
        before: { timeouts: [[b, NOW + 1]], order: [b] },
        reply: { next: NOW + 1 },
        after: { timeouts: [[b, NOW + 1]], order: [b] },
        published: [],
      },
      {
        what: 'announces the next due time with `announce` when it moved nothing',
        before: { timeouts: [[b, NOW + 1]], order: [b] },
        args: { announce: true },
        reply: { next: NOW + 1 },
        after: { timeouts: [[b, NOW + 1]], order: [b] },
        published: [NOW + 1],
      },
      {
        what: 'announces the idle time with `announce` on an empty queue',
        before: {},
        args: { announce: true },
        reply: {},
        after: {},
        published: [NOW + IDLE],
      },
      {
        what: 'moves as many as the limit allows, and leases the rest',
        before: {
          timeouts: [
            [a, 1],
            [b, 2],
          ],
          order: [a, b],
        },
        args: { limit: 1 },
        reply: { moved: 1, next: 2, latenessMs: NOW - 1, ...LEADS },
        after: { timeouts: [[b, 2]], order: [b], destination: ['A'] },
        published: [NOW + LEASE],
      },
      {
        what: 'moves as many as the limit allows out of order too',
        before: {
          timeouts: [
            [b, 1],
            [a, 2],
          ],
          order: [a, b],
        },
        args: { limit: 1 },
        reply: { moved: 1, next: 2, latenessMs: NOW - 1, ...LEADS },
        after: { timeouts: [[a, 2]], order: [a], destination: ['B'] },
        published: [NOW + LEASE],
      },
      {
        what: 'moves nothing with a limit of 0',
        before: { timeouts: [[a, 1]], order: [a] },
        args: { limit: 0 },
        reply: { next: 1, ...LEADS },
        after: { timeouts: [[a, 1]], order: [a] },
        published: [],
      },
      {
        what: 'announces whole milliseconds',
        before: {
          timeouts: [
            [a, 1],
            [b, NOW + 1.5],
          ],
          order: [a, b],
        },
        reply: { moved: 1, next: NOW + 1.5, latenessMs: NOW - 1 },
        after: { timeouts: [[b, NOW + 1.5]], order: [b], destination: ['A'] },
        published: [NOW + 1],
      },
      {
        what: 'announces the last due time that is a whole number',
        before: {
          timeouts: [
            [a, 1],
            [b, '9007199254740991'],
          ],
        },
        reply: { moved: 1, next: 9007199254740991, latenessMs: NOW - 1 },
        after: { timeouts: [[b, '9007199254740991']], destination: ['A'] },
        published: [9007199254740991],
      },
      {
        what: 'announces no due time that is too large for a whole number',
        before: {
          timeouts: [
            [a, 1],
            [b, '1e22'],
          ],
        },
        reply: { moved: 1, next: 1e22, latenessMs: NOW - 1 },
        after: { timeouts: [[b, '1e+22']], destination: ['A'] },
        published: [],
      },
      {
        what: 'survives an infinite due time',
        before: {
          timeouts: [
            [a, 1],
            [b, '+inf'],
          ],
        },
        reply: { moved: 1, next: Infinity, latenessMs: NOW - 1 },
        after: { timeouts: [[b, 'inf']], destination: ['A'] },
        published: [],
      },
    ])

    it('uses the clock of the server without a given time', async () => {
      const queue = await rig.queue()
      const [seconds, micros] = (await rig.redis.time()) as unknown as [string, string]
      const before = Number(seconds) * 1000 + Number(micros) / 1000
      await queue.write({
        timeouts: [
          [a, Math.floor(before) - 50],
          [b, Math.floor(before) + 60_000],
        ],
      })

      const reply = await transferOf(rig, queue, { nowMs: -1 })

      expect(reply.now).to.be.within(before, before + 5_000)
      expect(reply).to.include({ moved: 1, next: Math.floor(before) + 60_000 })
      expect(reply.latenessMs).to.equal(Math.floor(reply.now) - (Math.floor(before) - 50))
    })

    it('gives the server clock with fractions of a millisecond', async () => {
      const queue = await rig.queue()
      const fractions = new Set<number>()
      for (let i = 0; i < 20; i++) fractions.add((await transferOf(rig, queue, { nowMs: -1 })).now % 1)
      expect(Math.max(...fractions)).to.be.greaterThan(0)
    })

    it('counts the subscribers of the channel', async () => {
      const queue = await rig.queue()
      const other = rig.redis.duplicate()
      try {
        await other.subscribe(queue.keys.channel)
        expect(await transferOf(rig, queue)).to.include({ subscribers: 2 })
      } finally {
        await other.quit()
      }
      expect(await transferOf(rig, queue, { channel: `${queue.keys.channel}:unheard` })).to.include({ subscribers: 0 })
    })
  })

  describe('poison entries', () => {
    const [good1, good2] = [ordered('a', 'G1'), ordered('b', 'G2')]
    const shapes: [what: string, bytes: Buffer][] = [
      ['an empty member', Buffer.alloc(0)],
      ['one byte', hex('08')],
      ['one byte that says there is no id', hex('00')],
      ['a truncated id', hex('08 41424344')],
      ['an id without a length', hex('08 4142434445464748')],
      ['a truncated length', hex('08 4142434445464748 04000000')],
      ['a payload that is too short', hex('08 4142434445464748 0500000000000000 22686922')],
      ['a payload that is too long', hex('08 4142434445464748 0300000000000000 22686922')],
      ['a huge length', hex('08 4142434445464748 ffffffffffffffff 22686922')],
      ['a length that is right in its low 32 bits', hex('08 4142434445464748 0400000001000000 22686922')],
      ['a length that is right in its low 56 bits', hex('08 4142434445464748 0400000000000080 22686922')],
      ['a big endian length', hex('08 4142434445464748 0000000000000004 22686922')],
      ['an old entry with a wrong length', hex('81e97df41022b143 0500000000000000 22686922')],
      ['15 bytes of an old entry', hex('81e97df41022b143 00000000000000')],
      ['the 9-byte header without its id', hex('09 0000000000000000')],
      ['text', Buffer.from('an element that was added by hand')],
      ['all byte values', ALL_BYTES],
    ]
    for (const [what, poison] of shapes) {
      it(`sets aside ${what}, and delivers the good ones around it once`, async () => {
        const quarantined = Buffer.concat([Buffer.from(`malformed ${NOW} `), poison])
        const queue = await rig.queue({
          timeouts: [
            [good1, 1],
            [poison, 2],
            [good2, 3],
          ],
          order: [good1, poison, good2],
        })
        const done = expected({ destination: ['G1', 'G2'], quarantine: [quarantined] })

        expect(await transferOf(rig, queue)).to.deep.equal({
          ...NOTHING,
          moved: 2,
          malformed: 1,
          latenessMs: NOW - 1,
        })
        expect(await queue.read()).to.deep.equal(done)
        expect(await queue.published()).to.deep.equal([String(NOW + IDLE)])

        expect(await transferOf(rig, queue)).to.deep.equal(NOTHING)
        expect(await queue.read()).to.deep.equal(done)
        expect(await queue.published()).to.deep.equal([])
      })
    }

    const bad = (n: number) => Buffer.from(`bad${n}`)
    const aside = (n: number, reason = 'malformed') => `${reason} ${NOW} bad${n}`
    table(rig, [
      {
        what: 'sets aside several in a row, at the head and at the end',
        before: {
          timeouts: [
            [bad(1), 1],
            [bad(2), 1],
            [good1, 2],
            [bad(3), 3],
            [bad(4), 3],
            [good2, 4],
            [bad(5), 5],
          ],
          order: [bad(5), good2, bad(4), bad(3), good1, bad(2), bad(1)],
        },
        reply: { moved: 2, malformed: 5, latenessMs: NOW - 2 },
        after: { destination: ['G1', 'G2'], quarantine: [1, 2, 3, 4, 5].map((n) => aside(n)) },
        published: [NOW + IDLE],
      },
      {
        what: 'adds to what is in quarantine already, and leaves poison alone that is not due yet',
        before: {
          timeouts: [
            [bad(1), 1],
            [bad(2), NOW + 9],
          ],
          quarantine: ['earlier'],
        },
        reply: { malformed: 1, next: NOW + 9 },
        after: { timeouts: [[bad(2), NOW + 9]], quarantine: ['earlier', aside(1)] },
        published: [NOW + 9],
      },
      {
        what: 'sets aside entries with a negative due time, also well-formed ones',
        before: {
          timeouts: [
            [bad(1), '-inf'],
            [good1, '-9.2233703047609999e+18'],
            [bad(2), -1],
            [good2, 3],
          ],
          order: [good1, good2],
        },
        reply: { moved: 1, negative: 3, latenessMs: NOW - 3 },
        after: {
          destination: ['G2'],
          quarantine: [
            aside(1, 'negative-due'),
            Buffer.concat([Buffer.from(`negative-due ${NOW} `), good1]),
            aside(2, 'negative-due'),
          ],
        },
        published: [NOW + IDLE],
      },
      {
        what: 'takes a due time of -0 for 0',
        before: { timeouts: [[good1, '-0']] },
        reply: { moved: 1, latenessMs: NOW },
        after: { destination: ['G1'] },
        published: [NOW + IDLE],
      },
    ])

    it('sets aside more than 100 entries with a negative due time, and delivers the good one behind them once', async () => {
      const many = Array.from({ length: 250 }, (_, n) => [Buffer.from(`bad${n}`), -1000 + n] as const)
      const queue = await rig.queue({ timeouts: [...many, [good1, 1]] })

      const replies = [await transferOf(rig, queue), await transferOf(rig, queue), await transferOf(rig, queue)]

      expect(replies.map(({ moved, negative, next }) => ({ moved, negative, next }))).to.deep.equal([
        { moved: 1, negative: 100, next: NOW },
        { moved: 0, negative: 100, next: NOW },
        { moved: 0, negative: 50, next: null },
      ])
      const quarantine = many.map(([, due]) => aside(due + 1000, 'negative-due'))
      expect(await queue.read()).to.deep.equal(expected({ destination: ['G1'], quarantine }))
      expect(await queue.published()).to.deep.equal([NOW + LEASE, NOW + IDLE].map(String))
    })

    it('sets aside the rest of more than 100 negative due times with the next run, though nothing else is left', async () => {
      const queue = await rig.queue({ timeouts: Array.from({ length: 101 }, (_, n) => [`bad${n}`, -1] as const) })
      await transferOf(rig, queue)
      expect(await transferOf(rig, queue)).to.include({ negative: 1, next: null })
      expect((await queue.read()).quarantine).to.have.length(101)
    })

    for (const [what, score] of [
      ['malformed entries', 1],
      ['entries with a negative due time', -1],
    ] as const) {
      it(`gets through 5,000 ${what} beside 100,000 good ones without walking their order list`, async function () {
        this.timeout(30_000)
        const queue = await rig.queue({ timeouts: [[good1, 2]] })
        const { timeouts, order, destination } = queue.keys
        const bads = Array.from({ length: 5_000 }, (_, n) => [score, `bad${n}`]).flat()
        await rig.redis.zadd(timeouts, ...bads)
        for (let from = 0; from < 100_000; from += 5_000) {
          const good = Array.from({ length: 5_000 }, (_, n) => ordered(`g${from + n}`, 'later'))
          await rig.redis.zadd(timeouts, ...good.flatMap((entry) => [NOW + 9, entry]))
          await rig.redis.rpush(order, ...good)
        }
        await rig.redis.rpush(order, good1)
        let [moved, aside] = [0, 0]
        const startedAt = performance.now()
        for (let next = 0; next <= NOW;) {
          const reply = await transferOf(rig, queue, { budgetUs: 2_000 })
          moved += reply.moved
          aside += reply.malformed + reply.negative
          next = reply.next ?? Infinity
        }
        expect({ moved, aside }).to.deep.equal({ moved: 1, aside: 5_000 })
        expect(performance.now() - startedAt).to.be.lessThan(4_000) // with a walk for each it was 14 s
        expect(await rig.redis.llen(destination)).to.equal(1)
      })
    }

    it('sets aside the elements of a long order list, too, when they come to its head', async () => {
      const many = Array.from({ length: 1_100 }, (_, n) => `bad${n}`)
      const queue = await rig.queue({ timeouts: many.map((entry) => [entry, 1] as const), order: [...many, good1] })
      await rig.redis.zadd(queue.keys.timeouts, 2, good1)
      let orphans = 0
      for (let calls = 0; calls < 30; calls++) {
        orphans += (await transferOf(rig, queue)).orphans
        await rig.redis.zadd(queue.keys.timeouts, 2, good2)
        await rig.redis.rpush(queue.keys.order, good2)
      }
      expect(orphans).to.equal(1_100)
      const { order, quarantine } = await queue.read()
      expect(order.filter((entry) => entry.startsWith('bad'))).to.deep.equal([])
      expect(new Set(quarantine.map((line) => line.split(' ')[2])).size).to.equal(1_100)
    })

    it('continues beside a quarantine of another type, and tries again an hour later', async () => {
      const queue = await rig.queue({
        timeouts: [
          [bad(1), -1],
          [bad(2), 1],
          [good1, 2],
          [bad(3), 3],
          [good2, 4],
        ],
        order: [good1, good2],
      })
      await rig.redis.set(queue.keys.quarantine, 'in the way')
      const reply = await transferOf(rig, queue)
      expect(reply).to.include({ moved: 2, malformed: 0, negative: 0, next: NOW + HOUR })
      expect(reply.quarantineError).to.match(/^WRONGTYPE /)
      expect(await transferOf(rig, queue)).to.include({ moved: 0, next: NOW + HOUR })
      await rig.redis.del(queue.keys.quarantine)
      expect(await transferOf(rig, queue, { nowMs: NOW + HOUR })).to.include({ malformed: 2, negative: 1, next: null })
      const { destination, timeouts, quarantine } = await queue.read()
      expect({ destination, timeouts, count: quarantine.length }).to.deep.equal({
        destination: ['G1', 'G2'],
        timeouts: [],
        count: 3,
      })
    })

    it('gets through a heap of poison in bounded scripts', async () => {
      const many = Array.from({ length: 1000 }, (_, n) => [`bad${n}`, n] as const)
      const queue = await rig.queue({ timeouts: [...many, [good1, 2000]], order: [good1] })
      let malformed = 0
      let calls = 0
      for (let next: number | null = 0; next !== null; calls++) {
        const reply = await transferOf(rig, queue, { budgetUs: 200, limit: 300 })
        expect(reply.malformed).to.be.at.most(300)
        malformed += reply.malformed
        next = reply.next
      }
      expect(malformed).to.equal(1000)
      expect(calls).to.be.greaterThan(1)
      expect(await queue.read()).to.deep.equal(
        expected({ destination: ['G1'], quarantine: many.map(([, n]) => aside(n)) }),
      )
    })
  })

  describe('the lease of the leader', () => {
    const [a, b] = [ordered('a', 'A'), ordered('b', 'B')]
    /** One due and one pending entry. */
    const then = (due: number): State => ({
      timeouts: [
        [a, NOW],
        [b, due],
      ],
    })
    const only = (due: number): State => ({ timeouts: [[b, due]] })

    interface LeaseCase {
      what: string
      before: State
      /** The value of the key before and after the script; empty: there is no such key. A lease of milliseconds may have ended. */
      lease?: string
      args?: Partial<Args>
      reply: Partial<TransferReply>
      leaseAfter?: string
      published: number[]
    }

    function leases(cases: LeaseCase[], others: () => Promise<void> = () => Promise.resolve()): void {
      for (const { what, before, lease = '', args, reply, leaseAfter, published } of cases) {
        it(what, async () => {
          const queue = await rig.queue(before)
          channel = queue.keys.channel
          await others()
          if (lease !== '') await rig.redis.set(queue.keys.leader, lease)
          expect(await transferOf(rig, queue, args)).to.deep.include(reply)
          if (leaseAfter !== undefined) expect((await rig.redis.get(queue.keys.leader)) ?? '').to.equal(leaseAfter)
          expect(await queue.published()).to.deep.equal(published.map(String))
        })
      }
    }
    let channel = ''

    const MINE = `${NOW + LEASE} A`
    const soon = (client: string, ms: number) => `${NOW + ms} ${client}`

    describe('while more is due', () => {
      const more: Partial<Args> = { limit: 1 }
      leases([
        {
          what: 'is taken where there is none',
          before: then(NOW),
          args: more,
          reply: { moved: 1, next: NOW, ...LEADS },
          leaseAfter: MINE,
          published: [NOW + LEASE],
        },
        {
          what: 'is kept without a word as long as half of it is left',
          before: then(NOW),
          lease: soon('A', LEASE / 2),
          args: more,
          reply: { leader: 'self', leaseUntil: NOW + LEASE / 2 },
          leaseAfter: soon('A', LEASE / 2),
          published: [],
        },
        {
          what: 'is taken again when less is left',
          before: then(NOW),
          lease: soon('A', LEASE / 2 - 1),
          args: more,
          reply: LEADS,
          leaseAfter: MINE,
          published: [NOW + LEASE],
        },
        {
          what: 'is taken again when the followers know an earlier time',
          before: then(NOW),
          lease: soon('A', LEASE - 1),
          args: { ...more, renew: true },
          reply: LEADS,
          leaseAfter: MINE,
          published: [NOW + LEASE],
        },
        {
          what: 'is published again when the followers know an earlier time, whose entry has been moved before',
          before: only(NOW + 5),
          lease: soon('A', LEASE / 2),
          args: { renew: true },
          reply: { moved: 0, leader: 'self', leaseUntil: NOW + LEASE / 2 },
          leaseAfter: soon('A', LEASE / 2),
          published: [NOW + LEASE / 2],
        },
        {
          what: 'stays with another client; who moved something publishes its end, so that the followers wait for it',
          before: then(NOW),
          lease: soon('B', 7),
          args: { ...more, renew: true },
          reply: { moved: 1, leader: 'other', leaseUntil: NOW + 7 },
          leaseAfter: soon('B', 7),
          published: [NOW + 7],
        },
        {
          what: 'is taken from another client when it has ended by the time of the caller',
          before: then(NOW),
          lease: soon('B', 0),
          args: more,
          reply: LEADS,
          leaseAfter: MINE,
          published: [NOW + LEASE],
        },
        {
          what: 'is taken from another client when it is longer than a lease can be: a clock was set',
          before: then(NOW),
          lease: soon('B', LEASE + 1),
          args: more,
          reply: LEADS,
          leaseAfter: MINE,
          published: [NOW + LEASE],
        },
        {
          what: 'is taken where the key holds something else',
          before: then(NOW),
          lease: 'in the way',
          args: more,
          reply: LEADS,
          leaseAfter: MINE,
          published: [NOW + LEASE],
        },
        {
          what: 'is taken without a word by a script that moved nothing',
          before: then(NOW),
          args: { limit: 0 },
          reply: { moved: 0, ...LEADS },
          leaseAfter: MINE,
          published: [],
        },
        {
          what: 'is published by a script that moved nothing, with `announce`',
          before: then(NOW),
          args: { limit: 0, announce: true },
          reply: { moved: 0, ...LEADS },
          leaseAfter: MINE,
          published: [NOW + LEASE],
        },
      ])
    })

    describe('of a script that moved nothing', () => {
      leases([
        {
          what: 'leaves the word to another client that leads',
          before: only(NOW + 9),
          lease: soon('B', 5),
          args: { announce: true },
          reply: { moved: 0, leader: 'other', leaseUntil: NOW + 5 },
          leaseAfter: soon('B', 5),
          published: [],
        },
        {
          what: 'covers a due time before its end',
          before: only(NOW + 4),
          lease: soon('A', 5),
          args: { announce: true },
          reply: { moved: 0, leader: 'self', leaseUntil: NOW + 5 },
          leaseAfter: soon('A', 5),
          published: [],
        },
        {
          what: 'does not cover a due time at its end',
          before: only(NOW + 5),
          lease: soon('A', 5),
          args: { announce: true },
          reply: { moved: 0, leader: 'self', leaseUntil: NOW + 5 },
          leaseAfter: soon('A', 5),
          published: [NOW + 5],
        },
        {
          what: 'does not keep the caller from publishing that nothing is left',
          before: {},
          lease: soon('A', 5),
          args: { announce: true },
          reply: { moved: 0, leader: 'self' },
          leaseAfter: soon('A', 5),
          published: [NOW + IDLE],
        },
        {
          what: 'is not taken: no client leads',
          before: only(NOW + 1),
          args: { announce: true },
          reply: { moved: 0, leader: 'none', leaseUntil: 0 },
          leaseAfter: '',
          published: [NOW + 1],
        },
      ])
    })

    it('is not taken by the only subscriber while nothing more is due', async () => {
      const queue = await rig.queue(then(NOW + 1))
      expect(await transferOf(rig, queue)).to.include({ moved: 1, leader: 'none' })
      expect(await rig.redis.exists(queue.keys.leader)).to.equal(0)
      expect(await queue.published()).to.deep.equal([String(NOW + 1)])
    })

    for (const [others, ms] of [
      [1, 3],
      [23, 6],
    ] as const) {
      describe(`after something was moved, with ${others + 1} subscribers`, () => {
        const clients: Redis[] = []
        before(() => {
          for (let n = 0; n < others; n++) clients.push(rig.redis.duplicate())
        })
        after(() => Promise.all(clients.map((client) => client.quit())))
        const subscribed = async (): Promise<void> => {
          await Promise.all(clients.map((client) => client.subscribe(channel)))
        }
        leases(
          [
            {
              what: `is taken for ${ms} ms, and its end published when the next entry is due before`,
              before: then(NOW + 1),
              reply: { moved: 1, next: NOW + 1, subscribers: others + 1, leader: 'self', leaseUntil: NOW + ms },
              published: [NOW + ms],
            },
            {
              what: 'is taken, and the next due time published when that is later',
              before: then(NOW + 50),
              reply: { moved: 1, leader: 'self', leaseUntil: NOW + ms },
              published: [NOW + 50],
            },
            {
              what: 'is taken when nothing is left',
              before: { timeouts: [[a, NOW]] },
              reply: { moved: 1, next: null, leader: 'self', leaseUntil: NOW + ms },
              published: [NOW + IDLE],
            },
            {
              what: 'is kept without a word when half of it is left after the next due time',
              before: then(NOW + 1),
              lease: soon('A', 1 + Math.ceil(ms / 2)),
              reply: { moved: 1, leader: 'self' },
              leaseAfter: soon('A', 1 + Math.ceil(ms / 2)),
              published: [],
            },
            {
              what: 'is taken again when less is left',
              before: then(NOW + 2),
              lease: soon('A', 3),
              reply: { moved: 1, leader: 'self', leaseUntil: NOW + ms },
              published: [NOW + ms],
            },
            {
              what: 'stays with another client, whose end is published',
              before: then(NOW + 1),
              lease: soon('B', 9),
              reply: { moved: 1, leader: 'other', leaseUntil: NOW + 9 },
              leaseAfter: soon('B', 9),
              published: [NOW + 9],
            },
          ],
          subscribed,
        )
      })
    }

    it('ends by itself', async () => {
      const queue = await rig.queue(then(NOW))
      await transferOf(rig, queue, { limit: 1 })
      expect(await rig.redis.pttl(queue.keys.leader)).to.be.within(1, LEASE)
    })

    it('overwrites a key of another type', async () => {
      const queue = await rig.queue(then(NOW))
      await rig.redis.rpush(queue.keys.leader, 'in the way')
      expect(await transferOf(rig, queue, { limit: 1 })).to.include({ moved: 1, ...LEADS })
      expect(await rig.redis.get(queue.keys.leader)).to.equal(MINE)
    })
  })

  describe('keys of another type', () => {
    const [a, b] = [ordered('a', 'A'), ordered('b', 'B')]
    const pending: State = {
      timeouts: [
        [a, 1],
        [b, 2],
      ],
      order: [a, b],
    }

    it('changes nothing when the destination is not a list', async () => {
      const queue = await rig.queue(pending)
      await rig.redis.set(queue.keys.destination, 'in the way')

      for (let i = 0; i < 2; i++) expect(await rejection(transferOf(rig, queue))).to.include({ code: 'ERR_WRONG_TYPE' })

      expect(await rig.redis.get(queue.keys.destination)).to.equal('in the way')
      await rig.redis.del(queue.keys.destination)
      expect(await queue.read()).to.deep.equal(expected(pending))
      expect(await queue.published()).to.deep.equal([])
    })

    it('changes nothing when the destination is not a list and the entries are out of order', async () => {
      const before: State = {
        timeouts: [
          [b, 1],
          [a, 2],
        ],
        order: [a, b],
      }
      const queue = await rig.queue(before)
      await rig.redis.set(queue.keys.destination, 'in the way')
      expect(await rejection(transferOf(rig, queue))).to.include({ code: 'ERR_WRONG_TYPE' })
      await rig.redis.del(queue.keys.destination)
      expect(await queue.read()).to.deep.equal(expected(before))
    })

    it('delivers once and reports the order list that is not a list', async () => {
      const queue = await rig.queue({
        timeouts: [
          [a, 1],
          [unordered('c', 'C'), 2],
          [b, 3],
          ['poison', 4],
        ],
      })
      await rig.redis.set(queue.keys.order, 'in the way')

      const reply = await transferOf(rig, queue)

      expect(reply).to.include({ moved: 3, malformed: 1, next: null })
      expect(reply.orderError).to.match(/^WRONGTYPE /)
      expect(await transferOf(rig, queue)).to.deep.equal(NOTHING)
      expect(await rig.redis.get(queue.keys.order)).to.equal('in the way')
      await rig.redis.del(queue.keys.order)
      const after = expected({ destination: ['A', 'C', 'B'], quarantine: [`malformed ${NOW} poison`] })
      expect(await queue.read()).to.deep.equal(after)
    })

    it('does not search the order list for entries that are in no list', async () => {
      const queue = await rig.queue({ timeouts: [[unordered('c', 'C'), 2]] })
      await rig.redis.set(queue.keys.order, 'in the way')
      expect(await transferOf(rig, queue)).to.deep.equal({
        ...NOTHING,
        moved: 1,
        latenessMs: NOW - 2,
      })
      expect(await rig.redis.lrange(queue.keys.destination, 0, -1)).to.deep.equal(['C'])
    })

    it('changes nothing when the schedule is not a sorted set', async () => {
      const queue = await rig.queue({ order: [a], destination: ['there'] })
      await rig.redis.set(queue.keys.timeouts, 'in the way')
      expect(await rejection(transferOf(rig, queue))).to.include({ code: 'ERR_WRONG_TYPE' })
      await rig.redis.del(queue.keys.timeouts)
      expect(await queue.read()).to.deep.equal(expected({ order: [a], destination: ['there'] }))
    })
  })

  describe('a backlog', () => {
    const LAYOUTS: [count: number, what: string, entry: typeof ordered, order: 'sorted' | 'reversed' | 'none'][] = [
      [20_000, 'in offer order', ordered, 'sorted'],
      [20_000, 'without an order list', unordered, 'none'],
      [5_000, 'in the reverse of the offer order', ordered, 'reversed'],
    ]
    for (const [count, what, entry, order] of LAYOUTS) {
      it(`of ${count} ${what} is moved piece by piece, each message once and in order`, async function () {
        this.timeout(60_000)
        if (!(await canMeasure(rig))) this.skip() // there the client limits the entries: see batch-limit.test.ts
        const entries = Array.from({ length: count }, (_, n) => entry(String(n).padStart(8, '0'), `p${n}`))
        const queue = await rig.queue()
        await fill(queue, entries, order)

        const first = await transferOf(rig, queue, { budgetUs: 1 })
        expect(first.moved).to.be.within(1, order === 'reversed' ? 1 : 10)
        expect(first.next).to.equal(NOW - count + first.moved)
        // one microsecond is used up by the first round; a larger budget shows that the rounds grow
        let moved = first.moved
        let calls = 0
        for (let next = first.next; next !== null; calls++) {
          const reply = await transferOf(rig, queue, { budgetUs: calls < 20 ? 1 : 2_000 })
          expect(reply.moved).to.be.greaterThan(0)
          moved += reply.moved
          next = reply.next
          expect(await rig.redis.zcard(queue.keys.timeouts)).to.equal(count - moved)
        }

        expect(moved).to.equal(count)
        expect(calls).to.be.greaterThan(20)
        const state = await queue.read()
        expect(state.destination).to.deep.equal(Array.from({ length: count }, (_, n) => `p${n}`))
        expect(state).to.deep.include({ timeouts: [], order: [], quarantine: [] })
      })
    }

    async function fill(queue: Fixture, entries: readonly Buffer[], order: 'sorted' | 'reversed' | 'none') {
      for (let from = 0; from < entries.length; from += 1000) {
        const page = entries.slice(from, from + 1000)
        await rig.redis.zadd(
          queue.keys.timeouts,
          ...page.flatMap((entry, n) => [NOW - entries.length + from + n, entry]),
        )
        if (order === 'sorted') await rig.redis.rpush(queue.keys.order, ...page)
        if (order === 'reversed') await rig.redis.lpush(queue.keys.order, ...page)
      }
    }

    it('never moves more than the limit, whatever the size of the rounds', async () => {
      const queue = await rig.queue()
      await fill(
        queue,
        Array.from({ length: 1000 }, (_, n) => unordered(String(n).padStart(8, '0'), `p${n}`)),
        'none',
      )
      for (const limit of [1, 9, 10, 11, 49, 51, 333]) {
        expect(await transferOf(rig, queue, { limit })).to.include({ moved: limit })
      }
    })
  })

  describe('on a server of its own', () => {
    const own = useRedis([])

    it('reads a large entry that is the next one once, and not again while it is', async () => {
      const [large, small] = [unordered('large', 'x'.repeat(70_000)), unordered('small', 'S')]
      const due = NOW + HOUR
      const queue = await own.queue({ timeouts: [[large, due]] })
      const seen = await transferOf(own, queue)
      expect(seen).to.deep.equal({ ...NOTHING, next: due, largeHead: String(due) })
      const { largeHead } = seen
      expect(await transferOf(own, queue, { largeHead: 'x', largeFirst: 'x' })).to.deep.equal(seen)
      const calls = await commandCalls(own.redis, async () => {
        expect(await transferOf(own, queue, { largeHead })).to.deep.equal(seen)
      })
      expect(calls.zrangebyscore).to.equal(1) // for negative due times
      expect(calls.zcount ?? 0).to.be.at.most(2)
      await own.redis.zadd(queue.keys.timeouts, NOW + 5, small)
      expect(await transferOf(own, queue, { largeHead })).to.include({ next: NOW + 5, largeHead })
      expect(await transferOf(own, queue, { largeHead, nowMs: NOW + 5 })).to.include({ moved: 1, next: due, largeHead })
      // it is gone: at its time a transfer finds nothing
      await own.redis.zrem(queue.keys.timeouts, large)
      await own.redis.zadd(queue.keys.timeouts, due + 1, small)
      expect(await transferOf(own, queue, { largeHead })).to.include({ next: due, largeHead })
      expect(await transferOf(own, queue, { largeHead, nowMs: due })).to.include({ next: due + 1, largeHead: '' })
      await own.redis.zrem(queue.keys.timeouts, small)
      expect(await transferOf(own, queue, { largeHead })).to.include({ next: null, largeHead: '' })
      for (const score of ['inf', '1.5e+300']) {
        await own.redis.zadd(queue.keys.timeouts, score, large)
        const odd = await transferOf(own, queue)
        expect(await transferOf(own, queue, { largeHead: odd.largeHead })).to.deep.equal(odd)
        await own.redis.zrem(queue.keys.timeouts, large)
      }
    })

    it('reads a large entry that is the first one of the order list once, and not again while it is', async () => {
      const large = ordered('large', 'x'.repeat(70_000))
      const small = Array.from({ length: 9 }, (_, n) => ordered(`small${n}`, String(n)))
      const due = NOW + HOUR
      const queue = await own.queue({ timeouts: [[large, due]], order: [large, ...small] })
      let hint: Partial<Args> = {}
      const moved = async (entries: readonly Buffer[]): Promise<number> => {
        for (const entry of entries) await own.redis.zadd(queue.keys.timeouts, NOW - 5, entry)
        const calls = await commandCalls(own.redis, async () => {
          const { largeHead, largeFirst, ...reply } = await transferOf(own, queue, hint)
          expect(reply).to.include({ moved: entries.length, next: due })
          hint = { largeHead, largeFirst }
          expect(hint).to.deep.equal({ largeHead: String(due), largeFirst: String(due) })
        })
        return calls.lindex ?? 0
      }
      expect(await moved(small.slice(0, 3))).to.be.greaterThan(0)
      expect(await moved(small.slice(3, 6))).to.equal(0)
      expect(await moved(small.slice(6, 8))).to.equal(0)
      expect((await queue.read()).order).to.have.length(2)
      // what is known is over: the entry is due, in the order in which both were offered
      await own.redis.zadd(queue.keys.timeouts, due, small[8]!)
      const last = await transferOf(own, queue, { ...hint, nowMs: due })
      expect(last).to.include({ moved: 2, next: null, largeHead: '', largeFirst: '' })
      expect((await queue.read()).order).to.deep.equal([])
    })

    it('moves due messages in their order if a known large entry is gone, and sets aside entries without a schedule afterwards', async () => {
      const orphan = ordered('orphan', 'x'.repeat(70_000))
      const small = ['a', 'b', 'c'].map((id) => ordered(id, id))
      const at = [NOW, NOW, NOW + 9]
      const queue = await own.queue({
        timeouts: small.map((entry, n) => [entry, at[n]!] as const),
        order: [orphan, ...small],
      })
      const hint = { largeHead: String(NOW + 9), largeFirst: String(NOW + 9) }
      expect(await transferOf(own, queue, hint)).to.include({ moved: 2, orphans: 0, next: NOW + 9, ...hint })
      const last = await transferOf(own, queue, { ...hint, nowMs: NOW + 9 })
      expect(last).to.include({ moved: 1, orphans: 1, next: null, largeHead: '', largeFirst: '' })
      expect(await queue.read()).to.deep.include({ order: [], destination: ['a', 'b', 'c'] })
    })

    it('moves entries in offer order, or without an order list, without walking the list', async () => {
      const sorted = Array.from({ length: 500 }, (_, n) => ordered(String(n).padStart(8, '0'), `p${n}`))
      const free = Array.from({ length: 500 }, (_, n) => unordered(String(n).padStart(8, '0'), `p${n}`))
      const queue = await own.queue({
        timeouts: [...sorted, ...free].map((entry, n) => [entry, n] as const),
        order: sorted,
      })

      const calls = await commandCalls(own.redis, () => transferOf(own, queue))

      expect((await queue.read()).destination).to.have.length(1000)
      expect(calls).to.not.have.property('lrem')
      expect(calls.rpush).to.be.lessThan(20)
    })

    it('changes nothing when memory is out, and continues when it is back', async () => {
      const before: State = {
        timeouts: [
          [ordered('a', 'A'), 1],
          [ordered('b', 'B'), 2],
        ],
        order: [ordered('a', 'A'), ordered('b', 'B')],
      }
      const queue = await own.queue(before)
      await own.redis.config('SET', 'maxmemory', '1')
      try {
        expect(await rejection(transferOf(own, queue))).to.include({ code: 'ERR_COMMAND', redisCode: 'OOM' })
        expect(await queue.read()).to.deep.equal(expected(before))
        expect(await queue.published()).to.deep.equal([])
      } finally {
        await own.redis.config('SET', 'maxmemory', '0')
      }
      expect(await transferOf(own, queue)).to.include({ moved: 2 })
      expect(await queue.read()).to.deep.equal(expected({ destination: ['A', 'B'] }))
    })

    it('changes nothing when memory is out and poison is at the head', async () => {
      const before: State = {
        timeouts: [
          ['negative', -1],
          ['poison', 1],
          [ordered('a', 'A'), 2],
        ],
      }
      const queue = await own.queue(before)
      await own.redis.config('SET', 'maxmemory', '1')
      try {
        expect(await rejection(transferOf(own, queue))).to.include({ redisCode: 'OOM' })
        expect(await queue.read()).to.deep.equal(expected(before))
      } finally {
        await own.redis.config('SET', 'maxmemory', '0')
      }
    })

    it('continues without a lease when memory is out', async () => {
      const queue = await own.queue({ timeouts: [[ordered('a', 'A'), 1]] })
      await own.redis.config('SET', 'maxmemory', '1')
      try {
        expect(await transferOf(own, queue, { limit: 0, announce: true })).to.include({ moved: 0, leader: 'none' })
        expect(await own.redis.exists(queue.keys.leader)).to.equal(0)
        expect(await queue.published(), 'the followers wait all the same').to.deep.equal([String(NOW + LEASE)])
      } finally {
        await own.redis.config('SET', 'maxmemory', '0')
      }
    })

    it('continues without a lease when the user may not use SET and GET', async () => {
      const queue = await own.queue({
        timeouts: [
          [ordered('a', 'A'), 1],
          [ordered('b', 'B'), 2],
        ],
      })
      await own.redis.call('ACL', 'SETUSER', 'default', '-set', '-get')
      try {
        for (const moved of [1, 1, 0])
          expect(await transferOf(own, queue, { limit: 1 })).to.include({ moved, leader: 'none' })
      } finally {
        await own.redis.call('ACL', 'SETUSER', 'default', '+@all')
      }
      expect((await queue.read()).destination).to.deep.equal(['A', 'B'])
    })

    it('works for about its budget', async function () {
      if (!(await canMeasure(own))) this.skip()
      const reversed = Array.from({ length: 3000 }, (_, n) => ordered(String(n).padStart(8, '0'), `p${n}`))
      const queue = await own.queue({
        timeouts: reversed.map((entry, n) => [entry, n] as const),
        order: reversed.toReversed(),
      })
      await own.redis.config('RESETSTAT')
      const { moved } = await transferOf(own, queue, { budgetUs: 1_000 })
      const micros = Number(/cmdstat_evalsha:.*?usec=(\d+)/.exec(await own.redis.info('commandstats'))?.[1] ?? NaN)
      expect(moved).to.be.within(1, 2999)
      // generous: another process may have had the processor meanwhile
      expect(micros).to.be.within(1_000, 100_000)
    })
  })
})
