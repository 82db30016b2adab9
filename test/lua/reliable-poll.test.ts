import { expect } from 'chai'
import { poll, type PollReply } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  asDead,
  expected,
  having,
  IDLE,
  MAX,
  memberOf,
  readablePolled,
  NOW,
  pollArgs,
  record,
  recordOf,
  useReliable,
  type Message,
  type PollArgs,
  type State,
  LONGEST,
} from './reliable-support.js'
import { ALL_BYTES, raw, readable } from './support.js'

const ENDED = '"its visibility ended"\n'

/** One message in the reply. */
function handedOut(message: Message, attempt = 1, token = 't'): unknown {
  const { priority = 0, at = NOW, id } = message
  const delivery = `${attempt} ${token}`
  return { priority, id: readable(id), delivery, visibleAt: Number(at), record: readable(recordOf(message)) }
}

function shown({ messages, repeats, changed, ...rest }: PollReply): unknown {
  expect(changed).to.be.at.least(messages.length + repeats.length + rest.returned + rest.expired + rest.deadLettered)
  return {
    ...rest,
    repeats: repeats.map(({ name, value }) => [name, value && readable(value)]),
    messages: messages.map(readablePolled),
  }
}

/** The same message while it is in flight. */
function taken(message: Message, attempts = 1, until = NOW + 500): Message {
  return { ...message, until, attempts, token: 't' }
}

