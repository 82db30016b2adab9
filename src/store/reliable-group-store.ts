import { dueKeysOf } from './due-keys.js'
import { PRIORITIES, type ReliableKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { asArray, asBytes, asInteger } from './replies.js'
import * as scripts from './reliable-group-scripts.js'
import type { ClaimsReply, GroupCountReply, TotalsReply } from './reliable-group-scripts.js'
import { run } from './run.js'
import type { Sender } from './sender.js'

/** The most names read together. */
const NAMES = 1_000
/** The most groups that one script examines to count messages held back. */
const LOOKED_AT = 500

/** The name of the turn of messages without a group. */
const PLAIN = ''

/** The numbers of groups by their state; full groups, which wait for the end of a claim, are not counted. */
export interface GroupTotals {
  readonly ready: number
  readonly later: number
  readonly paused: number
  /** The number of paused tasks. */
  readonly pausedTasks: number
}

/** The most tasks of a queue that can be paused at once. */
export const MOST_PAUSED_TASKS = 511

/** The groups and the paused tasks of one reliable queue in Redis. */
export class ReliableGroupStore {
  readonly #sender: Sender
  readonly #settings: Settings
  readonly #keys: ReliableKeys

  constructor(sender: Sender, settings: Settings, keys: ReliableKeys) {
    this.#sender = sender
    this.#settings = settings
    this.#keys = keys
  }

  /** Pauses or resumes a group; resolves with whether that changed anything. */
  pause(group: Buffer, pause: boolean): Promise<boolean> {
    const args = { ...this.#common, pause, group }
    return run(this.#sender, scripts.pauseGroup, this.#scriptKeys, args, { resend: 'undoes' })
  }

  /** Pauses or resumes a task; resolves with 1 if that changed anything, else 0, or less if the most possible tasks are paused. */
  pauseTask(task: Buffer, pause: boolean): Promise<number> {
    const { config, taskPauses, channel } = this.#keys
    const args = { channel, pause, task }
    return run(this.#sender, scripts.pauseTask, { config, taskPauses }, args, { resend: 'undoes' })
  }

  /** The paused tasks, at most `MOST_PAUSED_TASKS`. */
  async pausedTasks(): Promise<Buffer[]> {
    const args = [this.#keys.taskPauses, '1', String(MOST_PAUSED_TASKS), 'LIMIT', '0', String(MOST_PAUSED_TASKS)]
    return asArray(await this.#sender.call('ZRANGEBYSCORE', args, { resend: 'reads' })).map(asBytes)
  }

  /** After a limit was changed: gives groups below the new limit a turn, page by page. */
  async refresh(): Promise<void> {
    let cursor = '0'
    do {
      const args = { ...this.#common, cursor }
      cursor = await run(this.#sender, scripts.refreshGroups, this.#scriptKeys, args, { resend: 'harmless' })
    } while (cursor !== '0')
  }

  /** The paused groups, page by page, in the order of their bytes. */
  async *paused(): AsyncGenerator<Buffer[], void> {
    let before = Buffer.alloc(0)
    for (let from: string | Buffer = '-'; ;) {
      const args = [this.#keys.groupPauses, from, '+', 'LIMIT', '0', String(NAMES)]
      const page = asArray(await this.#sender.call('ZRANGEBYLEX', args, { resend: 'reads' })).map(asBytes)
      yield page
      const last = page.at(-1)
      // if another program has set scores, the order differs, and could lead in a circle
      if (last === undefined || page.length < NAMES || Buffer.compare(last, before) <= 0) return
      before = Buffer.from(last)
      from = Buffer.concat([Buffer.from('('), last])
    }
  }

  /** The counts of at most 1,000 groups. */
  count(groups: readonly Buffer[]): Promise<GroupCountReply[]> {
    const { config, groupOrder, groups: states, groupPauses } = this.#keys
    const keys = { config, groupOrder, groups: states, groupPauses }
    const args = { nowMs: scriptTime(this.#settings), names: groups }
    return run(this.#sender, scripts.countGroups, keys, args, { resend: 'reads' })
  }

  /** The names of all groups, in pages of about `count`. */
  async *names(count: number): AsyncGenerator<readonly Buffer[], void> {
    const { groupOrder, groups, groupPauses } = this.#keys
    const keys = { groupOrder, groups, groupPauses }
    let cursor = Buffer.alloc(0)
    do {
      const reply = await run(this.#sender, scripts.listGroups, keys, { cursor, count }, { resend: 'reads' })
      yield reply.names
      if (isPaused(cursor) && isPaused(reply.cursor) && Buffer.compare(reply.cursor, cursor) <= 0) return // as for `paused`
      cursor = reply.cursor as Buffer<ArrayBuffer>
    } while (cursor.length > 0)
  }

  /** The numbers of groups that have a turn, will have one later, and are paused. */
  async totals(): Promise<GroupTotals> {
    const { groupTurns, groupWakes, groupPauses, taskPauses } = this.#keys
    const call = (command: string, ...args: string[]) => this.#sender.call(command, args, { resend: 'reads' })
    const [turns, plain, wakes, pauses, tasks] = await Promise.all([
      call('ZCARD', groupTurns),
      call('ZSCORE', groupTurns, PLAIN),
      call('ZCARD', groupWakes),
      call('ZCARD', groupPauses),
      call('ZCOUNT', taskPauses, '1', String(MOST_PAUSED_TASKS)),
    ])
    const ready = asInteger(turns) - (plain === null ? 0 : 1)
    return { ready, later: asInteger(wakes), paused: asInteger(pauses), pausedTasks: asInteger(tasks) }
  }

  /** Counts the messages held back by limits and pauses, the groups and batches, and the completed messages that are kept. */
  queueTotals(): Promise<TotalsReply> {
    const { config, inFlight, due, rate, groupOrder, groupTurns, groupWakes, groups, groupPauses } = this.#keys
    const { batches, batchesAt, taskPauses, completedAt } = this.#keys
    const keys = {
      ...{ config, inFlight, ...dueKeysOf(due), rate, groupOrder, groupTurns, groupWakes, groups, groupPauses },
      ...{ batches, batchesAt, taskPauses, completedAt },
    }
    const args = { nowMs: scriptTime(this.#settings), most: LOOKED_AT }
    return run(this.#sender, scripts.totals, keys, args, { resend: 'reads' })
  }

  /** The claims of all groups; `null` with more than `most` groups. */
  claims(most: number): Promise<ClaimsReply | null> {
    const { inFlight, groups } = this.#keys
    return run(this.#sender, scripts.lostClaims, { inFlight, groups }, { most }, { resend: 'reads' })
  }

  get #common() {
    return { channel: this.#keys.channel, nowMs: scriptTime(this.#settings) }
  }

  get #scriptKeys() {
    const { config, inFlight, due, groupOrder, groupTurns, groupWakes, groups, groupPauses } = this.#keys
    return { config, inFlight, due10: due[PRIORITIES] ?? '', groupOrder, groupTurns, groupWakes, groups, groupPauses }
  }
}

/** Whether a cursor is among the paused groups, whose pages are in the order of the names. */
function isPaused(cursor: Buffer): boolean {
  return cursor.toString('latin1', 0, 2) === 'p('
}
