/** The number of schedules: those of the priorities 0 to 9, and that of messages with a group. */
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

/** The keys with the counts and pauses of a queue, in the order that the counting script takes. */
export function countKeysOf(queue: string): readonly string[] {
  const parts = [`messages:${tagged(queue)}`, `config:${tagged(queue)}`, `messages:${tagged(deadOf(queue))}`]
  return [...parts.map((part) => `redelayed:reliable:${part}`), inFlightKeyOf(queue), ...dueKeysOf(queue)]
}

/** The key of a queue's messages in flight. */
export function inFlightKeyOf(queue: string): string {
  return `redelayed:reliable:in-flight:${tagged(queue)}`
}

/** The name of the queue of its dead letters. */
function deadOf(queue: string): string {
  return `${tagged(queue)}:dead`
}

/** The key of a queue's configuration, which all processes share. */
export function configKeyOf(queue: string): string {
  return `redelayed:reliable:config:${tagged(queue)}`
}

function tagged(queue: string): string {
  return queue.includes('{') ? queue : `{${queue}}`
}
