/** The first score of messages set aside for paused tasks: see `shared/aside.lua`. */
export const ASIDE = '9007199254740992'
/** The end of these scores. */
export const ASIDE_ENDS = '18014398509481984'

/** The range of times of each task in these scores. */
const SPAN = 2 ** 43

/** The scores of a task's messages set aside that were visible from `from` to `to`, inclusive; `undefined` if there can be none. */
export function asideTimes(task: number, from: number, to: number): readonly [least: string, most: string] | undefined {
  const [first, last] = [Math.max(0, from), Math.min(to, SPAN - 1)]
  if (first > last) return undefined
  const place = (at: number): string => String(2 ** 53 + 2 * (task * SPAN + at))
  return [place(first), place(last)]
}

const NAMES = ['due0', 'due1', 'due2', 'due3', 'due4', 'due5', 'due6', 'due7', 'due8', 'due9', 'due10'] as const
type DueName = (typeof NAMES)[number]
type TargetDueName = `target${Capitalize<DueName>}`

/** The keys of a queue's schedules by their names in scripts: one for each priority, and one for messages with a group. */
export function dueKeysOf(due: readonly string[]): Record<DueName, string> {
  return Object.fromEntries(NAMES.map((name, priority) => [name, due[priority]])) as Record<DueName, string>
}

/** The same of the queue to which messages move. */
export function targetDueKeysOf(due: readonly string[]): Record<TargetDueName, string> {
  const named = NAMES.map((name, priority) => [name.replace('d', 'targetD'), due[priority]])
  return Object.fromEntries(named) as Record<TargetDueName, string>
}
