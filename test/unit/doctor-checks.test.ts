import { expect } from 'chai'
import { queueKeys } from '../../src/keys.js'
import { checkClock } from '../../src/doctor/checks/clock.js'
import { checkDelivery } from '../../src/doctor/checks/delivery.js'
import { checkEntries } from '../../src/doctor/checks/entries.js'
import { checkKeys } from '../../src/doctor/checks/keys.js'
import { checkOrder } from '../../src/doctor/checks/order.js'
import { checkReliable } from '../../src/doctor/checks/reliable.js'
import { checkReplication, LAG_BYTES, LAG_SECONDS } from '../../src/doctor/checks/replication.js'
import { checkRights } from '../../src/doctor/checks/rights.js'
import { checkStorage } from '../../src/doctor/checks/storage.js'
import type { Finding } from '../../src/doctor/finding.js'
import type { QueueContents, QueueState } from '../../src/doctor/inspect-queue.js'
import type { ChangesState } from '../../src/doctor/inspect-changes.js'
import type { Figures, ReliableState } from '../../src/doctor/inspect-reliable.js'
import type { ServerState } from '../../src/doctor/inspect-server.js'
import { planOf } from '../../src/doctor/repair.js'
import { Refusals } from '../../src/doctor/refusals.js'

const healthy: ServerState = {
  address: 'redis:6379',
  info: { role: 'master', maxmemory_policy: 'noeviction', maxmemory: '0', aof_enabled: '1', master_repl_offset: '0' },
  config: { save: '', appendfsync: 'always' },
  clock: { aheadMs: 3, uncertainMs: 1 },
  acl: { user: 'default', missing: [], missingFor: [] },
  refusals: new Refusals(),
}

const contents: QueueContents = {
  pending: 0,
  overdue: 0,
  mostOverdueMs: 0,
  unpromoted: 0,
  nextDue: null,
  delivered: 0,
  quarantined: 0,
  negative: 0,
  malformed: 0,
  malformedDue: 0,
  old: 0,
  orphans: 0,
  missing: [],
  suspected: 0,
}

const calm: QueueState = {
  name: 'orders',
  rival: null,
  keys: queueKeys('orders'),
  wrongTypes: [],
  contents,
  subscribers: 1,
  hasSpreadKeys: false,
  denied: [],
  refusals: new Refusals(),
}

const group = { name: 'g', pending: 0, lag: 0, oldest: null, consumers: 1, idleMs: 5 }
const stream = (change: Partial<ChangesState>): ChangesState => ({
  ...{ epoch: 'e', first: '1-1', last: '2-1', length: 9, limit: 100, groupCount: 1, groups: [group] },
  ...{ examined: 10, foreign: 0 },
  ...change,
})

const server = (change: Partial<ServerState>): Finding[] =>
  [checkStorage, checkReplication, checkClock, checkRights].flatMap((check) => check({ ...healthy, ...change }))
const info = (lines: Record<string, string>, config: Record<string, string> = {}): Finding[] =>
  server({ info: { ...healthy.info, ...lines }, config: { ...healthy.config, ...config } })
const queue = (change: Partial<QueueState>): Finding[] =>
  [checkKeys, checkDelivery, checkOrder, checkEntries].flatMap((check) => check({ ...calm, ...change }))
const flow = (change: Partial<Figures>): Figures => ({
  ...{ now: 0, total: 0, visible: 0, delayed: 0, inFlight: 0 },
  ...{ oldestMs: 0, addPaused: false, pollPaused: false, repeats: { stored: 0, stuck: 0 } },
  groups: { ready: 0, later: 0, paused: 0 },
  tasks: { paused: 0, names: [] },
  ...change,
})
const kept = (change: Partial<ReliableState>): Finding[] =>
  checkReliable({
    name: 'mails',
    wrongTypes: [],
    settings: [],
    repeats: { stored: 0, examined: 0, unreadable: 0, examples: [], stopped: [] },
    changes: undefined,
    figures: undefined,
    refusals: new Refusals(),
    ...change,
  })
