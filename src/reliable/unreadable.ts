import type { RedelayedError } from '../errors.js'
import type { PolledRecord } from '../store/reliable-scripts.js'
import type { GiveBack } from '../store/reliable-store.js'
import { attemptOf } from './message.js'

/** A message whose payload this process cannot read. Another one may: with another codec, a newer build, a higher limit. */
export interface Unreadable {
  readonly record: PolledRecord
  readonly error: RedelayedError
}

/** Some that go back alike. */
export interface UnreadableGroup {
  readonly records: readonly PolledRecord[]
  readonly giveBack: GiveBack
  /** That of the first one. */
  readonly error: RedelayedError
}

/** With ten deliveries it takes about twenty minutes until a message is a dead letter: time to notice, and to deploy what can read it. */
const FIRST_DELAY_MS = 5_000
const MAX_DELAY_MS = 300_000

/** In few groups, so that many cost no more than one: their reasons name the kind of error only. */
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
