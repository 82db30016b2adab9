import { ChangesBehindError, InternalError } from '../errors.js'
import { PRIORITIES, reliableNameOfKey, type ReliableKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { targetDueKeysOf } from './due-keys.js'
import { partly } from './pages.js'
import * as scripts from './reliable-scripts.js'
import type { MoveReply } from './reliable-scripts.js'
import { run } from './run.js'
import type { Sender } from './sender.js'

/** The messages to move. */
export interface HowToMove {
  /** The ids to move; without it, the first `count`. */
  readonly ids?: readonly Buffer[] | undefined
  readonly count: number
  readonly priority: number
  /** Whether the messages are the dead letters of the target. */
  readonly isRedriven: boolean
}

/** Resolves with the ids of dead letters that may go back to their queue. */
export type FreeOf = (ids: readonly Buffer[]) => Promise<readonly Buffer[]>

/** Moves messages by their ids, or the first `count` if there are none. */
type Move = (ids: readonly Buffer[], count: number) => Promise<MoveReply>

interface Params {
  readonly keys: ReliableKeys
  /** The caller's name in the change stream. */
  readonly client: string
  /** Ids of a schedule in the order of their times, from the index `from` on. */
  readonly idsOf: (
    schedule: number,
    times: readonly [least: string, most: string],
    from: number,
    most: number,
  ) => Promise<Buffer[]>
}

/** The most ids sent together. */
const IDS = 500
/** The most dead letters that are looked for in other queues together, and by one call. */
const REDRIVES = 100
const MOST_LOOKED_AT = 10_000
const ALL_TIMES = ['-inf', '+inf'] as const
/** The script's reply if the groups have left too many changes unread. */
const BEHIND = -6

/** Moves messages of one reliable queue to other queues, and dead letters back to theirs. */
export class ReliableMoveStore {
  readonly #sender: Sender
  readonly #settings: Settings
  readonly #params: Params

  constructor(sender: Sender, settings: Settings, params: Params) {
    this.#sender = sender
    this.#settings = settings
    this.#params = params
  }

  /** Moves messages that no consumer has to another queue; resolves with how many. */
  async moveTo(target: ReliableKeys, how: HowToMove): Promise<number> {
    const { ids, count } = how
    const move = this.#moving(target, how)
    let moved = 0
    if (ids !== undefined) {
      for await (const reply of moveIds(move, ids)) moved += reply.moved
      return moved
    }
    for (;;) {
      const reply = await move([], count - moved).catch(partly(moved > 0))
      moved += reply.moved
      // there may be messages after ids without one, and after large ones
      if ((reply.gone === 0 && reply.rest === 0) || moved >= count) return moved
    }
  }

  /**
   * Moves up to `count` of these dead letters back to their queue, without those that `freeOf` leaves out: it gets some ids, and resolves
   * with the ones to move. Yields how many each script has moved. Ends after `MOST_LOOKED_AT` dead letters.
   */
  async *redriveFree(target: ReliableKeys, count: number, freeOf: FreeOf): AsyncGenerator<number, void> {
    const move = this.#moving(target, { count, priority: 0, isRedriven: true })
    let [moved, looked] = [0, 0]
    // dead letters have the lowest priority; those with a group are in a schedule of their own
    for (const schedule of [0, PRIORITIES]) {
      for (let stays = 0; moved < count && looked < MOST_LOOKED_AT;) {
        const ids = await this.#params.idsOf(schedule, ALL_TIMES, stays, REDRIVES)
        if (ids.length === 0) break
        looked += ids.length
        stays += ids.length
        const free = (await freeOf(ids)).slice(0, count - moved)
        for await (const reply of moveIds(move, free)) {
          moved += reply.moved
          stays -= reply.moved + reply.gone
          yield reply.moved
        }
      }
    }
  }

  #moving(target: ReliableKeys, { priority, isRedriven }: HowToMove): Move {
    const { keys: own, client } = this.#params
    const { messages, deliveries, failures, due, config, changes, completed, completedAt } = own
    const { groupOrder, groupTurns, groupWakes, groups, inFlight, batches, batchesAt } = own
    const grouped = { due10: due[PRIORITIES] ?? '', groupOrder, groupTurns, groupWakes, groups, inFlight }
    const targets = {
      targetMessages: target.messages,
      targetDue: target.due[priority] ?? '',
      targetConfig: target.config,
      targetChanges: target.changes,
      targetGroupOrder: target.groupOrder,
      targetGroupTurns: target.groupTurns,
      targetGroupWakes: target.groupWakes,
      targetGroups: target.groups,
      targetInFlight: target.inFlight,
      targetDeliveries: target.deliveries,
      targetFailures: target.failures,
      ...targetDueKeysOf(target.due),
    }
    const plain = { messages, deliveries, failures, due: due[priority] ?? '', config, changes, completed, completedAt }
    const keys = { ...plain, ...grouped, batches, batchesAt, ...targets }
    const targetName = JSON.stringify(reliableNameOfKey(target.messages) ?? '')
    return async (ids, count) => {
      const known = { targetChannel: target.channel, client, targetName, priority, isRedriven }
      const reply = await run(this.#sender, scripts.move, keys, {
        ...known,
        nowMs: scriptTime(this.#settings),
        count,
        ids,
      })
      if (reply.moved === BEHIND) throw new ChangesBehindError()
      return reply
    }
  }
}

/** Moves messages in pages; yields the counts of each script, which can leave out the last ids if the messages are large. */
async function* moveIds(move: Move, ids: readonly Buffer[]): AsyncGenerator<MoveReply, void> {
  let isPartly = false
  for (let from = 0; from < ids.length;) {
    const page = ids.slice(from, from + IDS)
    const reply: MoveReply = await move(page, page.length).catch(partly(isPartly))
    if (reply.rest >= page.length) throw new InternalError('move-reply', 'it moved none')
    isPartly ||= reply.moved > 0
    from += page.length - reply.rest
    yield reply
  }
}