describe('reliable-poll.lua', () => {
  const rig = useReliable()

  const [a, b, c] = [
    { id: 'a', at: NOW - 2, payload: 'A' },
    { id: 'b', at: NOW - 1, payload: 'B' },
    { id: 'c', at: NOW, payload: 'C' },
  ]
  const later = { id: 'later', at: NOW + 1, payload: 'L' }

  interface Case {
    what: string
    before?: State
    args?: Partial<PollArgs>
    /** The differences from an empty reply. */
    reply: Omit<Partial<PollReply>, 'messages' | 'repeats'> & {
      messages?: unknown[]
      repeats?: [name: string, value: string][]
    }
    after: State
    published: (number | string)[]
  }

  const cases: Case[] = [
    { what: 'hands out nothing of an empty queue, without a word', reply: {}, after: {}, published: [] },
    {
      what: 'announces the idle time with `announce` on an empty queue',
      args: { announce: true },
      reply: {},
      after: {},
      published: [NOW + IDLE],
    },
    {
      what: 'hands out what is visible, to the millisecond, and says when something is next',
      before: having([a, b, c, later]),
      reply: { next: NOW + 1, messages: [handedOut(a), handedOut(b), handedOut(c)] },
      after: having([taken(a), taken(b), taken(c), later]),
      published: [NOW + 1],
    },
    {
      what: 'says when the first visibility ends if nothing is earlier',
      before: having([a, { id: 'z', at: NOW + 501 }]),
      reply: { next: NOW + 500, messages: [handedOut(a)] },
      after: having([taken(a), { id: 'z', at: NOW + 501 }]),
      published: [NOW + 500],
    },
    {
      what: 'says nothing when nothing is visible yet',
      before: having([later, { id: 'z', until: NOW + 7 }]),
      reply: { next: NOW + 1 },
      after: having([later, { id: 'z', until: NOW + 7 }]),
      published: [],
    },
    {
      what: 'announces the next visible time with `announce`',
      before: having([later]),
      args: { announce: true },
      reply: { next: NOW + 1 },
      after: having([later]),
      published: [NOW + 1],
    },
    {
      what: 'hands out no more than asked for; the rest is visible already',
      before: having([a, b, c]),
      args: { count: 2 },
      reply: { next: NOW, messages: [handedOut(a), handedOut(b)] },
      after: having([taken(a), taken(b), c]),
      published: [NOW],
    },
    {
      what: 'hands out beforehand: the visibility ends a fraction earlier, which the reply does not show',
      before: having([a, { ...b, attempts: 2 }]),
      args: { beforehand: true },
      reply: { next: NOW + 500, messages: [handedOut(a), handedOut(b, 3)] },
      after: having([
        { ...a, until: NOW + 499.75, attempts: 1 },
        { ...b, until: NOW + 499.75, attempts: 3 },
      ]),
      published: [NOW + 500],
    },
    {
      what: 'does not count what was taken beforehand and never begun, and remembers that',
      before: having([{ ...a, until: NOW - 0.25, attempts: 1, failures: 'f\n' }]),
      args: { count: 0 },
      reply: { returned: 1, next: NOW },
      after: having([{ ...a, at: NOW, failures: 'f\n' }], { deliveries: [['a', '0~']] }),
      published: [NOW],
    },
    {
      what: 'counts one that was begun after that, and remembers it still',
      before: having([{ ...a, until: NOW, attempts: 1, token: '~u' }]),
      args: { count: 0 },
      reply: { returned: 1, next: NOW },
      after: having([{ ...a, at: NOW, failures: `1 ${NOW} ${ENDED}` }], { deliveries: [['a', '1~']] }),
      published: [NOW],
    },
    {
      what: 'asks who takes such a one beforehand to begin it first, and nothing of others',
      before: having([a, b], {
        deliveries: [
          ['a', '0~'],
          ['b', '4~'],
        ],
      }),
      args: { beforehand: true },
      reply: { next: NOW + 500, messages: [handedOut(a, 1, '~t'), handedOut(b, 5, '~t')] },
      after: having([
        { ...a, until: NOW + 499.75, attempts: 1, token: '~t' },
        { ...b, until: NOW + 499.75, attempts: 5, token: '~t' },
      ]),
      published: [NOW + 500],
    },
    {
      what: 'hands such a one out as any other to who begins at once',
      before: having([a], { deliveries: [['a', '0~']] }),
      reply: { next: NOW + 500, messages: [handedOut(a)] },
      after: having([taken(a)]),
      published: [NOW + 500],
    },
    {
      what: 'hands out none when none are asked for',
      before: having([a]),
      args: { count: 0 },
      reply: { next: NOW - 2 },
      after: having([a]),
      published: [],
    },
    {
      what: 'hands out by priority, then by time, then by the bytes of the id',
      before: having([
        { id: 'old', priority: 0, at: 1 },
        { id: 'y', priority: 1, at: NOW - 1 },
        { id: '\xff', priority: 1, at: NOW - 1 },
        { id: 'B', priority: 1, at: NOW - 1 },
        { id: 'late', priority: 1, at: NOW },
        { id: 'nine', priority: 9, at: NOW },
        { id: 'five', priority: 5, at: NOW - 9 },
        { id: 'not yet', priority: 9, at: NOW + 1 },
      ]),
      args: { count: 6 },
      reply: {
        next: 1,
        messages: [
          handedOut({ id: 'nine', priority: 9 }),
          handedOut({ id: 'five', priority: 5, at: NOW - 9 }),
          handedOut({ id: 'B', priority: 1, at: NOW - 1 }),
          handedOut({ id: 'y', priority: 1, at: NOW - 1 }),
          handedOut({ id: '\xff', priority: 1, at: NOW - 1 }),
          handedOut({ id: 'late', priority: 1 }),
        ],
      },
      after: having([
        { id: 'old', at: 1 },
        taken({ id: 'nine', priority: 9 }),
        taken({ id: 'five', priority: 5 }),
        taken({ id: 'B', priority: 1 }),
        taken({ id: 'y', priority: 1 }),
        taken({ id: '\xff', priority: 1 }),
        taken({ id: 'late', priority: 1 }),
        { id: 'not yet', priority: 9, at: NOW + 1 },
      ]),
      published: [1],
    },
    {
      what: 'hands out ids and records of any bytes, whole records, and the empty id',
      before: having([
        { id: ALL_BYTES, headers: '{"h":"1"}', expires: NOW + 1, limit: 3, payload: ALL_BYTES },
        { id: '', at: NOW - 1 },
        { id: '0', at: NOW - 2 },
      ]),
      reply: {
        next: NOW + 500,
        messages: [
          handedOut({ id: '0', at: NOW - 2 }),
          handedOut({ id: '', at: NOW - 1 }),
          handedOut({ id: ALL_BYTES, headers: '{"h":"1"}', expires: NOW + 1, limit: 3, payload: ALL_BYTES }),
        ],
      },
      after: having([
        taken({ id: '0' }),
        taken({ id: '' }),
        taken({ id: ALL_BYTES, headers: '{"h":"1"}', expires: NOW + 1, limit: 3, payload: ALL_BYTES }),
      ]),
      published: [NOW + 500],
    },
    {
      what: 'counts attempts on, and keeps what is known of failures',
      before: having([{ ...a, attempts: 4, failures: '4 5 "x"\n' }]),
      args: { token: 'another one' },
      reply: { next: NOW + 500, messages: [handedOut(a, 5, 'another one')] },
      after: having([{ ...taken(a, 5), token: 'another one', failures: '4 5 "x"\n' }]),
      published: [NOW + 500],
    },
    {
      what: 'takes attempts that cannot be read for none',
      before: having([a, b], {
        deliveries: [
          ['a', 'many'],
          ['b', ''],
        ],
      }),
      reply: { next: NOW + 500, messages: [handedOut(a), handedOut(b)] },
      after: having([taken(a), taken(b)]),
      published: [NOW + 500],
    },
    // how long no other consumer gets them
    {
      what: 'uses the visibility of the queue when it is given none',
      before: having([a], { config: [['visibilityTimeout', '77']] }),
      args: { visibilityMs: -1 },
      reply: { visibilityMs: 77, next: NOW + 77, messages: [handedOut(a)] },
      after: having([taken(a, 1, NOW + 77)], { config: [['visibilityTimeout', '77']] }),
      published: [NOW + 77],
    },
    {
      what: 'prefers the one that it is given',
      before: having([a], { config: [['visibilityTimeout', '77']] }),
      args: { visibilityMs: 0 },
      reply: { visibilityMs: 0, next: NOW, messages: [handedOut(a)] },
      after: having([taken(a, 1, NOW)], { config: [['visibilityTimeout', '77']] }),
      published: [NOW],
    },
    ...['', 'soon', String(LONGEST + 1)].map((visibility) => ({
      what: `has 30 s when the queue says ${JSON.stringify(visibility)}`,
      before: having([a], { config: [['visibilityTimeout', visibility]] }),
      args: { visibilityMs: -1 },
      reply: { visibilityMs: 30_000, next: NOW + 30_000, messages: [handedOut(a)] },
      after: having([taken(a, 1, NOW + 30_000)], { config: [['visibilityTimeout', visibility]] }),
      published: [NOW + 30_000],
    })),
    ...[MAX, MAX - NOW].map((visibilityMs) => ({
      what: `ends a visibility of ${visibilityMs} ms after the longest one`,
      before: having([a]),
      args: { visibilityMs },
      reply: { visibilityMs: LONGEST, next: NOW + LONGEST, messages: [handedOut(a)] },
      after: having([taken(a, 1, NOW + LONGEST)]),
      published: [NOW + LONGEST],
    })),
    // what comes back
    {
      what: 'hands out again what was not acknowledged in time, as visible since then',
      before: having([
        { ...a, until: NOW, attempts: 2, token: 'gone', priority: 4, failures: '1 5 "x"\n' },
        { id: 'z', until: NOW + 1, attempts: 1, token: 'other' },
      ]),
      reply: { next: NOW + 1, returned: 1, messages: [handedOut({ ...a, at: NOW, priority: 4 }, 3)] },
      after: having([
        { ...taken(a, 3), priority: 4, failures: `1 5 "x"\n2 ${NOW} ${ENDED}` },
        { id: 'z', until: NOW + 1, attempts: 1, token: 'other' },
      ]),
      published: [NOW + 1],
    },
    {
      what: 'puts it between the others, by when its visibility ended',
      before: having([a, c, { ...b, until: NOW - 1 }]),
      args: { count: 2 },
      reply: { next: NOW, returned: 1, messages: [handedOut(a), handedOut(b, 2)] },
      after: having([taken(a), { ...taken(b, 2), failures: `1 ${NOW} ${ENDED}` }, c]),
      published: [NOW],
    },
    {
      what: 'brings back while polling is paused, and announces the idle time',
      before: having([{ ...b, until: NOW - 1 }, a], { config: [['pollPaused', '1']] }),
      reply: { next: null, returned: 1 },
      after: having([{ ...b, attempts: 1, failures: `1 ${NOW} ${ENDED}` }, a], { config: [['pollPaused', '1']] }),
      published: [NOW + IDLE],
    },
    {
      what: 'brings one back that has no delivery any more, of which no attempt is known',
      before: { messages: [['b', record('B')]], inFlight: [['2b', NOW - 1]] },
      args: { count: 0 },
      reply: { next: NOW - 1, returned: 1 },
      after: having([{ id: 'b', priority: 2, at: NOW - 1, payload: 'B', attempts: 0, failures: `0 ${NOW} ${ENDED}` }]),
      published: [NOW - 1],
    },
    ...(
      [
        ['of its priority', '2b'],
        ['of another priority', '0b'],
        ['that was never begun', '2b', NOW - 1.25],
        ['without a begin', '2b', '-inf'],
      ] as const
    ).map(([which, member, ended = NOW - 1]) => ({
      what: `leaves a message without deliveries in its schedule when a claim ${which} ends`,
      before: having([{ ...b, at: NOW + 9_000, priority: 2 }], { inFlight: [[member, ended]] }),
      reply: { next: NOW + 9_000, returned: 0 },
      after: having([{ ...b, at: NOW + 9_000, priority: 2 }]),
      published: [],
    })),
    {
      what: 'brings the last message of a batch, which was never begun, beside a foreign place of another priority',
      before: having([{ ...b, at: NOW + 9_000, priority: 0 }], { inFlight: [['2b', NOW - 1.25]] }),
      args: { count: 0 },
      reply: { next: NOW - 1, returned: 0 },
      after: having([{ ...b, at: NOW + 9_000, priority: 0 }], { due: { 2: [['b', NOW - 1]] } }),
      published: [],
    },
    {
      what: 'forgets what is in flight without a record, with its deliveries',
      before: {
        inFlight: [
          ['2b', NOW - 1],
          ['x', NOW - 1],
          ['', NOW - 1],
        ],
        deliveries: [['b', '3 t']],
        failures: [['b', '2 5 "x"\n']],
      },
      reply: { next: null, returned: 0 },
      after: {},
      published: [],
    },
    // what is in a schedule only
    {
      what: 'forgets what is in a schedule without a record, and hands out the others',
      before: having([b], {
        due: {
          0: [
            ['gone', NOW - 9],
            ['gone too', NOW - 8],
          ],
          9: [['gone three', NOW]],
        },
        deliveries: [['gone', '3']],
        failures: [['gone', 'x\n']],
      }),
      args: { count: 1 },
      reply: { next: NOW + 500, messages: [handedOut(b)] },
      after: having([taken(b)]),
      published: [NOW + 500],
    },
    {
      what: 'leaves it while it is not visible',
      before: { due: { 0: [['gone', NOW + 1]] } },
      reply: { next: NOW + 1 },
      after: { due: { 0: [['gone', NOW + 1]] } },
      published: [],
    },
    // time to live
    {
      what: 'removes what has expired, to the millisecond, for good',
      before: having([
        { ...a, expires: NOW, attempts: 3, failures: 'f\n' },
        { ...b, expires: NOW + 1 },
        { ...c, expires: NOW - 1, priority: 8 },
        { ...later, expires: NOW - 1 },
      ]),
      args: { count: 1 },
      reply: { next: NOW + 1, expired: 2, messages: [handedOut({ ...b, expires: NOW + 1 })] },
      after: having([taken({ ...b, expires: NOW + 1 }), { ...later, expires: NOW - 1 }]),
      published: [NOW + 1],
    },
    {
      what: 'removes what has expired even where it was delivered too often, and what comes back expired',
      before: having([
        { ...a, expires: NOW, attempts: 9, limit: 1 },
        { ...b, expires: NOW, until: NOW },
      ]),
      reply: { next: null, returned: 1, expired: 2 },
      after: {},
      published: [NOW + IDLE],
    },
    // delivery limit
    {
      what: 'makes a dead letter of what was delivered as often as it may: without expiry, with all that is known',
      before: having([
        { ...a, limit: 2, attempts: 2, headers: 'h', expires: NOW + 9, failures: '1 5 "x"\n' },
        { ...b, limit: 2, attempts: 1 },
      ]),
      reply: { next: NOW + 500, deadLettered: 1, messages: [handedOut({ ...b, limit: 2 }, 2)] },
      after: having([taken({ ...b, limit: 2 }, 2)], {
        dead: asDead([{ ...a, at: NOW, limit: 2, headers: 'h', failures: '1 5 "x"\n' }]),
      }),
      published: [NOW + 500, `dead ${NOW}`],
    },
    {
      what: 'has a limit of 10 when neither message nor queue sets one',
      before: having([
        { ...a, attempts: 9 },
        { ...b, attempts: 10, priority: 6 },
      ]),
      reply: { next: NOW + 500, deadLettered: 1, messages: [handedOut(a, 10)] },
      after: having([taken(a, 10)], { dead: asDead([{ ...b, at: NOW }]) }),
      published: [NOW + 500, `dead ${NOW}`],
    },
    {
      what: 'takes the limit of the queue; that of the message comes first',
      before: having(
        [
          { ...a, attempts: 1 },
          { ...b, attempts: 1, limit: 2 },
          { ...c, attempts: 0 },
        ],
        { config: [['deliveryLimit', '1']] },
      ),
      reply: { next: NOW + 500, deadLettered: 1, messages: [handedOut({ ...b, limit: 2 }, 2), handedOut(c)] },
      after: having([taken({ ...b, limit: 2 }, 2), taken(c)], {
        config: [['deliveryLimit', '1']],
        dead: asDead([{ ...a, at: NOW }]),
      }),
      published: [NOW + 500, `dead ${NOW}`],
    },
    {
      what: 'makes a dead letter of what comes back for the last time',
      before: having([{ ...a, until: NOW, limit: 1 }]),
      reply: { next: null, returned: 1, deadLettered: 1 },
      after: { dead: asDead([{ ...a, at: NOW, limit: 1, failures: `1 ${NOW} ${ENDED}` }]) },
      published: [NOW + IDLE, `dead ${NOW}`],
    },
    {
      what: 'removes it where the queue keeps no dead letters',
      before: having([{ ...a, attempts: 1, limit: 1, failures: 'f\n' }], { config: [['deadLetters', '0']] }),
      reply: { next: null, deadLettered: 1 },
      after: { config: [['deadLetters', '0']] },
      published: [NOW + IDLE],
    },
    {
      what: 'keeps them where it says so',
      before: having([{ ...a, attempts: 1, limit: 1 }], { config: [['deadLetters', '1']] }),
      reply: { next: null, deadLettered: 1 },
      after: { config: [['deadLetters', '1']], dead: asDead([{ ...a, at: NOW, limit: 1 }]) },
      published: [NOW + IDLE, `dead ${NOW}`],
    },
    {
      what: 'leaves dead letters of the same id as they are; the new one gets a suffix',
      before: having([{ ...a, attempts: 10, failures: 'new\n' }], {
        dead: asDead([
          { id: 'a', priority: 3, at: 5, payload: 'old', failures: 'old\n' },
          { id: `a~${NOW}.1`, at: 6, payload: 'older' },
        ]),
      }),
      reply: { next: null, deadLettered: 1 },
      after: {
        dead: asDead([
          { id: 'a', priority: 3, at: 5, payload: 'old', failures: 'old\n' },
          { id: `a~${NOW}.1`, at: 6, payload: 'older' },
          { ...a, id: `a~${NOW}.2`, at: NOW, failures: 'new\n' },
        ]),
      },
      published: [NOW + IDLE, `dead ${NOW}`],
    },
    // records that cannot be read
    ...['', '\0', '\xff', 'garbage', '\x03,,', '\x03a,b', '\x05-1,,0', '\x06,,1,2,', '\x051,2,3'].map((damaged) => ({
      what: `hands out the record ${readable(damaged)} as it is`,
      before: having([{ id: 'a', record: damaged }]),
      reply: damaged.startsWith('\x051,2')
        ? { expired: 1, next: null }
        : { next: NOW + 500, messages: [handedOut({ id: 'a', record: damaged })] },
      after: having(damaged.startsWith('\x051,2') ? [] : [taken({ id: 'a', record: damaged })]),
      published: [damaged.startsWith('\x051,2') ? NOW + IDLE : NOW + 500],
    })),
    ...['\xff', 'garbage', '\x03a,bcd', '\x05,1,99', '\x06,,1,2,'].map((damaged) => ({
      what: `keeps all bytes of the record ${readable(damaged)} among the dead letters`,
      before: having([{ id: 'a', record: damaged, attempts: 10 }]),
      reply: { deadLettered: 1, next: null },
      after: { dead: asDead([{ id: 'a', record: damaged }]) },
      published: [NOW + IDLE, `dead ${NOW}`],
    })),
    // pausing
    {
      what: 'hands out, removes and buries nothing while polling is paused',
      before: having([a, { ...b, attempts: 10 }, { ...c, expires: 1 }], { config: [['pollPaused', '1']] }),
      reply: { next: null },
      after: having([a, { ...b, attempts: 10 }, { ...c, expires: 1 }], { config: [['pollPaused', '1']] }),
      published: [],
    },
    {
      what: 'hands out while only adding is paused',
      before: having([a], {
        config: [
          ['addPaused', '1'],
          ['pollPaused', '0'],
        ],
      }),
      reply: { next: NOW + 500, messages: [handedOut(a)] },
      after: having([taken(a)], {
        config: [
          ['addPaused', '1'],
          ['pollPaused', '0'],
        ],
      }),
      published: [NOW + 500],
    },
    // repeats
    {
      what: 'returns the schedules whose tick has come, to the millisecond and in their order, and gives other clients the tick only after a second',
      before: having([a], {
        repeats: [
          ['now', '5 {"every":5}'],
          ['before', ALL_BYTES],
          ['later', '7'],
        ],
        ticks: [
          ['now', NOW],
          ['before', NOW - 1],
          ['later', NOW + 1],
        ],
      }),
      args: { count: 0 },
      reply: {
        next: NOW - 2,
        repeats: [
          ['before', readable(ALL_BYTES)],
          ['now', '5 {"every":5}'],
        ],
      },
      after: having([a], {
        repeats: [
          ['now', '5 {"every":5}'],
          ['before', ALL_BYTES],
          ['later', '7'],
        ],
        ticks: [
          ['later', NOW + 1],
          ['before', NOW + 1000],
          ['now', NOW + 1000],
        ],
      }),
      published: [NOW - 2],
    },
    {
      what: 'hands out messages beside them; names are UTF-8',
      before: having([a, b], { repeats: [[Buffer.from('ü "'), 'x']], ticks: [[Buffer.from('ü "'), NOW]] }),
      reply: { next: NOW + 500, messages: [handedOut(a), handedOut(b)], repeats: [['ü "', 'x']] },
      after: having([taken(a), taken(b)], {
        repeats: [[Buffer.from('ü "'), 'x']],
        ticks: [[Buffer.from('ü "'), NOW + 1000]],
      }),
      published: [NOW + 500],
    },
    {
      what: 'says when the next tick comes if nothing is earlier',
      before: having([later], { repeats: [['r', 'x']], ticks: [['r', NOW + 1]] }),
      args: { announce: true },
      reply: { next: NOW + 1 },
      after: having([later], { repeats: [['r', 'x']], ticks: [['r', NOW + 1]] }),
      published: [NOW + 1],
    },
    {
      what: 'says when a tick comes before anything is visible',
      before: having(
        [
          { ...later, at: NOW + 2 },
          { id: 'z', until: NOW + 7 },
        ],
        {
          repeats: [['r', 'x']],
          ticks: [['r', NOW + 1]],
        },
      ),
      reply: { next: NOW + 1 },
      after: having(
        [
          { ...later, at: NOW + 2 },
          { id: 'z', until: NOW + 7 },
        ],
        {
          repeats: [['r', 'x']],
          ticks: [['r', NOW + 1]],
        },
      ),
      published: [],
    },
    {
      what: 'forgets the tick of what is repeated no more',
      before: { repeats: [['other', 'x']], ticks: [['gone', NOW]] },
      reply: { next: null },
      after: { repeats: [['other', 'x']] },
      published: [NOW + IDLE],
    },
    {
      what: 'returns ten ticks at most; the others stay due',
      before: {
        repeats: Array.from({ length: 12 }, (_, n) => [`r${n}`, `${n}`] as const),
        ticks: Array.from({ length: 12 }, (_, n) => [`r${n}`, NOW - 20 + n] as const),
      },
      reply: { next: NOW - 10, repeats: Array.from({ length: 10 }, (_, n): [string, string] => [`r${n}`, `${n}`]) },
      after: {
        repeats: Array.from({ length: 12 }, (_, n) => [`r${n}`, `${n}`] as const),
        ticks: Array.from({ length: 12 }, (_, n) => [`r${n}`, n < 10 ? NOW + 1000 : NOW - 20 + n] as const),
      },
      published: [NOW - 10],
    },
    {
      what: 'returns no tick while polling is paused',
      before: { repeats: [['r', 'x']], ticks: [['r', NOW]], config: [['pollPaused', '1']] },
      reply: { next: null },
      after: { repeats: [['r', 'x']], ticks: [['r', NOW]], config: [['pollPaused', '1']] },
      published: [],
    },
    // bounds
    {
      what: 'stops after one page when its time is over',
      before: having(Array.from({ length: 150 }, (_, n) => ({ id: `e${n}`, expires: 1 }))),
      args: { budgetUs: 0 },
      reply: { next: NOW, expired: 10 },
      after: having(
        Array.from({ length: 150 }, (_, n) => ({ id: `e${n}`, expires: 1 }))
          .sort((x, y) => Buffer.compare(raw(x.id), raw(y.id)))
          .slice(10),
      ),
      published: [NOW],
    },
    {
      what: 'announces no next time beyond the last there is',
      before: having([{ id: 'a', at: '1.9e+16' }]),
      args: { announce: true },
      reply: { next: 1.9e16 },
      after: having([{ id: 'a', at: '19000000000000000' }]),
      published: [],
    },
  ]
  for (const { what, before: state, args, reply, after: then, published } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const got = await run(rig.sender, poll, queue.keys, pollArgs(queue, args))
      const nothing = {
        now: NOW,
        next: null,
        subscribers: 1,
        visibilityMs: 500,
        returned: 0,
        expired: 0,
        deadLettered: 0,
        problem: '',
      }
      expect(shown(got)).to.deep.equal({ ...nothing, repeats: [], messages: [], ...reply })
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('hands out a thousand at once, of all priorities', async () => {
    const all = Array.from({ length: 1005 }, (_, n): Message & { priority: number; at: number } => ({
      id: `id ${n}`,
      priority: n % 10,
      at: NOW - 2000 + n,
      payload: `${n}`,
    }))
    const queue = await rig.queue(having(all))
    const got = await run(rig.sender, poll, queue.keys, pollArgs(queue, { count: 1000 }))
    const inOrder = all.toSorted((x, y) => y.priority - x.priority || x.at - y.at)
    expect((shown(got) as { messages: unknown[] }).messages).to.deep.equal(
      inOrder.slice(0, 1000).map((each) => handedOut(each)),
    )
    expect(await queue.read()).to.deep.equal(
      expected(having([...inOrder.slice(0, 1000).map((each) => taken(each)), ...inOrder.slice(1000)])),
    )
  })

  it('keeps the leases of many in a table, also where a few were in a list, and leaves nothing else in it', async () => {
    const all = Array.from({ length: 20 }, (_, n) => ({ id: `id ${n}`, at: NOW - 20 + n, priority: 2 }))
    const queue = await rig.queue(having(all))
    const encoding = (): Promise<unknown> => rig.redis.object('ENCODING', queue.keys.deliveries)
    await run(rig.sender, poll, queue.keys, pollArgs(queue, { count: 2 }))
    expect(await encoding()).to.match(/^(listpack|ziplist)$/)
    await run(rig.sender, poll, queue.keys, pollArgs(queue, { count: 100 }))
    expect(await encoding()).to.equal('hashtable')
    expect(await queue.read()).to.deep.equal(expected(having(all.map((each) => taken(each)))))
  })

  it('examines about a thousand in one script, however many have expired', async () => {
    const all = Array.from({ length: 1500 }, (_, n) => ({ id: String(n).padStart(4, '0'), expires: 1 }))
    const queue = await rig.queue(having(all))
    const got = await run(rig.sender, poll, queue.keys, pollArgs(queue, { count: 100 }))
    expect(got).to.include({ expired: 1000, next: NOW })
    expect(await queue.read()).to.deep.equal(expected(having(all.slice(1000))))
  })

  it('brings back a hundred messages in one script, in the order in which their visibility ended', async () => {
    const all = Array.from({ length: 120 }, (_, n) => ({ id: `${n}`, until: NOW - 200 + n, limit: 5 }))
    const queue = await rig.queue(having(all))
    const got = await run(rig.sender, poll, queue.keys, pollArgs(queue, { count: 0 }))
    expect(got).to.include({ returned: 100, next: NOW - 200 })
    expect(await queue.read()).to.deep.equal(
      expected(
        having([
          ...all
            .slice(0, 100)
            .map(({ id, until, limit }) => ({ id, at: until, limit, attempts: 1, failures: `1 ${NOW} ${ENDED}` })),
          ...all.slice(100),
        ]),
      ),
    )
  })

  it('lets the oldest lines about failures go when they become long, and keeps the newest', async () => {
    const line = `1 1 "${'x'.repeat(93)}"\n`
    const queue = await rig.queue(having([{ id: 'a', until: NOW, failures: line.repeat(90) }]))
    await run(rig.sender, poll, queue.keys, pollArgs(queue, { count: 0 }))
    const { queue: now } = await queue.read()
    const added = `1 ${NOW} ${ENDED}`
    const room = Math.floor((8192 - added.length) / line.length)
    expect(now.failures).to.deep.equal({ a: readable(line.repeat(room) + added) })
    expect(room).to.be.within(1, 89)
  })

  it('uses the clock of the server without a given time', async () => {
    const queue = await rig.queue(having([{ id: 'a' }]))
    const [seconds, micros] = (await rig.redis.time()).map(Number)
    const got = await run(rig.sender, poll, queue.keys, pollArgs(queue, { nowMs: -1 }))
    const [secondsAfter, microsAfter] = (await rig.redis.time()).map(Number)
    expect(got.now).to.be.within(
      seconds! * 1000 + micros! / 1000 - 0.001,
      secondsAfter! * 1000 + microsAfter! / 1000 + 0.001,
    )
    expect(got.next).to.equal(Math.floor(got.now) + 500)
  })

  // compared by ids: a failed test could not show the rest
  describe('large messages', () => {
    const MEBIBYTE = 1024 * 1024
    interface Sized {
      readonly id: string
      readonly bytes?: number
      readonly priority?: number
      readonly expires?: number
    }
    const many = Array.from({ length: 100 }, (_, n) => ({ id: `${1000 + n}`, bytes: n % 3 === 0 ? 100_000 : 1 }))

    const larges: { what: string; before: readonly Sized[]; count?: number; got: string[]; expired?: number }[] = [
      {
        what: 'comes one by one, the first however large it is',
        before: [{ id: 'a', bytes: MEBIBYTE }, { id: 'b', bytes: MEBIBYTE }, { id: 'c' }],
        got: ['a', 'b', 'c'],
      },
      {
        what: 'comes also when only one is asked for',
        before: [
          { id: 'a', bytes: MEBIBYTE },
          { id: 'b', bytes: MEBIBYTE },
        ],
        count: 1,
        got: ['a', 'b'],
      },
      {
        what: 'comes as far as it has a mebibyte together; nothing small passes it',
        before: [...['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, bytes: 400_000 })), { id: 'f' }],
        got: ['ab', 'cd', 'ef'],
      },
      {
        what: 'does not pass those of a higher priority either',
        before: [
          { id: 'a', bytes: 700_000, priority: 9 },
          { id: 'b', bytes: 300_000, priority: 5 },
          { id: 'c', bytes: 100_000, priority: 4 },
          { id: 'd', priority: 3 },
        ],
        got: ['ab', 'cd'],
      },
      {
        what: 'counts when it has expired: it was read too',
        before: [{ id: 'a', bytes: MEBIBYTE, expires: NOW, priority: 9 }, { id: 'b' }],
        got: ['', 'b'],
        expired: 1,
      },
    ]
    for (const { what, before: start, count = 100, got, expired = 0 } of larges) {
      it(what, async () => {
        const all = start.map(({ bytes = 0, ...each }) => ({ ...each, payload: Buffer.alloc(bytes, each.id) }))
        const queue = await rig.queue(having(all))
        const polls: string[] = []
        let gone = 0
        for (const each of got) {
          const { messages, next, ...rest } = await run(rig.sender, poll, queue.keys, pollArgs(queue, { count }))
          polls.push(messages.map(({ id }) => id).join(''))
          gone += rest.expired
          const isLast = polls.length === got.length
          expect(next, `after ${each}`).to.equal(isLast ? NOW + 500 : NOW)
          expect((await queue.published()).join(), `after ${each}`).to.equal(`${next}`)
        }
        expect({ polls, gone }).to.deep.equal({ polls: got, gone: expired })
      })
    }

    it('is found among many that are small, and no reply has more than a mebibyte', async () => {
      const queue = await rig.queue(having(many.map(({ id, bytes }) => ({ id, payload: Buffer.alloc(bytes) }))))
      const got: string[] = []
      let polls = 0
      while (got.length < many.length && polls++ < 20) {
        const { messages } = await run(rig.sender, poll, queue.keys, pollArgs(queue, { count: 100 }))
        expect(messages.reduce((sum, { record }) => sum + record.length, 0)).to.be.within(1, MEBIBYTE)
        got.push(...messages.map(({ id }) => id))
      }
      expect(got).to.deep.equal(many.map(({ id }) => id))
      expect(polls).to.be.at.most(5)
    })

    for (const every of [5, 8]) {
      it(`is found where each ${every}th only is small, before more than a few of it are read`, async () => {
        const payload = Buffer.alloc(MEBIBYTE)
        const all = Array.from({ length: 40 }, (_, n) => ({
          id: `${1000 + n}`,
          payload: n % every === 0 ? 'x' : payload,
        }))
        const queue = await rig.queue(having(all))
        const got: string[] = []
        for (let polls = 0; got.length < all.length && polls < 60; polls++) {
          const { messages } = await run(rig.sender, poll, queue.keys, pollArgs(queue, { count: 100 }))
          expect(messages.reduce((sum, { record }) => sum + record.length, 0)).to.be.within(1, MEBIBYTE + 1)
          got.push(...messages.map(({ id }) => id))
        }
        expect(got).to.deep.equal(all.map(({ id }) => id))
      })
    }

    it('as a repeat comes with later polls', async () => {
      const names = ['r', 's', 't']
      const queue = await rig.queue({
        repeats: names.map((name) => [name, name.repeat(600_000)] as const),
        ticks: names.map((name) => [name, NOW] as const),
      })
      const polls: string[] = []
      for (const next of [NOW, NOW + 1000]) {
        const reply = await run(rig.sender, poll, queue.keys, pollArgs(queue))
        expect(reply.next).to.equal(next)
        polls.push(reply.repeats.map(({ name }) => name).join(''))
      }
      expect(polls).to.deep.equal(['rs', 't'])
    })
  })

  describe('where something has the wrong type', () => {
    const wrongs = [
      'messages',
      'deliveries',
      'failures',
      'config',
      'inFlight',
      'repeats',
      'ticks',
      'due0',
      'due2',
      'due9',
      'deadMessages',
      'deadFailures',
      'deadDue',
    ] as const
    const [plain, tooOften, back] = [
      { id: 'plain', priority: 5, payload: 'P' },
      { id: 'too often', priority: 2, attempts: 10, payload: 'D', failures: 'f\n' },
      { id: 'back', priority: 2, until: NOW - 1, attempts: 10, token: 'gone', payload: 'B' },
    ]
    it('repeats: the tick is put off by five seconds', async () => {
      const queue = await rig.queue({ ticks: [['r', NOW]] })
      await queue.block('repeats')
      const reply = await run(rig.sender, poll, queue.keys, pollArgs(queue))
      expect(reply).to.include({ next: NOW + 5_000 })
      expect(reply.problem).to.match(/WRONGTYPE/)
      await queue.unblock('repeats')
      expect(await queue.read()).to.deep.equal(expected({ ticks: [['r', NOW + 5_000]] }))
    })

    const starts = [[plain, tooOften, back], [plain, tooOften], [plain]]
    for (const wrong of wrongs) {
      for (const start of starts) {
        const ids = start.map(({ id }) => id)
        it(`${wrong}: each of ${ids.join(', ')} is handed out or still there, once`, async () => {
          const queue = await rig.queue(having(start, { repeats: [['r', 'x']], ticks: [['r', NOW]] }))
          await queue.block(wrong)
          const seen: string[] = []
          let failures = 0
          const problems: string[] = []
          // more than once: what is not finished must not pile up
          for (let n = 0; n < 3; n++) {
            for (const count of [10, 1]) {
              await run(rig.sender, poll, queue.keys, pollArgs(queue, { count })).then(
                ({ messages, problem }) => {
                  seen.push(...messages.map(({ id }) => id))
                  if (problem !== '') problems.push(problem)
                },
                (error: unknown) => {
                  failures++
                  expect(String(error)).to.match(/wrong/i)
                },
              )
            }
          }
          const isNeeded = ['messages', 'deliveries', 'inFlight', 'config'].includes(wrong)
          if (start.length === 3 && isNeeded) expect(failures).to.be.at.least(1)
          if (!isNeeded && !(wrong === 'due2' && start.length === 3)) {
            expect(failures).to.equal(0)
            expect(seen).to.include('plain')
            if (start.length === 3 && !/failures/i.test(wrong)) expect(problems.join()).to.match(/WRONGTYPE/)
          }
          await queue.unblock(wrong)
          const { queue: now, dead } = await queue.read()
          if (wrong === 'messages' || wrong === 'due2' || wrong === 'inFlight') return // where they were is gone
          const places = [...Object.values(now.due ?? {}), now.inFlight ?? []]
            .flat()
            .map(([member]) => member!.replace(/^\d/, ''))
          const deadLettered = Object.keys(dead.messages ?? {})
          for (const id of ids) {
            const isHere = Object.keys(now.messages ?? {}).includes(id) && places.includes(id)
            const times =
              (isHere || seen.includes(id) ? 1 : 0) + deadLettered.filter((name) => name.startsWith(id)).length
            expect(times, id).to.equal(1)
          }
        })
      }
    }
  })

  it('hands out and reports when it may not publish: a message that no client received would lose an attempt', async () => {
    const queue = await rig.queue(having([a, { ...b, attempts: 10 }]))
    const reply = await rig.muted([], (sender) => run(sender, poll, queue.keys, pollArgs(queue)))
    expect(reply.messages.map(({ id }) => id)).to.deep.equal(['a'])
    expect(reply.problem).to.match(/^the channel: .*(perm|can't)/i)
    const { queue: now, dead } = await queue.read()
    expect(now.messages).to.have.all.keys('a')
    expect(dead.messages).to.have.all.keys('b')
  })

  for (const [what, nowMs, state] of [
    ['finds nothing', 700_000, having([later])],
    ['finds a message', 61 * 9_000, having([{ id: 'a', at: 1 }, later])],
  ] as const) {
    it(`removes the expiry of every key but that of the rate limit in some polls, such as one that ${what}`, async () => {
      const queue = await rig.queue({ ...state, rate: '1,1' })
      const { rate, ...others } = queue.keys
      const keys = Object.entries(others)
      for (const [name, key] of keys) {
        if ((await rig.redis.exists(key)) === 1) continue
        if (/changes$/i.test(name)) await rig.redis.xadd(key, '*', 'f', 'v')
        else if (/due|at$|inflight|ticks|once|order|turns|wakes|pauses/i.test(name))
          await rig.redis.zadd(key, 8e12, 'a')
        else await rig.redis.hset(key, 'a', '')
      }
      for (const key of [rate, ...keys.map(([, key]) => key)]) await rig.redis.pexpire(key, 100_000)
      await run(rig.sender, poll, queue.keys, pollArgs(queue, { nowMs }))
      const left = await Promise.all(keys.map(async ([name, key]) => [name, await rig.redis.pttl(key)] as const))
      expect(left).to.have.length(39)
      expect(left.filter(([, ms]) => ms >= 0)).to.deep.equal([])
      expect(left.filter(([, ms]) => ms === -1)).to.have.lengthOf.at.least(30) // the others are gone, as their members were invalid
      expect(await rig.redis.pttl(rate)).to.be.above(0)
    })
  }

  it('knows how many listen', async () => {
    const queue = await rig.queue()
    const none = await run(rig.sender, poll, queue.keys, {
      ...pollArgs(queue),
      channel: `${queue.channel}:unsubscribed`,
    })
    expect(none.subscribers).to.equal(0)
    expect(memberOf('a', 3).toString()).to.equal('3a')
  })
})
