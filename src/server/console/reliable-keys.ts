/** Those of the priorities 0 to 9, and that of messages with a group. */
const SCHEDULES = 11
const PRIORITIES = Array.from({ length: SCHEDULES }, (_, priority) => priority)

/** The schedules of a queue by priority, as the library names them: all keys of a queue are in one slot. */
export function dueKeysOf(queue: string): readonly string[] {
  return PRIORITIES.map((priority) => `redelayed:reliable:due-${priority}:${tagged(queue)}`)
}

/** The schedule of a delayed queue, as Redisson names it. */
export function delayedScheduleOf(queue: string): string {
  return `redisson_delay_queue_timeout:${tagged(queue)}`
}

/** What holds for a queue in all processes. */
export function configKeyOf(queue: string): string {
  return `redelayed:reliable:config:${tagged(queue)}`
}

function tagged(queue: string): string {
  return queue.includes('{') ? queue : `{${queue}}`
}
