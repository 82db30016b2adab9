const NAMES = ['due0', 'due1', 'due2', 'due3', 'due4', 'due5', 'due6', 'due7', 'due8', 'due9', 'due10'] as const

/** The keys of a queue's schedules under the names that scripts have for them: one of each priority, and that of messages with a group. */
export function dueKeysOf(due: readonly string[]): Record<(typeof NAMES)[number], string> {
  return Object.fromEntries(NAMES.map((name, priority) => [name, due[priority]])) as Record<
    (typeof NAMES)[number],
    string
  >
}
