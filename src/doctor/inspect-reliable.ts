import { queueOfDeadLetters, reliableKeys, type ReliableKeys } from '../keys.js'
import { asArray, asBytes, asFlag, asInteger, asNumber, asText } from '../store/replies.js'
import type { Sender } from '../store/sender.js'
import { resolveSettings } from '../options.js'
import { isSetting, SETTING_NAMES } from '../reliable/config.js'
import { MAX_VISIBILITY_MS } from '../reliable/visibility.js'
import { readRepeat } from '../reliable/repeats/repeat-definition.js'
import { nextTickOf, type TickRule } from '../reliable/repeats/ticks.js'
import { DecodeError } from '../errors.js'
import { ReliableGroupStore } from '../store/reliable-group-store.js'
import type { ClaimsReply } from '../store/reliable-group-scripts.js'
import { placesOf } from '../sharding/id-places.js'
import { MAX_SHARDS, shardOf } from '../sharding/shard-names.js'
import { leftRecordsOf, type LeftRecords } from './left-records.js'
import { miscountedBatches, type MiscountedBatch } from './miscounted-batches.js'
import { measureReliable, type ReliableFigures } from './measure-reliable.js'
import { inspectChanges, type ChangesState } from './inspect-changes.js'
import { expiringOf, isWrong, typesOf, type ExpiringKey, type WrongType } from './key-types.js'
import { Pace } from './pace.js'
import { Refusals } from './refusals.js'
import { timesAheadOf, type TimesAhead } from './times-ahead.js'
import { TurnTime } from '../timing/turn-time.js'

/** The state of one reliable queue. */
export interface ReliableState {
  readonly name: string
  readonly wrongTypes: readonly WrongType[]
  /** Keys that Redis will delete; missing if they were not examined. */
  readonly expiring?: readonly ExpiringKey[] | undefined
  /** Stored settings that the scripts ignore. */
  readonly settings: readonly StoredSetting[]
  readonly repeats: StoredRepeats
  /** The changes; `undefined` if the queue keeps none, or they could not be read. */
  readonly changes: ChangesState | undefined
  /** The figures; `undefined` if the queue could not be counted. */
  readonly figures: Figures | undefined
  /** The number of claims that end later than a client sets; missing if they were not counted. */
  readonly endingFar?: number | undefined
  /** Entries with times that are still to come; missing if they were not counted. */
  readonly timesAhead?: TimesAhead | undefined
  /** Records whose message or place is gone; missing if they were not examined. */
  readonly leftRecords?: LeftRecords | undefined
  /** The batches that count more messages than they have; missing if they were not examined. */
  readonly miscounted?: readonly MiscountedBatch[] | undefined
  /** The claims of groups; `null` or missing if they were not examined. */
  readonly claims?: ClaimsReply | null | undefined
  /** Of a shard: the schedules and messages that hash to other shards, whatever their number; missing if none was looked for. */
  readonly misplaced?: Misplaced | undefined
  readonly refusals: Refusals
}

export interface Misplaced {
  readonly schedules: readonly string[]
  /** Of the first ids of each schedule. */
  readonly messages: readonly string[]
}

export type Figures = Pick<
  ReliableFigures,
  | 'total'
  | 'visible'
  | 'delayed'
  | 'inFlight'
  | 'oldestMs'
  | 'addPaused'
  | 'pollPaused'
  | 'repeats'
  | 'groups'
  | 'tasks'
>

export interface StoredSetting {
  readonly name: string
  /** `null` for a value that is too long to be read. */
  readonly value: string | null
}

export interface StoredRepeats {
  readonly stored: number
  /** The number of repeats that were read. */
  readonly examined: number
  /** The number of repeats for which no process prepares messages. */
  readonly unreadable: number
  /** The first unreadable repeats, with the reasons. */
  readonly examples: readonly { readonly name: string; readonly why: string }[]
  /** The names of readable repeats whose next message is prepared later than their definition says, or never. */
  readonly stopped: readonly string[]
}

interface RepeatRule {
  readonly name: Buffer
  readonly rule: TickRule
}

/** When the next message of a repeat is prepared: `null` for never. */
interface RepeatTime extends RepeatRule {
  readonly at: number | null
}

