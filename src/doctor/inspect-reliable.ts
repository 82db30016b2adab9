import { reliableKeys, type ReliableKeys } from '../keys.js'
import { asArray, asBytes, asFlag, asInteger, asText } from '../store/replies.js'
import type { Sender } from '../store/sender.js'
import { resolveSettings } from '../options.js'
import { isSetting, SETTING_NAMES } from '../reliable/config.js'
import { readRepeat } from '../reliable/repeats/repeat-definition.js'
import { DecodeError } from '../errors.js'
import { ReliableGroupStore } from '../store/reliable-group-store.js'
import type { ClaimsReply } from '../store/reliable-group-scripts.js'
import { measureReliable, type ReliableFigures } from './measure-reliable.js'
import { inspectChanges, type ChangesState } from './inspect-changes.js'
import { wrongTypesOf, type WrongType } from './key-types.js'
import { Pace } from './pace.js'
import { Refusals } from './refusals.js'

/** The state of one reliable queue. */
export interface ReliableState {
  readonly name: string
  readonly wrongTypes: readonly WrongType[]
  /** Stored settings that the scripts ignore. */
  readonly settings: readonly StoredSetting[]
  readonly repeats: StoredRepeats
  /** `undefined` where it keeps none, or they could not be read. */
  readonly changes: ChangesState | undefined
  /** `undefined` where it could not be counted. */
  readonly figures: Figures | undefined
  /** The claims of groups; nothing where they were not looked at. */
  readonly claims?: ClaimsReply | null | undefined
  readonly refusals: Refusals
}

export type Figures = Pick<ReliableFigures, 'visible' | 'oldestMs' | 'addPaused' | 'pollPaused' | 'repeats' | 'groups'>

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
  /** The first of them, and why. */
  readonly examples: readonly { readonly name: string; readonly why: string }[]
}

/** Longer than every valid setting; longer values are not read. */
const SETTING_BYTES = 64
const REPEATS_PER_SCAN = '10'
/** The most repeats of a queue to read. */
const MOST_REPEATS = 10_000
const EXAMPLES = 10
/** With more groups that have claims, these are not looked at: one script reads them all. */
const MOST_GROUPS = 1_000
const NO_REPEATS: StoredRepeats = { stored: 0, examined: 0, unreadable: 0, examples: [] }

/** `undefined` if none of its keys exists. */
export async function inspectReliable(sender: Sender, name: string): Promise<ReliableState | undefined> {
  const keys = reliableKeys(name)
  const refusals = new Refusals()
  const types = expectedTypes(keys)
  const exist = await refusals.unlessRefused('the keys of the reliable queue (EXISTS)', anyExists(sender, types))
  if (exist === false) return undefined
  const wrongTypes = (await refusals.unlessRefused('the types of the keys (TYPE)', wrongTypesOf(sender, types))) ?? []
  const isRight = (key: string): boolean => !wrongTypes.some((wrong) => wrong.key === key)
  const settings = isRight(keys.config)
    ? await refusals.unlessRefused('the settings (HSTRLEN, HMGET)', settingsWithoutEffect(sender, keys))
    : undefined
  const repeats = isRight(keys.repeats)
    ? await refusals.unlessRefused('the repeats (HLEN, HSCAN)', storedRepeats(sender, keys))
    : undefined
  const changes =
    isRight(keys.config) && isRight(keys.changes)
      ? await refusals.unlessRefused(
          'the changes (XLEN, XRANGE, XREVRANGE, XINFO, XPENDING)',
          inspectChanges(sender, keys),
        )
      : undefined
  const figures =
    wrongTypes.length > 0
      ? undefined
      : await refusals.unlessRefused('the messages and the pauses (EVALSHA)', measureReliable(sender, name))
  const store = new ReliableGroupStore(sender, resolveSettings({}), keys)
  const claims =
    isRight(keys.groups) && isRight(keys.inFlight)
      ? await refusals.unlessRefused('the claims of groups (EVALSHA)', store.claims(MOST_GROUPS))
      : undefined
  return {
    name,
    figures,
    claims,
    wrongTypes,
    settings: settings ?? [],
    repeats: repeats ?? NO_REPEATS,
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
    ...[groupOrder, groupTurns, groupWakes, groupPauses].map((key) => [key, 'zset'] as const),
    [groups, 'hash'],
    [batches, 'hash'],
    [batchesAt, 'zset'],
  ]
}

/** One key after the other: a cluster may have them in different slots. */
async function anyExists(sender: Sender, keys: readonly (readonly [key: string, type: string])[]): Promise<boolean> {
  const found = await Promise.all(keys.map(([key]) => sender.call('EXISTS', [key], { idempotent: true })))
  return found.some((reply) => asFlag(reply))
}

async function settingsWithoutEffect(sender: Sender, { config }: ReliableKeys): Promise<StoredSetting[]> {
  const found = await Promise.all(
    SETTING_NAMES.map(async (name): Promise<StoredSetting | undefined> => {
      const length = asInteger(await sender.call('HSTRLEN', [config, name], { idempotent: true }))
      if (length > SETTING_BYTES) return { name, value: null }
      const [reply] = asArray(await sender.call('HMGET', [config, name], { idempotent: true }))
      if (reply === null || reply === undefined) return undefined
      const value = asText(reply)
      return isSetting(name, value) ? undefined : { name, value }
    }),
  )
  return found.filter((setting) => setting !== undefined)
}

async function storedRepeats(sender: Sender, { repeats }: ReliableKeys): Promise<StoredRepeats> {
  const stored = asInteger(await sender.call('HLEN', [repeats], { idempotent: true }))
  const { maxPayloadBytes } = resolveSettings({})
  const examples: { name: string; why: string }[] = []
  const pace = new Pace()
  let [examined, unreadable, cursor] = [0, 0, '0']
  do {
    const scan = () => sender.call('HSCAN', [repeats, cursor, 'COUNT', REPEATS_PER_SCAN], { idempotent: true })
    const [next, page] = asArray(await pace.run(scan))
    const fields = asArray(page).map(asBytes)
    for (let at = 0; at < fields.length; at += 2) {
      const [name, value] = [fields[at], fields[at + 1]]
      if (name === undefined || value === undefined) break
      examined++
      const why = faultOf(name, value, maxPayloadBytes)
      if (why === undefined) continue
      unreadable++
      if (examples.length < EXAMPLES) examples.push({ name: name.toString(), why })
    }
    cursor = asText(next)
  } while (cursor !== '0' && examined < MOST_REPEATS)
  return { stored, examined, unreadable, examples }
}

/** Why no process can continue a repeat; `undefined` if it can, or if only a library is missing in this process. */
function faultOf(name: Buffer, value: Buffer, maxPayloadBytes: number): string | undefined {
  try {
    readRepeat(name, value, maxPayloadBytes)
    return undefined
  } catch (error) {
    return error instanceof DecodeError ? error.message : undefined
  }
}
