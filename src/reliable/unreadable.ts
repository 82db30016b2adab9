import type { RedelayedError } from '../errors.js'
import type { PolledRecord } from '../store/reliable-scripts.js'
import type { GiveBack } from '../store/reliable-store.js'
import { attemptOf } from './message.js'

/** A message whose payload this process cannot read. Another process may, with another codec, a newer build or a higher limit. */
export interface Unreadable {
  readonly record: PolledRecord
  readonly error: RedelayedError
}

/** Unreadable messages that are given back together. */
export interface UnreadableGroup {
  readonly records: readonly PolledRecord[]
  readonly giveBack: GiveBack
  /** The error of the first message. */
  readonly error: RedelayedError
}

/**
 * The delays of redeliveries: with ten deliveries a message is a dead letter after about twenty minutes, time to notice and to deploy a
 * fix.
 */
const FIRST_DELAY_MS = 5_000
const MAX_DELAY_MS = 300_000

/** Groups messages by attempt and kind of error, so that each group costs one script. */
export function groupUnreadable(unreadable: readonly Unreadable[], codec: string): UnreadableGroup[] {
  const groups = new Map<string, Unreadable[]>()
  for (const each of unreadable) {
    const key = `${attemptOf(each.record)} ${each.error.code}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [each])
    else group.push(each)
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attemptOf(first.record) - 1))
    const reason = JSON.stringify(`${first.error.code}: unreadable with the codec ${codec}`)
    const giveBack = { how: 'failed', delayMs, reason } as const
    return [{ records: group.map(({ record }) => record), giveBack, error: first.error }]
  })
}