/** More than the longest valid setting; longer values are not read. */
const SETTING_BYTES = 64
const REPEATS_PER_SCAN = '10'
const TIMES_TOGETHER = 100
/** The most repeats of a queue to read. */
const MOST_REPEATS = 10_000
const EXAMPLES = 10
/** The scripts' longest visibility, and a minute for clocks that differ. */
const MOST_VISIBILITY_MS = MAX_VISIBILITY_MS + 60_000
/** The first ids of a schedule that are examined for their shard. */
const IDS_READ = 100
const ID_CHARACTERS = 1_000
/** With more groups that have claims, these are not examined, because one script reads all. */
const MOST_GROUPS = 1_000
const NO_REPEATS: StoredRepeats = { stored: 0, examined: 0, unreadable: 0, examples: [], stopped: [] }

/** `undefined` if none of its keys exists. */
export async function inspectReliable(sender: Sender, name: string): Promise<ReliableState | undefined> {
  const keys = reliableKeys(name)
  const refusals = new Refusals()
  const expected = expectedTypes(keys)
  const found = await refusals.unlessRefused('the types of the keys (TYPE)', typesOf(sender, expected))
  const exist =
    found === undefined
      ? await refusals.unlessRefused('the keys of the reliable queue (EXISTS)', anyExists(sender, expected))
      : found.length > 0
  if (exist === false) return undefined
  const wrongTypes = found?.filter(isWrong) ?? []
  const lasting = found?.map(({ key }) => key).filter((key) => key !== keys.rate) ?? []
  const expiring = await refusals.unlessRefused('the expiry of the keys (PTTL)', expiringOf(sender, lasting))
  const isRight = (key: string): boolean => !wrongTypes.some((wrong) => wrong.key === key)
  // what is not there is not asked for: with ten thousand queues these are most of the commands
  const isThere = (key: string): boolean => found === undefined || found.some((one) => one.key === key)
  const isLegible = (key: string): boolean => isThere(key) && isRight(key)
  const settings = isLegible(keys.config)
    ? await refusals.unlessRefused('the settings (HSTRLEN, HMGET)', settingsWithoutEffect(sender, keys))
    : undefined
  const repeats = isLegible(keys.repeats)
    ? await refusals.unlessRefused('the repeats (HLEN, HSCAN)', storedRepeats(sender, keys))
    : undefined
  const ticks =
    repeats && repeats.rules.length > 0 && isRight(keys.ticks)
      ? await refusals.unlessRefused('the times of repeats (ZMSCORE)', timesOf(sender, keys, repeats.rules))
      : undefined
  const changes =
    isRight(keys.config) && isRight(keys.changes) && (isThere(keys.config) || isThere(keys.changes))
      ? await refusals.unlessRefused(
          'the changes (XLEN, XRANGE, XREVRANGE, XINFO, XPENDING)',
          inspectChanges(sender, keys),
        )
      : undefined
  const figures =
    wrongTypes.length > 0
      ? undefined
      : await refusals.unlessRefused('the messages and the pauses (EVALSHA)', measureReliable(sender, name))
  // by a clock that was read after the times, so that a repeat that goes on meanwhile does not seem to have stopped
  const stopped =
    ticks &&
    figures &&
    (await refusals.unlessRefused('the times of repeats (HGET, ZMSCORE)', stoppedOf(sender, keys, ticks, figures.now)))
  const store = new ReliableGroupStore(sender, resolveSettings({}), keys)
  const claims =
    isLegible(keys.groups) && isRight(keys.inFlight)
      ? await refusals.unlessRefused('the claims of groups (EVALSHA)', store.claims(MOST_GROUPS))
      : undefined
  const endingFar =
    figures &&
    (await refusals.unlessRefused(
      'the ends of visibilities (ZCOUNT)',
      sender.call('ZCOUNT', [keys.inFlight, `(${figures.now + MOST_VISIBILITY_MS}`, '+inf'], { resend: 'reads' }),
    ))
  const timesAhead =
    figures &&
    (await refusals.unlessRefused(
      'the times of completed messages, batches and deduplications (ZCOUNT)',
      timesAheadOf(sender, name, keys, figures.now),
    ))
  const leftRecords =
    figures && (isThere(keys.batches) || isThere(keys.completed))
      ? await refusals.unlessRefused(
          'the records of batches and completed messages (HSCAN, HEXISTS)',
          leftRecordsOf(sender, keys),
        )
      : undefined
  const miscounted =
    figures && isThere(keys.batches)
      ? await refusals.unlessRefused('the counts of batches (HSCAN, HGET)', miscountedBatches(sender, keys))
      : undefined
  const misplaced = await refusals.unlessRefused(
    'the shards of the messages (ZRANGE)',
    misplacedIn(
      sender,
      name,
      repeats?.rules ?? [],
      keys.due.filter((key) => isThere(key) && isRight(key)),
    ),
  )
  return {
    name,
    figures,
    misplaced,
    endingFar: endingFar === undefined ? undefined : asInteger(endingFar),
    timesAhead,
    leftRecords,
    miscounted,
    claims,
    wrongTypes,
    expiring,
    settings: settings ?? [],
    repeats: repeats ? { ...repeats.read, stopped: stopped ?? [] } : NO_REPEATS,
    changes,
    refusals,
  }
}

