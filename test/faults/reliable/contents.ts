import type { Redis } from 'ioredis'

/** Messages that are due later than this from now on must be left at the end. */
export const FAR_AHEAD_MS = 600_000

/** The contents of Redis in the end. */
export interface Remains {
  /** The ids of the queue. */
  readonly left: ReadonlySet<string>
  readonly dead: readonly DeadLetter[]
}

export interface DeadLetter {
  /** The id that the message had in its queue. */
  readonly id: string
  /** The id that it has among the dead letters, with a suffix if its own id was there already. */
  readonly name: string
  /** The numbers of the attempts in its history. */
  readonly attempts: readonly number[]
}

/** Spelled out once more, so that a wrong name in the source is not asserted with itself. */
export function keysOf(queue: string, suffix: '' | ':dead' = '') {
  const key = (part: string): string => `redelayed:reliable:${part}:{${queue}}${suffix}`
  const due = Array.from({ length: 11 }, (_, priority) => key(`due-${priority}`)) // and one for those with a group
  const named = {
    messages: key('messages'),
    deliveries: key('deliveries'),
    failures: key('failures'),
    inFlight: key('in-flight'),
    config: key('config'),
    groups: key('groups'),
    turns: key('group-turns'),
    wakes: key('group-wakes'),
    order: key('group-order'),
    repeats: key('repeats'),
    ticks: key('ticks'),
  }
  const others = ['once', 'completed', 'completed-at', 'batches', 'batches-at'].map(key)
  return { ...named, due, all: [...Object.values(named), ...due, ...others] }
}

/**
 * How many messages are not done, but for those that shall be left. At one moment: one that is given back between two commands goes from a schedule
 * that was not counted yet to one that was, and on a busy machine there is time for that.
 */
export async function countOpen(redis: Pick<Redis, 'multi'>, queue: string): Promise<number> {
  const { due, inFlight } = keysOf(queue)
  const until = Date.now() + FAR_AHEAD_MS
  const transaction = redis.multi()
  for (const schedule of [...due, inFlight]) transaction.zcount(schedule, '-inf', until)
  const replies = await transaction.exec()
  if (replies === null) throw new Error('the transaction was given up')
  return replies.reduce((sum, [error, count]) => {
    if (error !== null) throw error
    return sum + Number(count)
  }, 0)
}

/** Throws when the keys do not agree with each other. */
export async function readRemains(redis: Redis, queue: string): Promise<Remains> {
  const left = await readIds(redis, queue, '')
  await checkGroups(redis, queue)
  const letters = await readIds(redis, queue, ':dead')
  const failures = await redis.hgetall(keysOf(queue, ':dead').failures)
  const dead = letters.map((name) => ({
    id: name.split('~', 1)[0] ?? '',
    name,
    attempts: [...(failures[name] ?? '').matchAll(/^\d+/gm)].map(([attempt]) => Number(attempt)),
  }))
  return { left: new Set(left), dead }
}

/** Checks that in the end no group has a claim, and that each group with waiting messages has a turn or a time for one. */
async function checkGroups(redis: Redis, queue: string): Promise<void> {
  const { groups, turns, wakes, order, due } = keysOf(queue)
  const claims = Object.entries(await redis.hgetall(groups)).filter(([, state]) => !state.startsWith('0 '))
  if (claims.length > 0)
    throw new Error(`${claims.length} groups have slots that nothing frees, such as ${String(claims[0])}`)
  const members = await redis.zrangeBuffer(order, '0', '-1')
  const waiting = new Set(members.map((member) => member.subarray(1, 1 + (member[0] ?? 0)).toString()))
  const placed = new Set([...(await redis.zrange(turns, '0', '-1')), ...(await redis.zrange(wakes, '0', '-1'))])
  const lost = [...waiting].filter((group) => !placed.has(group))
  if (lost.length > 0) throw new Error(`${lost.length} groups have neither a turn nor a time for one: ${lost.join()}`)
  if (members.length !== (await redis.zcard(due.at(-1) ?? '')))
    throw new Error(`${order} and the schedule of the groups have not the same messages`)
}

/** Returns the ids; throws unless each message is in one schedule, and no other message has data. */
async function readIds(redis: Redis, queue: string, suffix: '' | ':dead'): Promise<string[]> {
  const { messages, deliveries, failures, due, inFlight } = keysOf(queue, suffix)
  const ids = (await redis.hkeys(messages)).sort()
  const waiting = await Promise.all(due.map((schedule) => redis.zrange(schedule, '0', '-1')))
  const held = (await redis.zrange(inFlight, '0', '-1')).map((member) => member.slice(1))
  const scheduled = [...waiting.flat(), ...held].sort()
  if (ids.length !== scheduled.length || ids.some((id, at) => id !== scheduled[at])) {
    throw new Error(`${messages} has ${ids.length} messages and the schedules ${scheduled.length}, not the same ones`)
  }
  const known = new Set(ids)
  for (const about of [deliveries, failures]) {
    const strangers = (await redis.hkeys(about)).filter((id) => !known.has(id))
    if (strangers.length > 0)
      throw new Error(`${about} knows ${strangers.length} that are no messages: ${strangers[0]}`)
  }
  return ids
}
