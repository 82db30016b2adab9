import { reliableKeys } from '../keys.js'
import { resolveSettings } from '../options.js'
import type { GroupCountReply } from '../store/reliable-group-scripts.js'
import { ReliableGroupStore } from '../store/reliable-group-store.js'
import type { Sender } from '../store/sender.js'

/** The counts of a group, in all shards together. */
export interface CountedGroup extends GroupCountReply {
  readonly group: string
}

const PAGE = 100
const NONE: GroupCountReply = { visible: 0, delayed: 0, inFlight: 0, delivered: 0, paused: false }

/**
 * Counts the first `limit` groups, at most 1,000, of those that have messages, or had some lately, and of the paused ones; or of the paused
 * ones only. `isAll`: there are no others.
 */
export async function countGroups(
  sender: Sender,
  queues: readonly string[],
  { limit, onlyPaused }: { readonly limit: number; readonly onlyPaused: boolean },
): Promise<{ readonly groups: readonly CountedGroup[]; readonly isAll: boolean }> {
  const stores = queues.map((queue) => storeOf(sender, queue))
  const found = new Map<string, Buffer>()
  for (const store of stores) {
    for await (const page of onlyPaused ? store.paused() : store.names(PAGE)) {
      for (const name of page) {
        const key = name.toString('latin1')
        if (found.size === limit && !found.has(key)) return { groups: await counted(stores, found), isAll: false }
        found.set(key, name)
      }
    }
  }
  return { groups: await counted(stores, found), isAll: true }
}

/** Counts one group, which has zeros if there is none. */
export async function countGroup(sender: Sender, queues: readonly string[], group: string): Promise<CountedGroup> {
  const name = Buffer.from(group)
  const [counts] = await counted(
    queues.map((queue) => storeOf(sender, queue)),
    new Map([[name.toString('latin1'), name]]),
  )
  return counts ?? { group, ...NONE }
}

function storeOf(sender: Sender, queue: string): ReliableGroupStore {
  return new ReliableGroupStore(sender, resolveSettings({}), reliableKeys(queue))
}

async function counted(
  stores: readonly ReliableGroupStore[],
  found: ReadonlyMap<string, Buffer>,
): Promise<CountedGroup[]> {
  const names = [...found.values()]
  const all = names.length === 0 ? [] : await Promise.all(stores.map((store) => store.count(names)))
  return names.map((name, at) => ({
    group: name.toString(),
    ...all.reduce<GroupCountReply>((sum, counts) => plus(sum, counts[at] ?? NONE), NONE),
  }))
}

function plus(a: GroupCountReply, b: GroupCountReply): GroupCountReply {
  return {
    visible: a.visible + b.visible,
    delayed: a.delayed + b.delayed,
    inFlight: a.inFlight + b.inFlight,
    delivered: a.delivered + b.delivered,
    paused: a.paused || b.paused,
  }
}