function expectedTypes(keys: ReliableKeys): (readonly [key: string, type: string])[] {
  const {
    messages,
    deliveries,
    failures,
    config,
    repeats,
    once,
    inFlight,
    ticks,
    changes,
    completed,
    completedAt,
    rate,
    groupOrder,
    groupTurns,
    groupWakes,
    groups,
    groupPauses,
    taskPauses,
    batches,
    batchesAt,
    due,
  } = keys
  return [
    ...[messages, deliveries, failures, config, repeats].map((key) => [key, 'hash'] as const),
    ...[once, inFlight, ticks, ...due].map((key) => [key, 'zset'] as const),
    [changes, 'stream'],
    [completed, 'hash'],
    [completedAt, 'zset'],
    [rate, 'string'],
    ...[groupOrder, groupTurns, groupWakes, groupPauses, taskPauses].map((key) => [key, 'zset'] as const),
    [groups, 'hash'],
    [batches, 'hash'],
    [batchesAt, 'zset'],
  ]
}

/** What is in a shard although it hashes to others with every number of shards: only another program puts it there. */
async function misplacedIn(
  sender: Sender,
  name: string,
  rules: readonly RepeatRule[],
  due: readonly string[],
): Promise<Misplaced | undefined> {
  const place = shardOf(queueOfDeadLetters(name) ?? name)
  if (place === null) return undefined
  const isForeign = (id: string): boolean =>
    !placesOf(id, { shards: MAX_SHARDS, covered: MAX_SHARDS }).includes(place.shard)
  const firstIds = async (key: string): Promise<string[]> => {
    const few = asArray(await sender.call('ZRANGE', [key, '0', '3'], { resend: 'reads' })).map(asText)
    // ids of other programs can be of any size
    if (few.length < 4 || few.some((id) => id.length > ID_CHARACTERS)) return few
    return asArray(await sender.call('ZRANGE', [key, '0', String(IDS_READ - 1)], { resend: 'reads' })).map(asText)
  }
  const ids = (await Promise.all(due.map(firstIds))).flat()
  const turn = new TurnTime() // 10,000 names take tenths of a second
  const foreignOf = async (names: readonly string[]): Promise<string[]> => {
    const foreign: string[] = []
    for (const name of names) {
      if (turn.isOver) await turn.giveWay()
      if (isForeign(name)) foreign.push(name)
    }
    return foreign
  }
  return {
    schedules: await foreignOf(rules.map((repeat) => repeat.name.toString())),
    messages: await foreignOf(ids.filter((id) => id.length <= ID_CHARACTERS)),
  }
}

/** Checks one key after the other: a cluster may have them in different slots. */
async function anyExists(sender: Sender, keys: readonly (readonly [key: string, type: string])[]): Promise<boolean> {
  const found = await Promise.all(keys.map(([key]) => sender.call('EXISTS', [key], { resend: 'reads' })))
  return found.some((reply) => asFlag(reply))
}

async function settingsWithoutEffect(sender: Sender, { config }: ReliableKeys): Promise<StoredSetting[]> {
  const lengths = await Promise.all(
    SETTING_NAMES.map((name) => sender.call('HSTRLEN', [config, name], { resend: 'reads' })),
  )
  const isLong = (at: number): boolean => asInteger(lengths[at]) > SETTING_BYTES
  const short = SETTING_NAMES.filter((_, at) => !isLong(at))
  const values = short.length === 0 ? [] : asArray(await sender.call('HMGET', [config, ...short], { resend: 'reads' }))
  return SETTING_NAMES.flatMap((name, at): StoredSetting[] => {
    if (isLong(at)) return [{ name, value: null }]
    const reply = values[short.indexOf(name)]
    if (reply === null || reply === undefined) return []
    const value = asText(reply)
    return isSetting(name, value) ? [] : [{ name, value }]
  })
}

