import { expect } from 'chai'
import { add } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  expected,
  having,
  LONGEST,
  MAX,
  NOW,
  record,
  useReliable,
  type ReliableFixture,
  type State,
} from './reliable-support.js'
import { ALL_BYTES, commandCalls, raw, rejection, type Bytes } from './support.js'

interface Item {
  readonly id: Bytes
  readonly priority?: number
  /** Milliseconds, or `@` and a time. */
  readonly delay?: number | string
  readonly ttl?: number
  readonly limit?: number
  readonly headers?: Bytes
  readonly payload?: Bytes
  readonly once?: readonly [mark: Bytes, forMs: number]
}

interface Options {
  readonly nowMs?: number
  readonly existing?: 'keep' | 'replace' | 'postpone'
  readonly sentAgoMs?: number
  readonly durable?: boolean
}

function itemsOf(list: readonly Item[]): Buffer[] {
  return list.flatMap(({ id, priority = 0, delay, ttl, limit, headers = '', payload = '', once }) => {
    const details = `${priority},${delay ?? ''},${ttl ?? ''},${limit ?? ''},${raw(headers).length},${once?.[1] ?? ''},`
    return [
      raw(id),
      Buffer.concat([Buffer.from(details), raw(once?.[0] ?? '')]),
      Buffer.concat([raw(headers), raw(payload)]),
    ]
  })
}

function argsOf(queue: ReliableFixture, list: readonly Item[], options: Options = {}) {
  return {
    channel: queue.channel,
    client: 'me',
    nowMs: NOW,
    existing: 'keep',
    sentAgoMs: -1,
    durable: false,
    batch: '',
    items: itemsOf(list),
    ...options,
  }
}

/** Records that are in no schedule and not in flight. */
const ORPHANS = Array.from({ length: 5 }, (_, n) => [`~${n}`, record()] as const)

/** The latest end of a mark that another clock may have set. */
const LAST_MARK = NOW + LONGEST + 86_400_000