const holding = (change: Partial<QueueContents>, subscribers = 1): Finding[] =>
  queue({ contents: { ...contents, ...change }, subscribers })

const refused = new Refusals()
refused.note('CONFIG GET save', 'NOPERM')
const entry = { due: '1', prefix: Buffer.alloc(9) }
const slave = (state: string, offset: number, lag: number): Record<string, string> => ({
  master_repl_offset: String(10 * LAG_BYTES),
  slave0: `ip=10.0.0.2,port=6380,state=${state},offset=${offset},lag=${lag}`,
})

describe('what the doctor makes of what it saw', () => {
  const cases: [what: string, findings: Finding[], expected: string[], says?: RegExp][] = [
    ['a healthy server', server({}), []],
    ['a calm queue', queue({}), []],
    ['a busy queue', holding({ pending: 9, delivered: 5 }), []],

    [
      'allkeys with a limit',
      info({ maxmemory_policy: 'allkeys-lru', maxmemory: '99' }),
      ['error eviction'],
      /allkeys-lru\./,
    ],
    [
      'keys that were evicted',
      info({ maxmemory_policy: 'allkeys-lfu', maxmemory: '9', evicted_keys: '1234' }),
      ['error eviction'],
      /1,234 keys/,
    ],
    ['allkeys without a limit', info({ maxmemory_policy: 'allkeys-lru' }), ['info eviction'], /without a limit/],
    ['volatile', info({ maxmemory_policy: 'volatile-ttl', maxmemory: '99' }), ['info eviction'], /without an expiry/],
    [
      'a policy from CONFIG',
      server({ info: {}, config: { 'maxmemory-policy': 'allkeys-lru', maxmemory: '9' } }),
      ['error eviction'],
    ],
    ['no persistence', info({ aof_enabled: '0' }), ['warning persistence-off']],
    ['snapshots only', info({ aof_enabled: '0' }, { save: '60 1' }), ['info snapshots-only'], /60 1/],
    ['fsync each second', info({}, { appendfsync: 'everysec' }), ['info aof-everysec']],
    ['no fsync', info({}, { appendfsync: 'no' }), ['warning aof-no-fsync'], /is no\./],
    [
      'a full disk',
      info({ aof_last_write_status: 'err', rdb_last_bgsave_status: 'ok' }),
      ['error persistence-failing'],
      /aof_last_write_status: err/,
    ],
    ['nothing known of the disk', server({ info: {}, config: {} }), []],

    ['a replica that keeps up', info(slave('online', 9 * LAG_BYTES, LAG_SECONDS)), []],
    [
      'a replica with much to read',
      info(slave('online', 9 * LAG_BYTES - 1, 0)),
      ['warning replica-lag'],
      /1,048,577 bytes/,
    ],
    ['a silent replica', info(slave('online', 10 * LAG_BYTES, LAG_SECONDS + 1)), ['warning replica-lag'], /11 s ago/],
    ['a replica that copies', info(slave('wait_bgsave', 10 * LAG_BYTES, 0)), ['warning replica-lag'], /wait_bgsave/],
    ['a replica', info({ role: 'slave', master_host: 'm', master_port: '1' }), ['error is-replica'], /of m:1/],

    ['a clock ahead', server({ clock: { aheadMs: 60_000, uncertainMs: 1 } }), ['warning clock-skew'], /1 min ahead/],
    ['a clock behind', server({ clock: { aheadMs: -600, uncertainMs: 1 } }), ['warning clock-skew'], /600 ms behind/],
    ['a slow network', server({ clock: { aheadMs: 900, uncertainMs: 800 } }), []],
    ['no clock', server({ clock: undefined }), []],

    [
      'missing commands',
      server({ acl: { user: 'u', missing: ['ZADD', 'TIME'], missingFor: [] } }),
      ['error acl-missing'],
      /u may not use ZADD TIME/,
    ],
    [
      'missing commands for deques',
      server({ acl: { user: 'u', missing: [], missingFor: [{ purpose: 'deques', commands: ['BLMOVE'] }] } }),
      ['info acl-missing'],
      /BLMOVE, which is needed for deques/,
    ],
    ['a refusal', server({ refusals: refused }), ['info not-examined'], /Could not examine CONFIG GET save: NOPERM/],

    ['no client to deliver', holding({ pending: 2 }, 0), ['warning no-subscriber'], /2 entries are pending/],
    ['no client, and nothing to deliver', holding({ delivered: 3 }, 0), []],
    [
      'overdue',
      holding({ pending: 1, overdue: 1, mostOverdueMs: 90_000 }),
      ['warning overdue'],
      /1 entry is overdue by up to 1.5 min\./,
    ],
    [
      'buckets that no client promotes',
      holding({ pending: 7, unpromoted: 2 }),
      ['warning not-promoted'],
      /2 minutes of messages are not in the schedule yet\./,
    ],
    [
      'buckets that the wheel lacks, and one that expires',
      holding({
        buckets: {
          lacking: 2,
          expiring: [{ key: 'redelayed:wheel-7:{orders}', inMs: 60_000 }],
          wrongTypes: [],
          misnamed: [],
          isCut: false,
        },
      }),
      ['warning expires', 'warning minutes-lost'],
      /^(1 key expires, the first in 1 min: redelayed:wheel-7:\{orders\}|2 minutes of messages are not in the set of buckets, or have too late a time there)\.$/,
    ],
    [
      'buckets whose names are no minutes',
      holding({
        buckets: {
          lacking: 0,
          expiring: [],
          wrongTypes: [],
          misnamed: ['redelayed:wheel-x:{orders}', 'k'],
          isCut: false,
        },
      }),
      ['error bucket-misnamed'],
      /^2 buckets have a name that is no minute\.$/,
    ],
    [
      'as many such buckets as the doctor remembers',
      holding({
        buckets: {
          lacking: 0,
          expiring: [],
          wrongTypes: [],
          misnamed: Array.from({ length: 1_000 }, String),
          isCut: false,
        },
      }),
      ['error bucket-misnamed'],
      /^At least 1,000 buckets have a name that is no minute\.$/,
    ],
    [
      'buckets, or cancelled ids, of another type',
      holding({
        buckets: {
          lacking: 0,
          expiring: [],
          wrongTypes: [
            { key: 'redelayed:wheel-7:{orders}', type: 'hash', expected: 'list' },
            { key: 'redelayed:gone-8:{orders}', type: 'string', expected: 'set' },
          ],
          misnamed: [],
          isCut: false,
        },
      }),
      ['error wrong-type'],
      /^2 keys of minutes have another type: redelayed:wheel-7:\{orders\} is a hash, not a list\.$/,
    ],
    [
      'buckets in order',
      holding({ buckets: { lacking: 0, expiring: [], wrongTypes: [], misnamed: [], isCut: false } }),
      [],
    ],
    [
      'buckets of which some were not looked for',
      holding({ buckets: { lacking: 0, expiring: [], wrongTypes: [], misnamed: [], isCut: true } }),
      ['info partly-examined'],
      /^The doctor has not examined all buckets of messages\.$/,
    ],
    [
      'overdue without a client to deliver',
      holding({ pending: 1, overdue: 1, mostOverdueMs: 2000 }, 0),
      ['error overdue', 'warning no-subscriber'],
      /no process holds this delayed queue/,
    ],
    ['subscribers not known', queue({ contents: { ...contents, pending: 1 }, subscribers: undefined }), []],
    [
      'missing in the order list',
      holding({ missing: [entry], suspected: 2000 }),
      ['warning order-missing'],
      /1 pending entry is .*perhaps 2,000 more/,
    ],
    [
      'perhaps missing, and no recheck that decides',
      holding({ suspected: 1 }),
      ['info order-missing'],
      /1 pending entry was not seen/,
    ],
    ['orphans', holding({ orphans: 2 }), ['warning order-orphan'], /2 elements .* are not/],
    [
      'malformed',
      holding({ malformed: 3, malformedDue: 1 }),
      ['warning malformed'],
      /3 pending entries .* 1 of them due/,
    ],
    ['negative due times', holding({ negative: 1 }), ['warning negative-due']],
    ['the old format', holding({ old: 4 }), ['info old-format']],
    ['a quarantine', holding({ quarantined: 1 }), ['warning quarantine'], /1 element is/],
    [
      'a key of another type',
      queue({ contents: undefined, wrongTypes: [{ key: 'orders', type: 'hash', expected: 'list' }] }),
      ['error wrong-type'],
      /orders is a hash, not a list/,
    ],
    [
      'a key of a queue that expires',
      queue({ expiring: [{ key: 'orders', inMs: 5_000 }] }),
      ['info expires'],
      /^1 key expires, the first in 5 s: orders\.$/,
    ],
    ['keys without an expiry', kept({ expiring: [] }), []],
    [
      'keys of a reliable queue that expire',
      kept({
        expiring: [
          { key: 'late', inMs: 120_000 },
          { key: 'soon', inMs: 60_000 },
        ],
      }),
      ['warning expires'],
      /^2 keys expire, the first in 1 min: soon\.$/,
    ],
    ['a shard with its own messages', kept({ misplaced: { schedules: [], messages: [] } }), []],
    [
      'what hashes to other shards',
      kept({ misplaced: { schedules: ['daily\n'], messages: ['a', 'b'] } }),
      ['warning wrong-shard'],
      /^1 schedule and 2 messages hash to other shards, whatever their number, such as "daily/,
    ],
    ['claims that end in time', kept({ endingFar: 0 }), []],
    [
      'claims that end too late',
      kept({ endingFar: 2 }),
      ['warning visibility-far'],
      /^The visibility of 2 messages ends in more than 365 days\.$/,
    ],
    ['times that have passed', kept({ timesAhead: { completed: 0, batches: 0, dead: 0, marks: 0 } }), []],
    [
      'times that are still to come',
      kept({ timesAhead: { completed: 2, batches: 1, dead: 1, marks: 2 } }),
      ['warning times-ahead'],
      /^By their times, 2 messages are completed more than an hour from now, and 1 batch finished .*, and 1 dead letter is not visible for more than 365 days from now, and 2 marks of deduplications end in more than 366 days\.$/,
    ],
    ['records that have what they belong to', kept({ leftRecords: { messages: 0, batches: 0, completed: 0 } }), []],
    [
      'records whose message or place is gone',
      kept({ leftRecords: { messages: 2, batches: 1, completed: 3 } }),
      ['warning records-left'],
      /^Redis has records of 2 messages that batches wait for and the queue does not have, and 1 finished batch without a place, and 3 completed messages without a place\.$/,
    ],
    ['batches that have what they count', kept({ miscounted: [] }), []],
    [
      'batches that count more than they have',
      kept({
        miscounted: [
          { name: 'a\n', pending: 1_002, held: 1_001 },
          { name: 'b', pending: 1, held: 0 },
        ],
      }),
      ['warning batch-miscounted'],
      /^2 batches count more pending messages than the queue has of them: "a.*" counts 1,002 and has 1,001, "b" counts 1 and has 0\.$/,
    ],
    ['keys in several slots', queue({ contents: undefined, hasSpreadKeys: true }), ['error cross-slot']],
    ['keys that are not allowed', queue({ denied: ['orders'] }), ['error acl-missing'], /may not use orders\./],
    ['a calm reliable queue', kept({}), []],
    [
      'a setting without an effect',
      kept({ settings: [{ name: 'delay', value: 'x\u001b' }] }),
      ['warning setting-without-effect'],
      /delay is "x\\u001b"\.$/,
    ],
    [
      'a setting too long to be read',
      kept({ settings: [{ name: 'delay', value: null }] }),
      ['warning setting-without-effect'],
      /delay is a long text\.$/,
    ],
    [
      'an unreadable repeat among more than are read',
      kept({
        repeats: {
          stored: 20_000,
          examined: 10_000,
          unreadable: 1,
          examples: [{ name: 'a\n', why: 'b\nc' }],
          stopped: [],
        },
      }),
      ['warning repeat-unreadable'],
      /^1 stored repeat cannot be read among the 10,000 that were read: "a\\n": b c\.$/,
    ],
    [
      'repeats whose times are lost',
      kept({ repeats: { stored: 3, examined: 3, unreadable: 0, examples: [], stopped: ['a\n', 'b'] } }),
      ['warning repeat-stopped'],
      /^Stored repeats that do not go on: "a\\n", "b"\.$/,
    ],
    ['a queue that is not paused', kept({ figures: flow({}) }), []],
    [
      'a paused queue in which messages wait',
      kept({ figures: flow({ pollPaused: true, visible: 2, oldestMs: 90_000 }) }),
      ['warning paused'],
      /^Disabled in all processes: poll; 2 messages wait, up to /,
    ],
    ['a queue without adds', kept({ figures: flow({ addPaused: true, visible: 2 }) }), ['info paused'], /: add\.$/],
    [
      'repeats that no consumer prepares',
      kept({ figures: flow({ repeats: { stored: 3, stuck: 1 } }) }),
      ['warning repeat-stuck'],
      /^1 stored repeat had a tick ten seconds ago/,
    ],
    [
      'repeats of a queue that is paused',
      kept({ figures: flow({ pollPaused: true, repeats: { stored: 3, stuck: 1 } }) }),
      ['info paused'],
    ],
    ['changes that are written and read', kept({ changes: stream({}) }), []],
    ['changes that could not be written', kept({ changes: stream({ epoch: '~e' }) }), ['error changes-not-recorded']],
    [
      'groups that are behind',
      kept({ changes: stream({ length: 80 }) }),
      ['warning changes-behind'],
      /80 of at most 100 entries\.$/,
    ],
    [
      'groups that are so far behind that adding is refused',
      kept({ changes: stream({ length: 100 }) }),
      ['error changes-behind'],
      /100 of at most 100 entries: adding is refused\.$/,
    ],
    ['changes that no group reads', kept({ changes: stream({ groupCount: 0, groups: [] }) }), ['info changes-unread']],
    [
      'more groups than any queue has',
      kept({ changes: stream({ groupCount: 200_000, groups: [] }) }),
      ['error changes-groups'],
      /^The change stream has 200,000 groups/,
    ],
    [
      'a group without readers',
      kept({ changes: stream({ groups: [{ ...group, name: 'g\u001b', consumers: 0, pending: 1, lag: 2 }] }) }),
      ['warning change-group-idle'],
      /^The group "g\\u001b" has no readers, and 3 entries/,
    ],
    [
      'a group without readers at a server that does not say how far it is',
      kept({ changes: stream({ groups: [{ ...group, consumers: 0, lag: null }] }) }),
      ['warning change-group-idle'],
    ],
    [
      'a group whose readers died',
      kept({ changes: stream({ groups: [{ ...group, pending: 1, lag: 1, idleMs: 720_000 }] }) }),
      ['warning change-group-idle'],
      /^The group "g" has no reader that asked in the last 12 min, and 2 entries/,
    ],
    [
      'groups whose readers may be alive',
      kept({
        changes: stream({
          groups: [
            { ...group, lag: 1, idleMs: 599_999 },
            { ...group, pending: 1, lag: 0, idleMs: 720_000 },
            { ...group, lag: null, idleMs: 720_000 },
            { ...group, lag: 1, idleMs: null },
          ],
        }),
      }),
      [],
    ],
    [
      'a group without readers that has read all',
      kept({ changes: stream({ groups: [{ ...group, consumers: 0 }] }) }),
      [],
    ],
    [
      'entries of strangers',
      kept({ changes: stream({ foreign: 2 }) }),
      ['warning changes-foreign'],
      /^2 of the last 10 entries/,
    ],
    [
      'paused groups',
      kept({ figures: flow({ groups: { ready: 1, later: 2, paused: 3 } }) }),
      ['info groups-paused'],
      /3 groups are paused; 1 have turns, and 2 wait/,
    ],
    ['messages in their places', kept({ figures: flow({ total: 6, visible: 1, delayed: 2, inFlight: 3 }) }), []],
    ['places without messages', kept({ figures: flow({ total: 1, visible: 2 }) }), []],
    [
      'messages without a place',
      kept({ figures: flow({ total: 1_006, visible: 1, delayed: 1_001, inFlight: 3 }) }),
      ['warning place-lost'],
      /^1 message is in no schedule and not in flight, of 1,006\.$/,
    ],
    [
      'paused tasks',
      kept({ figures: flow({ tasks: { paused: 2, names: ['mail', 'print'] } }) }),
      ['info tasks-paused'],
      /2 tasks are paused/,
    ],
    ['groups with turns', kept({ figures: flow({ groups: { ready: 1, later: 2, paused: 0 } }) }), []],
    ['groups whose claims consumers have', kept({ claims: { counted: 3, held: 3, group: 'a', most: 2 } }), []],
    [
      'groups with more claims than there are',
      kept({ claims: { counted: 9, held: 3, group: 'b\n', most: 7 } }),
      ['warning group-claims-lost'],
      /9 claims by their counts, and consumers 3 messages; the group with most is "b\\n" with 7/,
    ],
    ['a refusal about a reliable queue', kept({ refusals: refused }), ['info not-examined']],
    ['a refusal about a queue', queue({ refusals: refused }), ['info not-examined']],
  ]
  for (const [what, findings, expected, says] of cases) {
    it(`${what}: ${expected.join(', ') || 'nothing'}`, () => {
      expect(findings.map(({ level, code }) => `${level} ${code}`)).to.deep.equal(expected)
      if (says !== undefined) expect(findings[0]?.found).to.match(says)
      for (const { found } of findings) expect(found).to.match(/\.$/)
    })
  }

  it('leaves messages alone whose destination the call did not name, and reports it', () => {
    const unclear = {
      rival: '{orders}',
      contents: {
        ...contents,
        pending: 9,
        overdue: 1,
        missing: [entry],
        orphans: 1,
        malformed: 1,
        malformedDue: 1,
        negative: 1,
      },
    }
    const findings = queue(unclear)
    expect(planOf(findings).map(({ code }) => code)).to.deep.equal(['order-missing', 'order-orphan'])
    const warned = findings.filter(({ found }) =>
      /\. They may be messages of a queue named \{orders\}, which has the same keys: --fix .*\.$/.test(found),
    )
    expect(warned.map(({ code, fixable }) => [code, fixable])).to.deep.equal([
      ['overdue', false],
      ['malformed', false],
      ['negative-due', false],
    ])
    const notYetDue = queue({ ...unclear, contents: { ...contents, malformed: 1 } })
    expect(notYetDue.map(({ found }) => found)).to.deep.equal(['1 pending entry cannot be read, 0 of them due.'])
  })

  it('plans only safe repairs', () => {
    const findings = [
      ...holding({ pending: 9, overdue: 1, missing: [entry], orphans: 1, malformed: 1, malformedDue: 1 }, 0),
      ...holding({ negative: 1, old: 1, quarantined: 1 }),
      ...queue({ wrongTypes: [{ key: 'orders', type: 'hash', expected: 'list' }] }),
      ...info({ maxmemory_policy: 'allkeys-lru', maxmemory: '99' }),
    ]
    expect(planOf(findings).map(({ queue: name, code }) => `${name} ${code}`)).to.deep.equal([
      'orders overdue',
      'orders order-missing',
      'orders order-orphan',
      'orders malformed',
      'orders negative-due',
    ])
    for (const [code, change] of [
      ['malformed', { malformed: 1, malformedDue: 1 }],
      ['negative-due', { negative: 1 }],
    ] as const) {
      const plan = planOf(holding(change))
      expect(plan.map((step) => step.code)).to.deep.equal(['overdue', code])
      expect(plan[0]?.does, 'what the transfer does besides').to.match(/^moves what is due to the queue/)
    }
    expect(planOf(holding({ malformed: 1, malformedDue: 0 }))).to.deep.equal([])
    expect(planOf(holding({ suspected: 1 }))).to.deep.equal([])
  })
})
