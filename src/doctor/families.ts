import { deadLettersOf, listKeys, queueKeys, queueOfDeadLetters, reliableKeys } from '../keys.js'
import { MAX_SHARDS, shardName, shardOf } from '../sharding/shard-names.js'
import { asInteger } from '../store/replies.js'
import type { Sender } from '../store/sender.js'
import type { Access } from './access.js'
import { discoverQueues } from './discover.js'
import { isRefusal } from './refusals.js'

/** A queue as its users see it: an ordinary one, or the shards of one. */
export interface Family {
  readonly queue: string
  /** The shards with keys, at least one, in the order of their numbers; `null` for an ordinary queue. */
  readonly shards: readonly string[] | null
}

export interface Families {
  readonly delayed: readonly Family[]
  readonly reliable: readonly Family[]
  /** The number of further queues, with shards, that were found. */
  readonly left: number
}

/** The most queues of a kind, with shards, to examine without names: another program can make a million, and each takes some commands. */
export const MOST_QUEUES = 10_000

/** Finds the named queues, of each kind that has keys, or as delayed queues if there are none; without names all queues of this Redis. */
export async function findFamilies(
  access: Access,
  names: readonly string[],
  onProgress: (what: string) => void = () => undefined,
): Promise<Families> {
  if (names.length === 0) {
    const all = await discoverQueues(access.masters, (found) => onProgress(`${found} queues found`))
    const reliable = [...new Set(all.reliable.map((name) => queueOfDeadLetters(name) ?? name))].sort()
    return {
      delayed: familiesOf(all.delayed.slice(0, MOST_QUEUES)),
      reliable: familiesOf(reliable.slice(0, MOST_QUEUES)),
      left: beyond(all.delayed) + beyond(reliable),
    }
  }
  const delayed: Family[] = []
  const reliable: Family[] = []
  for (const queue of new Set(names)) {
    onProgress(`looking for ${queue}`)
    const shards = shardsOf(queue)
    const found = {
      delayed: await findFamily(access, queue, shards, delayedKeys),
      reliable: await findFamily(access, queue, shards, reliableAndDead),
    }
    reliable.push(...found.reliable)
    delayed.push(...(found.delayed.length + found.reliable.length === 0 ? [{ queue, shards: null }] : found.delayed))
  }
  return { delayed, reliable, left: 0 }
}

/** The number of queues beyond those to examine. */
export function beyond(names: readonly string[]): number {
  return Math.max(0, names.length - MOST_QUEUES)
}

/** The names of all queues of the families. */
export function namesOf(families: readonly Family[]): string[] {
  return families.flatMap(({ queue, shards }) => shards ?? [queue])
}

/** Groups sorted names, with the shards of one queue together. */
export function familiesOf(names: readonly string[]): Family[] {
  const families: Family[] = []
  const shards = new Map<string, string[]>()
  for (const name of names) {
    const place = shardOf(name)
    const known = place === null ? undefined : shards.get(place.queue)
    if (place === null) families.push({ queue: name, shards: null })
    else if (known !== undefined) known[place.shard] = name
    else {
      const own: string[] = []
      own[place.shard] = name
      shards.set(place.queue, own)
      families.push({ queue: place.queue, shards: own })
    }
  }
  return families.map(({ queue, shards: own }) => ({ queue, shards: own?.filter(() => true) ?? null }))
}

/** The names of all possible shards, because Redis does not know their number. */
function shardsOf(queue: string): string[] {
  if (/[{}]/.test(queue)) return []
  return Array.from({ length: MAX_SHARDS }, (_, shard) => shardName(queue, shard, (name) => name))
}

async function findFamily(
  { sender }: Access,
  queue: string,
  possible: readonly string[],
  keysOf: (name: string) => readonly string[],
): Promise<Family[]> {
  const [isThere, found] = await Promise.all([
    // one key after the other: with a brace in the name a cluster may have them in different slots
    Promise.all(keysOf(queue).map((key) => anyExists(sender, [key]))),
    Promise.all(possible.map((name) => anyExists(sender, keysOf(name)))),
  ])
  const shards = possible.filter((_, shard) => found[shard])
  return [
    ...(isThere.includes(true) ? [{ queue, shards: null }] : []),
    ...(shards.length > 0 ? [{ queue, shards }] : []),
  ]
}

function delayedKeys(name: string): string[] {
  const { timeouts, order, destination, quarantine, wheel } = queueKeys(name)
  return [timeouts, order, destination, quarantine, wheel]
}

function reliableAndDead(name: string): string[] {
  const keys = reliableKeys(name)
  const { messages } = reliableKeys(deadLettersOf(name))
  return [...listKeys(keys).filter((key) => key !== keys.channel && key !== keys.ends), messages]
}

/** Whether one of the keys exists; false also without the right to check. */
async function anyExists(sender: Sender, keys: readonly string[]): Promise<boolean> {
  try {
    return asInteger(await sender.call('EXISTS', keys, { resend: 'reads' })) > 0
  } catch (error) {
    if (isRefusal(error)) return false
    throw error
  }
}