describe('reliable-add.lua', () => {
  const rig = useReliable()

  const [x, y] = [
    { id: 'x', at: NOW - 5, payload: 'X' },
    { id: 'y', at: NOW + 5, payload: 'Y' },
  ]
  /** Delivered before, and in flight at priority 4. */
  const held = { id: 'x', priority: 4, until: NOW + 100, attempts: 3, token: 't', failures: '1 5 "x"\n', payload: 'X' }

  const cases: {
    what: string
    before?: State
    items: readonly Item[]
    options?: Options
    reply: number[]
    after: State
    published: number[]
  }[] = [
    {
      what: 'adds the first message, visible at once, and announces it',
      items: [{ id: 'a', payload: 'A' }],
      reply: [1],
      after: having([{ id: 'a', at: NOW, payload: 'A' }]),
      published: [NOW],
    },
    {
      what: 'adds nothing when there is nothing to add',
      before: having([y]),
      items: [],
      reply: [],
      after: having([y]),
      published: [],
    },
    {
      what: 'adds to the schedule of the priority, after the delay, with all meta data',
      items: [{ id: 'a', priority: 9, delay: 500, ttl: 50, limit: 3, headers: '{"h":"1"}', payload: ALL_BYTES }],
      reply: [1],
      after: having([
        { id: 'a', priority: 9, at: NOW + 500, expires: NOW + 550, limit: 3, headers: '{"h":"1"}', payload: ALL_BYTES },
      ]),
      published: [NOW + 500],
    },
    {
      what: 'adds ids of any bytes, the empty one, and headers of any bytes',
      items: [
        { id: ALL_BYTES, headers: ALL_BYTES, payload: 'A' },
        { id: '', payload: '' },
        { id: '\r\n\0', priority: 1 },
        { id: 'x'.repeat(600), priority: 2 },
      ],
      reply: [1, 1, 1, 1],
      after: having([
        { id: ALL_BYTES, headers: ALL_BYTES, payload: 'A' },
        { id: '' },
        { id: '\r\n\0', priority: 1 },
        { id: 'x'.repeat(600), priority: 2 },
      ]),
      published: [NOW],
    },
    {
      what: 'takes each part of the meta data alone',
      items: [
        { id: 'a', ttl: 1 },
        { id: 'b', limit: 1_000_000 },
        { id: 'c', headers: 'h' },
      ],
      reply: [1, 1, 1],
      after: having([
        { id: 'a', expires: NOW + 1 },
        { id: 'b', limit: 1_000_000 },
        { id: 'c', headers: 'h' },
      ]),
      published: [NOW],
    },
    {
      what: 'keeps a delivery limit of 2^53-1 readable',
      items: [{ id: 'a', limit: MAX, headers: 'h', payload: 'A' }],
      reply: [1],
      after: having([{ id: 'a', limit: MAX, headers: 'h', payload: 'A' }]),
      published: [NOW],
    },
    {
      what: 'announces the earliest of several, once',
      before: having([{ id: 'z', at: NOW + 1000, priority: 9 }]),
      items: [
        { id: 'a', delay: 30 },
        { id: 'b', delay: 10 },
        { id: 'c', delay: 20 },
      ],
      reply: [1, 1, 1],
      after: having([
        { id: 'z', at: NOW + 1000, priority: 9 },
        { id: 'a', at: NOW + 30 },
        { id: 'b', at: NOW + 10 },
        { id: 'c', at: NOW + 20 },
      ]),
      published: [NOW + 10],
    },
    ...[0, 9].map((priority) => ({
      what: `says nothing when something is visible as early, at priority ${priority}`,
      before: having([{ id: 'z', at: NOW + 10, priority }]),
      items: [{ id: 'a', delay: 10, priority: 5 }],
      reply: [1],
      after: having([
        { id: 'z', at: NOW + 10, priority },
        { id: 'a', at: NOW + 10, priority: 5 },
      ]),
      published: [],
    })),
    {
      what: 'says nothing when a visibility ends earlier',
      before: having([{ id: 'z', until: NOW + 9 }]),
      items: [{ id: 'a', delay: 10 }],
      reply: [1],
      after: having([
        { id: 'z', until: NOW + 9 },
        { id: 'a', at: NOW + 10 },
      ]),
      published: [],
    },
    {
      what: 'announces what is visible before the first visibility ends',
      before: having([{ id: 'z', until: NOW + 11 }]),
      items: [{ id: 'a', delay: 10 }],
      reply: [1],
      after: having([
        { id: 'z', until: NOW + 11 },
        { id: 'a', at: NOW + 10 },
      ]),
      published: [NOW + 10],
    },
    {
      what: 'says nothing when a tick of a repeat comes earlier',
      before: { ticks: [['r', NOW + 9]] },
      items: [{ id: 'a', delay: 10 }],
      reply: [1],
      after: having([{ id: 'a', at: NOW + 10 }], { ticks: [['r', NOW + 9]] }),
      published: [],
    },
    {
      what: 'announces what is visible before the first tick',
      before: { ticks: [['r', NOW + 11]] },
      items: [{ id: 'a', delay: 10 }],
      reply: [1],
      after: having([{ id: 'a', at: NOW + 10 }], { ticks: [['r', NOW + 11]] }),
      published: [NOW + 10],
    },
    // an id that is there
    {
      what: 'keeps a message of the same id as it is',
      before: having([x]),
      items: [{ id: 'x', priority: 3, delay: 7, payload: 'new' }],
      reply: [0],
      after: having([x]),
      published: [],
    },
    {
      what: 'keeps the first of two of the same id in one call',
      items: [
        { id: 'a', payload: '1' },
        { id: 'a', payload: '2', priority: 1 },
      ],
      reply: [1, 0],
      after: having([{ id: 'a', payload: '1' }]),
      published: [NOW],
    },
    {
      what: 'keeps one that is in flight',
      before: having([held]),
      items: [{ id: 'x', delay: 200, payload: 'new' }],
      reply: [0],
      after: having([held]),
      published: [],
    },
    ...[0, 3].map((priority) => ({
      what: `replaces a message that waits, at priority ${priority}`,
      before: having([{ ...x, attempts: 2, failures: '1 5 "x"\n' }]),
      items: [{ id: 'x', priority, delay: 7, ttl: 1, payload: 'new' }],
      options: { existing: 'replace' as const },
      reply: [2],
      after: having([{ id: 'x', priority, at: NOW + 7, expires: NOW + 8, payload: 'new' }]),
      published: [],
    })),
    ...[0, 4].map((priority) => ({
      what: `replaces a message that is in flight, at priority ${priority}: who has it has it no more`,
      before: having([held]),
      items: [{ id: 'x', priority, delay: 7, payload: 'new' }],
      options: { existing: 'replace' as const },
      reply: [2],
      after: having([{ id: 'x', priority, at: NOW + 7, payload: 'new' }]),
      published: [NOW + 7],
    })),
    {
      what: 'the last of two of the same id replaces the first',
      items: [
        { id: 'a', payload: '1' },
        { id: 'a', payload: '2', priority: 1, delay: 4 },
      ],
      options: { existing: 'replace' },
      reply: [1, 2],
      after: having([{ id: 'a', payload: '2', priority: 1, at: NOW + 4 }]),
      published: [NOW],
    },
    {
      what: 'adds with `replace` and `postpone` where there is nothing yet',
      items: [{ id: 'a' }],
      options: { existing: 'postpone' },
      reply: [1],
      after: having([{ id: 'a' }]),
      published: [NOW],
    },
    {
      what: 'postpones one that waits: all but its time stays',
      before: having([{ ...y, priority: 3, attempts: 2, failures: '1 5 "x"\n' }]),
      items: [{ id: 'y', priority: 7, delay: 500, payload: 'new' }],
      options: { existing: 'postpone' },
      reply: [3],
      after: having([{ ...y, priority: 3, at: NOW + 500, attempts: 2, failures: '1 5 "x"\n' }]),
      published: [],
    },
    ...[
      { delay: 500, expires: NOW + 20 + 495 },
      { delay: 0, expires: NOW + 15 },
      { delay: MAX - NOW, expires: MAX },
    ].map(({ delay, expires }) => ({
      what: `a message that is postponed to ${delay} ms from now lives as long after it is visible`,
      before: having([
        { id: 'z', at: 1 },
        { ...y, expires: NOW + 20, limit: 2, headers: 'h' },
      ]),
      items: [{ id: 'y', delay }],
      options: { existing: 'postpone' as const },
      reply: [3],
      after: having([
        { id: 'z', at: 1 },
        { ...y, at: NOW + delay, expires, limit: 2, headers: 'h' },
      ]),
      published: [],
    })),
    ...[
      { ttl: undefined, expires: NOW + 20 },
      { ttl: 5, expires: NOW + 20 },
      { ttl: 60, expires: NOW + 70 },
    ].map(({ ttl, expires }) => ({
      what: `a postponed message that would have become visible after its expiry keeps that expiry, or gets a later one, with ${ttl === undefined ? 'no time to live' : `${ttl} ms to live`}`,
      before: having([
        { id: 'z', at: 1 },
        { ...y, at: NOW + 3_600_000, expires: NOW + 20 },
      ]),
      items: [{ id: 'y', delay: 10, ...(ttl !== undefined && { ttl }) }],
      options: { existing: 'postpone' as const },
      reply: [3],
      after: having([
        { id: 'z', at: 1 },
        { ...y, at: NOW + 10, expires },
      ]),
      published: [],
    })),
    {
      what: 'postpones a message whose visibility has ended',
      before: having([{ ...held, until: NOW }]),
      items: [{ id: 'x', delay: 200 }],
      options: { existing: 'postpone' },
      reply: [3],
      after: having([{ id: 'x', priority: 4, attempts: 3, failures: '1 5 "x"\n', payload: 'X', at: NOW + 200 }], {
        deliveries: [['x', '3 t']],
      }),
      published: [],
    },
    {
      what: 'announces one that it moves to an earlier time',
      before: having([y]),
      items: [{ id: 'y', delay: 4 }],
      options: { existing: 'postpone' },
      reply: [3],
      after: having([{ ...y, at: NOW + 4 }]),
      published: [NOW + 4],
    },
    {
      what: 'does not postpone one that is in flight',
      before: having([held]),
      items: [{ id: 'x', delay: 200 }],
      options: { existing: 'postpone' },
      reply: [0],
      after: having([held]),
      published: [],
    },
    ...[undefined, ['m', 10] as const].map((once) => ({
      what: `forgets the delivery of an earlier message of the same id whose record is gone, ${once ? 'with' : 'without'} a mark`,
      before: {
        deliveries: [['x', '3 t'] as const, ['y', '1 u'] as const],
        inFlight: [['4x', NOW + 100] as const, ['0y', NOW + 200] as const],
      },
      items: [{ id: 'x', payload: 'new', delay: 3, once }],
      reply: [1],
      after: having([{ id: 'x', payload: 'new', at: NOW + 3 }], {
        deliveries: [['y', '1 u']],
        inFlight: [['0y', NOW + 200]],
        ...(once && { once: [['m', NOW + 10]] }),
      }),
      published: [NOW + 3],
    })),
    // a record whose place another program, or an eviction, has deleted: no poll finds it
    ...(['keep', 'replace', 'postpone'] as const).flatMap((existing) => [
      {
        what: `adds in the place of a record that is in no schedule, existing ${existing}`,
        before: {
          messages: [['x', record('X', { expires: NOW + 5 })] as const, ['y', record('Y')] as const],
          deliveries: [['x', '3 t'] as const],
          failures: [['x', '1 5 "x"\n'] as const],
        },
        items: [{ id: 'x', payload: 'new', delay: 3, priority: 4 }],
        options: { existing },
        reply: [1],
        after: having([{ id: 'x', payload: 'new', at: NOW + 3, priority: 4 }], { messages: [['y', record('Y')]] }),
        published: [NOW + 3],
      },
      {
        what: `adds it although the queue is full with that record, existing ${existing}`,
        before: { messages: [['x', record('X')] as const], config: [['maxSize', '1'] as const] },
        items: [{ id: 'x', payload: 'X' }],
        options: { existing, sentAgoMs: 9 },
        reply: [1],
        after: having([{ id: 'x', payload: 'X' }], { config: [['maxSize', '1']] }),
        published: [NOW],
      },
    ]),
    {
      what: 'adds over an entry of the same schedule that has no record',
      before: { due: { 0: [['a', NOW - 9]] } },
      items: [{ id: 'a', payload: 'A', delay: 1 }],
      reply: [1],
      after: having([{ id: 'a', payload: 'A', at: NOW + 1 }]),
      published: [],
    },
    // what has expired
    ...(['keep', 'replace', 'postpone'] as const).flatMap((existing) => [
      ...[1, 7].map((priority) => ({
        what: `adds in the place of one that has expired, from priority 7 to ${priority}, existing ${existing}`,
        before: having([{ ...x, priority: 7, expires: NOW, attempts: 2, failures: '1 5 "x"\n', headers: 'h' }]),
        items: [{ id: 'x', priority, delay: 3, payload: 'new' }],
        options: { existing },
        reply: [1],
        after: having([{ id: 'x', priority, at: NOW + 3, payload: 'new' }]),
        published: [],
      })),
      {
        what: `adds in the place of one that expired while a consumer had it, existing ${existing}`,
        before: having([{ ...held, until: NOW, expires: NOW - 1 }]),
        items: [{ id: 'x', delay: 3, payload: 'new' }],
        options: { existing },
        reply: [1],
        after: having([{ id: 'x', at: NOW + 3, payload: 'new' }]),
        published: [],
      },
      {
        what: `adds in the place of a record in no schedule that has expired, existing ${existing}`,
        before: { messages: [['x', record('X', { expires: 1 })] as const] },
        items: [{ id: 'x', payload: 'new' }],
        options: { existing },
        reply: [1],
        after: having([{ id: 'x', payload: 'new' }]),
        published: [NOW],
      },
      {
        what: `leaves one that expires right after now to the policy, existing ${existing}`,
        before: having([{ ...x, expires: NOW + 1 }]),
        items: [{ id: 'x', payload: 'new', delay: 1 }],
        options: { existing },
        reply: [{ keep: 0, replace: 2, postpone: 3 }[existing]],
        after: having([
          {
            keep: { ...x, expires: NOW + 1 },
            replace: { id: 'x', at: NOW + 1, payload: 'new' },
            postpone: { ...x, at: NOW + 1, expires: NOW + 7 },
          }[existing],
        ]),
        published: [],
      },
      {
        what: `leaves one that a consumer has to the policy, though it has expired, existing ${existing}`,
        before: having([{ ...held, expires: NOW - 1 }]),
        items: [{ id: 'x', payload: 'new', delay: 200 }],
        options: { existing },
        reply: [existing === 'replace' ? 2 : 0],
        after: having([
          existing === 'replace' ? { id: 'x', at: NOW + 200, payload: 'new' } : { ...held, expires: NOW - 1 },
        ]),
        published: [],
      },
    ]),
    {
      what: 'adds in the place of an equal one that has expired also when it is sent again',
      before: having([{ ...x, expires: NOW }]),
      items: [{ id: 'x', payload: 'X', ttl: 5 }],
      options: { sentAgoMs: 9 },
      reply: [1],
      after: having([{ id: 'x', payload: 'X', expires: NOW + 5 }]),
      published: [],
    },
    {
      what: 'refuses a duplicate of one that has expired, a payload that is too large and a time beyond all, and leaves it',
      before: having([{ ...x, expires: NOW }], {
        config: [['maxMessageBytes', '3']],
        once: [['m', NOW + 1]],
      }),
      items: [
        { id: 'x', once: ['m', 10] },
        { id: 'x', payload: 'four' },
        { id: 'x', delay: MAX },
      ],
      reply: [-1, -5, -3],
      after: having([{ ...x, expires: NOW }], {
        config: [['maxMessageBytes', '3']],
        once: [['m', NOW + 1]],
      }),
      published: [],
    },
    {
      what: 'does not count the one in whose place it adds in a full queue',
      before: having([{ ...x, expires: NOW }, y], { config: [['maxSize', '2']] }),
      items: [{ id: 'x', payload: 'new' }, { id: 'a' }],
      reply: [1, -2],
      after: having([{ id: 'x', payload: 'new' }, y], { config: [['maxSize', '2']] }),
      published: [],
    },
    {
      what: 'adds none in its place where there is too much without it',
      before: having([{ ...x, expires: NOW }, y], { config: [['maxSize', '1']] }),
      items: [{ id: 'x', payload: 'new' }],
      reply: [-2],
      after: having([{ ...x, expires: NOW }, y], { config: [['maxSize', '1']] }),
      published: [],
    },
    {
      what: 'leaves what has expired while adding is paused',
      before: having([{ ...x, expires: NOW }], { config: [['addPaused', '1']] }),
      items: [{ id: 'x', payload: 'new' }],
      reply: [-4],
      after: having([{ ...x, expires: NOW }], { config: [['addPaused', '1']] }),
      published: [],
    },
    // sent again
    {
      what: 'takes what is there for its own when it is sent again, and adds the rest',
      before: having([x, held].slice(0, 1)),
      items: [
        { id: 'x', payload: 'X' },
        { id: 'a', payload: 'A' },
      ],
      options: { sentAgoMs: 9, existing: 'replace' },
      reply: [1, 1],
      after: having([x, { id: 'a', payload: 'A' }]),
      published: [],
    },
    {
      what: 'takes it for its own by headers and payload, whatever else is said of it',
      before: having([{ ...x, headers: 'h', expires: NOW + 5, limit: 3, priority: 2 }, y]),
      items: [
        { id: 'x', headers: 'h', payload: 'X' },
        { id: 'y', payload: 'Y', headers: 'h' },
      ],
      options: { sentAgoMs: 9 },
      reply: [1, 0],
      after: having([{ ...x, headers: 'h', expires: NOW + 5, limit: 3, priority: 2 }, y]),
      published: [],
    },
    {
      what: 'treats what is there with another payload as always when it is sent again',
      before: having([x, y]),
      items: [
        { id: 'x', payload: 'X2' },
        { id: 'y', payload: '', delay: 1 },
      ],
      options: { sentAgoMs: 9, existing: 'replace' },
      reply: [2, 2],
      after: having([
        { id: 'x', payload: 'X2' },
        { id: 'y', at: NOW + 1 },
      ]),
      published: [],
    },
    // at a moment
    {
      what: 'is visible at a given moment, or at once when that has passed, whatever delay the queue has',
      before: { config: [['delay', '70']] },
      items: [
        { id: 'a', delay: `@${NOW + 9}`, ttl: 5 },
        { id: 'b', delay: `@${NOW - 9}` },
        { id: 'c', delay: '@0' },
        { id: 'd', delay: `@${MAX}` },
      ],
      reply: [1, 1, 1, 1],
      after: having([{ id: 'a', at: NOW + 9, expires: NOW + 14 }, { id: 'b' }, { id: 'c' }, { id: 'd', at: MAX }], {
        config: [['delay', '70']],
      }),
      published: [NOW],
    },
    {
      what: 'takes a message that a consumer has by now for its own when it is sent again',
      before: having([held]),
      items: [{ id: 'x', payload: 'X', delay: 500 }],
      options: { sentAgoMs: 9 },
      reply: [1],
      after: having([held]),
      published: [],
    },
    ...[
      // the first attempt was sent 9 ms ago
      { delay: 0, reply: 1 },
      { delay: 9, reply: 1 },
      { delay: 10, reply: -1 },
      { delay: 500, reply: -1 },
      { delay: `@${NOW}`, reply: 1 },
      { delay: `@${NOW + 1}`, reply: -1 },
    ].map(({ delay, reply }) => ({
      what: `sent again, takes a mark ${reply === 1 ? 'for its own' : 'for that of another message'} with the delay ${delay}, because a consumer ${reply === 1 ? 'can' : 'cannot'} have had the message`,
      before: { once: [['m', NOW + 1]] } satisfies State,
      items: [{ id: 'x', once: ['m', 10] as const, delay }],
      options: { sentAgoMs: 9 },
      reply: [reply],
      after: { once: [['m', NOW + 1]] } satisfies State,
      published: [typeof delay === 'string' ? Number(delay.slice(1)) : NOW + delay],
    })),
    {
      what: 'sent again with a mark that another clock has set, takes it for its own where the message is visible at once',
      before: { once: [['m', NOW + 15]] },
      items: [{ id: 'x', once: ['m', 10] }],
      options: { sentAgoMs: 9 },
      reply: [1],
      after: { once: [['m', NOW + 15]] },
      published: [NOW],
    },
    ...[0, 5].map((delay) => ({
      what: `sent again after 9 ms, takes a mark of five minutes ago for that of another message with the delay ${delay}`,
      before: { once: [['m', NOW + 3_300_000]] } satisfies State,
      items: [{ id: 'x', once: ['m', 3_600_000] as const, delay }],
      options: { sentAgoMs: 9 },
      reply: [-1],
      after: { once: [['m', NOW + 3_300_000]] } satisfies State,
      published: [NOW + delay],
    })),
    {
      what: 'sent again, takes a mark that was set while the first attempt could be on its way for its own',
      before: { once: [['m', NOW + 1]] },
      items: [{ id: 'x', once: ['m', 10_010] }],
      options: { sentAgoMs: 9 },
      reply: [1],
      after: { once: [['m', NOW + 1]] },
      published: [NOW],
    },
    {
      what: 'says of what is there that it was added when it is sent again, also when adding is paused meanwhile',
      before: having([x], { config: [['addPaused', '1']] }),
      items: [{ id: 'x', payload: 'X' }, { id: 'a' }],
      options: { sentAgoMs: 9 },
      reply: [1, -4],
      after: having([x], { config: [['addPaused', '1']] }),
      published: [],
    },
    // once in an interval
    {
      what: 'marks what must not be added again, and refuses it within the interval only',
      before: {
        once: [
          ['n', NOW + 1],
          ['o', NOW],
          ['p', NOW + 1],
        ],
      },
      items: [
        { id: 'a', once: ['m', 10] },
        { id: 'b', once: ['m', 10] },
        { id: 'c', once: ['n', 10] },
        { id: 'd', once: ['o', 10] },
      ],
      reply: [1, -1, -1, 1],
      after: having([{ id: 'a' }, { id: 'd' }], {
        once: [
          ['n', NOW + 1],
          ['p', NOW + 1],
          ['m', NOW + 10],
          ['o', NOW + 10],
        ],
      }),
      published: [NOW],
    },
    {
      what: 'marks with any bytes',
      items: [{ id: 'a', once: [ALL_BYTES, 10] }],
      reply: [1],
      after: having([{ id: 'a' }], { once: [[ALL_BYTES, NOW + 10]] }),
      published: [NOW],
    },
    {
      what: 'does not mark what is kept or postponed',
      before: having([x]),
      items: [{ id: 'x', once: ['m', 10] }],
      reply: [0],
      after: having([x]),
      published: [],
    },
    {
      what: 'replaces within the interval, which begins anew',
      before: having([x], { once: [['m', NOW + 1]] }),
      items: [{ id: 'x', once: ['m', 10], payload: 'new' }],
      options: { existing: 'replace' },
      reply: [2],
      after: having([{ id: 'x', payload: 'new' }], { once: [['m', NOW + 10]] }),
      published: [],
    },
    {
      what: 'removes at most 20 marks whose time has passed, and two for each message',
      before: { once: Array.from({ length: 30 }, (_, n) => [`m${n}`, NOW - 29 + n] as const) },
      items: [{ id: 'a' }, { id: 'b' }, { id: 'b' }],
      reply: [1, 1, 0],
      after: having([{ id: 'a' }, { id: 'b' }], {
        once: Array.from({ length: 4 }, (_, n) => [`m${26 + n}`, NOW - 3 + n] as const),
      }),
      published: [NOW],
    },
    ...([`${LAST_MARK + 1}`, 'inf', NOW * 1_000_000] as const).map((until) => ({
      what: `ignores a mark that ends at ${until}, which no client sets`,
      before: { once: [['m', until]] } satisfies State,
      items: [{ id: 'a', once: ['m', 10] as const }],
      reply: [1],
      after: having([{ id: 'a' }], { once: [['m', NOW + 10]] }),
      published: [NOW],
    })),
    {
      what: 'believes the longest mark, also of a clock a day ahead',
      before: { once: [['m', LAST_MARK]] },
      items: [{ id: 'a', once: ['m', 10] }],
      reply: [-1],
      after: { once: [['m', LAST_MARK]] },
      published: [NOW],
    },
    {
      what: 'removes at most 20 marks that no client sets, and two for each message, besides those whose time has passed',
      before: {
        once: [
          ...Array.from({ length: 30 }, (_, n) => [`f${n}`, MAX - 29 + n] as const),
          ['old', NOW - 1],
          ['good', NOW + 1],
        ],
      },
      items: [{ id: 'a', once: ['m', 10] }],
      reply: [1],
      after: having([{ id: 'a' }], {
        once: [
          ['good', NOW + 1],
          ['m', NOW + 10],
          ...Array.from({ length: 8 }, (_, n) => [`f${n}`, MAX - 29 + n] as const),
        ],
      }),
      published: [NOW],
    },
    {
      what: 'keeps the mark that it sets anew',
      before: { once: [['m', NOW - 1]] },
      items: [{ id: 'a', once: ['m', 10] }],
      reply: [1],
      after: having([{ id: 'a' }], { once: [['m', NOW + 10]] }),
      published: [NOW],
    },
    // limits
    {
      what: 'refuses a new message when the queue is full, without a mark, but replaces, keeps and postpones',
      before: having([x, y], { config: [['maxSize', '2']] }),
      items: [{ id: 'a', once: ['m', 10], delay: 7 }],
      reply: [-2],
      after: having([x, y], { config: [['maxSize', '2']] }),
      published: [],
    },
    {
      what: 'replaces in a full queue',
      before: having([x, y], { config: [['maxSize', '2']] }),
      items: [{ id: 'x', payload: 'new' }, { id: 'a' }],
      options: { existing: 'replace' },
      reply: [2, -2],
      after: having([{ id: 'x', at: NOW, payload: 'new' }, y], { config: [['maxSize', '2']] }),
      published: [],
    },
    {
      what: 'fills the queue and refuses the rest; those in flight count',
      before: having([{ id: 'z', until: NOW + 1 }], { config: [['maxSize', '3']] }),
      items: [{ id: 'a' }, { id: 'b' }, { id: 'c' }],
      reply: [1, 1, -2],
      after: having([{ id: 'z', until: NOW + 1 }, { id: 'a' }, { id: 'b' }], { config: [['maxSize', '3']] }),
      published: [NOW],
    },
    {
      what: 'does not count records without a place when these fill the queue',
      before: having([{ id: 'z', until: NOW + 1 }, y], { messages: ORPHANS, config: [['maxSize', '4']] }),
      items: [{ id: 'a' }, { id: 'b' }, { id: 'c' }],
      reply: [1, 1, -2],
      after: having([{ id: 'z', until: NOW + 1 }, y, { id: 'a' }, { id: 'b' }], {
        messages: ORPHANS,
        config: [['maxSize', '4']],
      }),
      published: [NOW],
    },
    {
      what: 'does not count records without a place that fill the queue with the first of several messages',
      before: { messages: ORPHANS, config: [['maxSize', '6']] },
      items: [{ id: 'a' }, { id: 'b' }, { id: '~1', payload: 'new' }],
      reply: [1, 1, 1],
      after: having([{ id: 'a' }, { id: 'b' }, { id: '~1', payload: 'new' }], {
        messages: ORPHANS.filter(([id]) => id !== '~1'),
        config: [['maxSize', '6']],
      }),
      published: [NOW],
    },
    {
      what: 'a message in the place of a record without one counts',
      before: having([y], { messages: ORPHANS, config: [['maxSize', '2']] }),
      items: [{ id: '~1', payload: 'new' }, { id: '~2' }],
      reply: [1, -2],
      after: having([y, { id: '~1', payload: 'new' }], {
        messages: ORPHANS.filter(([id]) => id !== '~1'),
        config: [['maxSize', '2']],
      }),
      published: [NOW],
    },
    {
      what: 'an expired message makes room beside records without a place',
      before: having([{ ...x, expires: NOW }, y], { messages: ORPHANS, config: [['maxSize', '2']] }),
      items: [{ id: 'x', payload: 'new' }, { id: 'a' }],
      reply: [1, -2],
      after: having([{ id: 'x', payload: 'new' }, y], { messages: ORPHANS, config: [['maxSize', '2']] }),
      published: [],
    },
    {
      what: 'counts messages with a group, also of a paused one, beside records without a place',
      before: {
        messages: [...ORPHANS, ['g', record('G')]],
        due: { 10: [['g', NOW]] },
        groupPauses: [['tenant', 0]],
        config: [['maxSize', '2']],
      },
      items: [{ id: 'a' }, { id: 'b' }],
      reply: [1, -2],
      after: {
        messages: [...ORPHANS, ['g', record('G')], ['a', record()]],
        due: { 0: [['a', NOW]], 10: [['g', NOW]] },
        groupPauses: [['tenant', 0]],
        config: [['maxSize', '2']],
      },
      published: [NOW],
    },
    {
      what: 'counts the records when more ids without a record are in a schedule',
      before: having([y], {
        due: { 3: ['a', 'b', 'c', 'd', 'e'].map((id) => [id, MAX] as const) },
        config: [['maxSize', '2']],
      }),
      items: [{ id: 'n' }, { id: 'o' }],
      reply: [1, -2],
      after: having([y, { id: 'n' }], {
        due: { 3: ['a', 'b', 'c', 'd', 'e'].map((id) => [id, MAX] as const) },
        config: [['maxSize', '2']],
      }),
      published: [NOW],
    },
    {
      what: 'refuses only payloads above the limit; headers do not count',
      before: { config: [['maxMessageBytes', '3']] },
      items: [
        { id: 'a', payload: 'four' },
        { id: 'b', payload: '\xff\xff\xff', headers: 'long ones' },
      ],
      reply: [-5, 1],
      after: having([{ id: 'b', payload: '\xff\xff\xff', headers: 'long ones' }], {
        config: [['maxMessageBytes', '3']],
      }),
      published: [NOW],
    },
    {
      what: 'refuses everything while adding is paused, without a word',
      before: having([x], { config: [['addPaused', '1']] }),
      items: [{ id: 'a' }, { id: 'x', once: ['m', 1] }],
      options: { existing: 'replace' },
      reply: [-4, -4],
      after: having([x], { config: [['addPaused', '1']] }),
      published: [],
    },
    {
      what: 'adds while only polling is paused',
      before: {
        config: [
          ['pollPaused', '1'],
          ['addPaused', '0'],
        ],
      },
      items: [{ id: 'a' }],
      reply: [1],
      after: having([{ id: 'a' }], {
        config: [
          ['pollPaused', '1'],
          ['addPaused', '0'],
        ],
      }),
      published: [NOW],
    },
    {
      what: 'takes delay and time to live from the configuration where none are given; a delay of 0 is given',
      before: {
        config: [
          ['delay', '70'],
          ['timeToLive', '9'],
        ],
      },
      items: [{ id: 'a' }, { id: 'b', delay: 1, ttl: 2 }, { id: 'c', delay: 0 }],
      reply: [1, 1, 1],
      after: having(
        [
          { id: 'a', at: NOW + 70, expires: NOW + 79 },
          { id: 'b', at: NOW + 1, expires: NOW + 3 },
          { id: 'c', at: NOW, expires: NOW + 9 },
        ],
        {
          config: [
            ['delay', '70'],
            ['timeToLive', '9'],
          ],
        },
      ),
      published: [NOW],
    },
    {
      what: 'ignores settings that are no numbers',
      before: {
        config: [
          ['delay', 'x'],
          ['timeToLive', ''],
          ['maxSize', 'many'],
          ['maxMessageBytes', '{}'],
        ],
      },
      items: [{ id: 'a', payload: 'A' }],
      reply: [1],
      after: having([{ id: 'a', payload: 'A' }], {
        config: [
          ['delay', 'x'],
          ['timeToLive', ''],
          ['maxSize', 'many'],
          ['maxMessageBytes', '{}'],
        ],
      }),
      published: [NOW],
    },
    {
      what: 'adds up to the last time there is',
      items: [
        { id: 'a', delay: MAX - NOW },
        { id: 'b', delay: MAX - NOW - 1, ttl: 1 },
        { id: 'c', delay: MAX - NOW - 1, once: ['m', LONGEST] },
      ],
      reply: [1, 1, 1],
      after: having(
        [
          { id: 'a', at: MAX },
          { id: 'b', at: MAX - 1, expires: MAX },
          { id: 'c', at: MAX - 1 },
        ],
        { once: [['m', NOW + LONGEST]] },
      ),
      published: [MAX - 1],
    },
    {
      what: 'refuses times beyond it, each for itself',
      items: [
        { id: 'a', delay: MAX },
        { id: 'b', delay: MAX - NOW + 1 },
        { id: 'c', delay: 5, ttl: MAX },
        { id: 'd', delay: 5, once: ['m', MAX] },
        { id: 'e', delay: 5 },
      ],
      reply: [-3, -3, -3, -3, 1],
      after: having([{ id: 'e', at: NOW + 5 }]),
      published: [NOW + 5],
    },
    {
      what: 'says nothing when all times are beyond it',
      items: [{ id: 'a', delay: MAX }],
      reply: [-3],
      after: {},
      published: [],
    },
  ]
  for (const { what, before: state, items, options, reply, after: then, published } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const got = await run(rig.sender, add, queue.keys, argsOf(queue, items, options))
      expect(got).to.deep.equal({ now: NOW, outcomes: reply })
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('reads one schedule for the size of a full queue that has its messages there', async () => {
    const queue = await rig.queue(having([x, { id: 'z', at: NOW - 9 }], { config: [['maxSize', '2']] }))
    const args = argsOf(queue, [{ id: 'a', delay: 1 }])
    const calls = await commandCalls(rig.redis, () => run(rig.sender, add, queue.keys, args))
    expect(calls['zcard']).to.equal(2) // the claims come first
  })

  it('adds a thousand messages at once', async () => {
    const queue = await rig.queue()
    const list = Array.from({ length: 1000 }, (_, n) => ({
      id: `id ${n}`,
      priority: n % 10,
      delay: 1000 - n,
      payload: `${n}`,
    }))
    const got = await run(rig.sender, add, queue.keys, argsOf(queue, list))
    expect(got.outcomes).to.deep.equal(list.map(() => 1))
    expect(await queue.read()).to.deep.equal(
      expected(having(list.map(({ id, priority, delay, payload }) => ({ id, priority, at: NOW + delay, payload })))),
    )
    expect(await queue.published()).to.deep.equal([String(NOW + 1)])
    const again = await run(rig.sender, add, queue.keys, argsOf(queue, list, { sentAgoMs: 9 }))
    expect(again.outcomes).to.deep.equal(list.map(() => 1))
    expect(await queue.published()).to.deep.equal([])
  })

  it('has no more marks after many calls than were set in the time for which they hold', async () => {
    const queue = await rig.queue()
    for (let call = 0; call < 20; call++) {
      const list = Array.from({ length: 250 }, (_, n) => ({ id: 'x', once: [`${call} ${n}`, 1] as const }))
      const options = { nowMs: NOW + call, existing: 'replace' } as const
      await run(rig.sender, add, queue.keys, argsOf(queue, list, options))
      expect(await rig.redis.zcard(queue.keys.once)).to.equal(250)
    }
  })

  it('adds messages without marks if the key of marks has the wrong type', async () => {
    const queue = await rig.queue()
    await queue.block('once')
    expect((await run(rig.sender, add, queue.keys, argsOf(queue, [{ id: 'a' }]))).outcomes).to.deep.equal([1])
    await queue.unblock('once')
    expect(await queue.read()).to.deep.equal(expected(having([{ id: 'a' }])))
  })

  it('uses the clock of the server without a given time', async () => {
    const queue = await rig.queue()
    const clock = async (): Promise<number> => {
      const [seconds, micros] = await rig.redis.time()
      return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
    }
    const earliest = await clock()
    const { now } = await run(rig.sender, add, queue.keys, argsOf(queue, [{ id: 'a', delay: 5 }], { nowMs: -1 }))
    expect(now).to.be.within(earliest, await clock())
    expect(await queue.read()).to.deep.equal(expected(having([{ id: 'a', at: now + 5 }])))
  })

  it('changes nothing when the announcement is refused', async () => {
    const start = having([y], { once: [['m', NOW - 1]] })
    for (const existing of ['keep', 'replace', 'postpone'] as const) {
      const queue = await rig.queue(start)
      const thrown = await rig.muted([queue.deadChannel], (sender) =>
        rejection(run(sender, add, queue.keys, argsOf(queue, [{ id: 'a' }, { id: 'y' }], { existing }))),
      )
      expect(thrown.message).to.match(/perm|can't/i)
      expect(await queue.read()).to.deep.equal(expected(start))
    }
  })

  for (const wrong of ['messages', 'once', 'config', 'inFlight', 'ticks', 'due0', 'due5', 'due9'] as const) {
    it(`leaves no message that no poll will deliver when ${wrong} has the wrong type`, async () => {
      const queue = await rig.queue()
      await queue.block(wrong)
      // without something earlier and with it: the announcement looks at the schedules only until it finds that
      for (const early of [false, true]) {
        if (early && wrong !== 'inFlight') await rig.redis.zadd(queue.keys.inFlight, '5', '0z')
        for (const priority of [5, 9, 0]) {
          const name = `${priority} ${early}`
          const item: Item = { id: name, priority, once: [name, 5] }
          const outcome = await run(rig.sender, add, queue.keys, argsOf(queue, [item])).then(
            ({ outcomes }) => outcomes,
            (error: unknown) => String(error),
          )
          if (early && typeof outcome !== 'string') {
            expect(outcome).to.deep.equal([1])
            continue
          }
          // without the schedules of others the rest goes on
          if (wrong === 'inFlight' || wrong === 'ticks' || wrong !== `due${priority}`) {
            if (typeof outcome !== 'string') {
              expect(outcome).to.deep.equal([1])
              continue
            }
          }
          expect(outcome).to.match(/wrong/i)
          expect(['messages', 'once', 'config', `due${priority}`]).to.include(wrong)
          if (wrong !== 'messages') expect(await rig.redis.hexists(queue.keys.messages, name)).to.equal(0)
          if (wrong !== 'once') expect(await rig.redis.zscore(queue.keys.once, name)).to.equal(null)
        }
      }
    })
  }

  for (const wrong of [
    'messages',
    'deliveries',
    'failures',
    'once',
    'inFlight',
    'due0',
    'due2',
    'due5',
    'due9',
  ] as const) {
    for (const where of ['waits', 'is in flight'] as const) {
      it(`a message that it cannot replace because ${wrong} has the wrong type still ${where}`, async () => {
        const old = where === 'waits' ? { ...x, priority: 2 } : { ...held, priority: 2 }
        const place = where === 'waits' ? 'due2' : 'inFlight'
        const queue = await rig.queue(having([old]))
        const blocked = wrong === 'messages' || wrong === place
        await queue.block(wrong)
        const replacement = { id: 'x', priority: 5, payload: 'new', once: ['m', 10] } as const
        const thrown = await run(
          rig.sender,
          add,
          queue.keys,
          argsOf(queue, [replacement], { existing: 'replace' }),
        ).then(
          () => null,
          (error: unknown) => String(error),
        )
        await queue.unblock(wrong)
        const { queue: now } = await queue.read()
        if (thrown !== null) expect(thrown).to.match(/wrong/i)
        if (blocked) return // the place where it was is gone
        expect(now.messages).to.have.all.keys('x')
        const places = [...Object.values(now.due ?? {}), now.inFlight ?? []].flat()
        expect(places.map(([member]) => member)).to.include.oneOf(['x', '2x', '5x'])
      })
    }
  }
})