interface ReadRepeats {
  readonly read: Omit<StoredRepeats, 'stopped'>
  /** The readable ones. */
  readonly rules: readonly RepeatRule[]
}

async function storedRepeats(sender: Sender, { repeats }: ReliableKeys): Promise<ReadRepeats> {
  const stored = asInteger(await sender.call('HLEN', [repeats], { resend: 'reads' }))
  const { maxPayloadBytes } = resolveSettings({})
  const examples: { name: string; why: string }[] = []
  const rules: RepeatRule[] = []
  const pace = new Pace()
  let [examined, unreadable, cursor] = [0, 0, '0']
  do {
    const scan = () => sender.call('HSCAN', [repeats, cursor, 'COUNT', REPEATS_PER_SCAN], { resend: 'reads' })
    const [next, page] = asArray(await pace.run(scan))
    const fields = asArray(page).map(asBytes)
    for (let at = 0; at < fields.length; at += 2) {
      const [name, value] = [fields[at], fields[at + 1]]
      if (name === undefined || value === undefined) break
      examined++
      const [rule, why] = ruleOf(name, value, maxPayloadBytes)
      if (rule !== undefined) rules.push({ name, rule })
      if (why === undefined) continue
      unreadable++
      if (examples.length < EXAMPLES) examples.push({ name: name.toString(), why })
    }
    cursor = asText(next)
  } while (cursor !== '0' && examined < MOST_REPEATS)
  return { read: { stored, examined, unreadable, examples }, rules }
}

/** When the next message of each repeat is prepared. */
async function timesOf(
  sender: Sender,
  { ticks }: ReliableKeys,
  rules: readonly RepeatRule[],
  pace = new Pace(),
): Promise<RepeatTime[]> {
  const times: RepeatTime[] = []
  for (let from = 0; from < rules.length; from += TIMES_TOGETHER) {
    const page = rules.slice(from, from + TIMES_TOGETHER)
    const names = page.map(({ name }) => name)
    const scores = asArray(await pace.run(() => sender.call('ZMSCORE', [ticks, ...names], { resend: 'reads' })))
    for (const [index, each] of page.entries()) {
      const score = scores[index] ?? null
      times.push({ ...each, at: score === null ? null : asNumber(score) })
    }
  }
  return times
}

/** The rule of a repeat; else why no process can continue it, or nothing if only a library is missing in this process. */
function ruleOf(name: Buffer, value: Buffer, maxPayloadBytes: number): [rule?: TickRule | undefined, why?: string] {
  try {
    return [readRepeat(name, value, maxPayloadBytes).definition]
  } catch (error) {
    return [undefined, error instanceof DecodeError ? error.message : undefined]
  }
}

/**
 * Repeats whose next message is prepared later than at the first tick after now. Only another program, or a clock that was set back, does
 * that, and no poll finds such a repeat before its time.
 */
async function stoppedOf(
  sender: Sender,
  keys: ReliableKeys,
  times: readonly RepeatTime[],
  now: number,
): Promise<string[]> {
  const { maxPayloadBytes } = resolveSettings({})
  const stopped: string[] = []
  const pace = new Pace()
  const turn = new TurnTime()
  for (const each of times) {
    // a cron expression takes a while to be parsed, and there can be thousands
    if (turn.isOver) await turn.giveWay()
    const next = nextTickOf(each.rule)(now)
    if (isInTime(each, next)) continue
    // it may have been changed, removed or continued since it was read: first its time is read, then its definition
    const [again] = await timesOf(sender, keys, [each], pace)
    if (again === undefined || isInTime(again, next)) continue
    const value = await pace.run(() => sender.call('HGET', [keys.repeats, each.name], { resend: 'reads' }))
    const [ruleNow] = value === null ? [] : ruleOf(each.name, asBytes(value), maxPayloadBytes)
    if (ruleNow !== undefined && nextTickOf(ruleNow)(now) === next) stopped.push(each.name.toString())
    if (stopped.length === EXAMPLES) break
  }
  return stopped
}

/** Whether the next message of a repeat is prepared by its next tick, or there is none. */
function isInTime({ at }: RepeatTime, next: number | null): boolean {
  return next === null || (at !== null && at <= next)
}
