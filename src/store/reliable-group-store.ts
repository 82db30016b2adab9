import { dueKeysOf } from './due-keys.js'
import { PRIORITIES, type ReliableKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { asArray, asBytes, asInteger } from './replies.js'
import * as scripts from './reliable-group-scripts.js'
import type { ClaimsReply, GroupCountReply, TotalsReply } from './reliable-group-scripts.js'
import { run } from './run.js'
import type { Sender } from './sender.js'

/** How many names are read together. */
const NAMES = 1_000
/** So many groups one script looks at to say what their limits hold back. */
const LOOKED_AT = 500

/** The name under which the messages without a group have their turn. */
const PLAIN = ''

/** How many groups there are, by what becomes of them next; those that are full and wait for the end of a claim are in none. */
export interface GroupTotals {
  readonly ready: number
  readonly later: number
  readonly paused: number
}

/** What Redis has of the groups of one reliable queue. */
export class ReliableGroupStore {
  readonly #sender: Sender
  readonly #settings: Settings
  readonly #keys: ReliableKeys

  constructor(sender: Sender, settings: Settings, keys: ReliableKeys) {
    this.#sender = sender
    this.#settings = settings
    this.#keys = keys
  }

  /** Resolves with whether it was not so before. */
  pause(group: Buffer, pause: boolean): Promise<boolean> {
    const args = { ...this.#common, pause, group }
    return run(this.#sender, scripts.pauseGroup, this.#scriptKeys, args, { idempotent: true })
  }

  /** After a limit was changed: those that may have more from now on get a turn. Page by page. */
  async refresh(): Promise<void> {
    let cursor = '0'
    do {
      const args = { ...this.#common, cursor }
      cursor = await run(this.#sender, scripts.refreshGroups, this.#scriptKeys, args, { idempotent: true })
    } while (cursor !== '0')
  }

  /** Page by page, in the order of their bytes. */
  async *paused(): AsyncGenerator<Buffer[], void> {
    let before = Buffer.alloc(0)
    for (let from: string | Buffer = '-'; ;) {
      const args = [this.#keys.groupPauses, from, '+', 'LIMIT', '0', String(NAMES)]
      const page = asArray(await this.#sender.call('ZRANGEBYLEX', args, { idempotent: true })).map(asBytes)
      yield page
      const last = page.at(-1)
      // where another program has given some of them scores of their own, they are in another order, which could lead in a circle
      if (last === undefined || page.length < NAMES || Buffer.compare(last, before) <= 0) return
      before = Buffer.from(last)
      from = Buffer.concat([Buffer.from('('), last])
    }
  }

  /** At most 1,000. */
  count(groups: readonly Buffer[]): Promise<GroupCountReply[]> {
    const { config, groupOrder, groups: states, groupPauses } = this.#keys
    const keys = { config, groupOrder, groups: states, groupPauses }
    const args = { nowMs: scriptTime(this.#settings), names: groups }
    return run(this.#sender, scripts.countGroups, keys, args, { idempotent: true })
  }

  /** All names, in pages of about `count`. */
  async *names(count: number): AsyncGenerator<readonly Buffer[], void> {
    const { groupOrder, groups, groupPauses } = this.#keys
    const keys = { groupOrder, groups, groupPauses }
    let cursor = Buffer.alloc(0)
    do {
      const reply = await run(this.#sender, scripts.listGroups, keys, { cursor, count }, { idempotent: true })
      yield reply.names
      if (isPaused(cursor) && isPaused(reply.cursor) && Buffer.compare(reply.cursor, cursor) <= 0) return // as for `paused`
      cursor = reply.cursor as Buffer<ArrayBuffer>
    } while (cursor.length > 0)
  }

  /** How many groups have a turn, will have one at a time, and are paused. */
  async totals(): Promise<GroupTotals> {
    const { groupTurns, groupWakes, groupPauses } = this.#keys
    const call = (command: string, ...args: string[]) => this.#sender.call(command, args, { idempotent: true })
    const [turns, plain, wakes, pauses] = await Promise.all([
      call('ZCARD', groupTurns),
      call('ZSCORE', groupTurns, PLAIN),
      call('ZCARD', groupWakes),
      call('ZCARD', groupPauses),
    ])
    const ready = asInteger(turns) - (plain === null ? 0 : 1)
    return { ready, later: asInteger(wakes), paused: asInteger(pauses) }
  }

  /** What waits for a limit or a pause, and the groups and batches, in numbers. */
  queueTotals(): Promise<TotalsReply> {
    const { config, inFlight, due, rate, groupOrder, groupTurns, groupWakes, groups, groupPauses, batches, batchesAt } =
      this.#keys
    const keys = {
      ...{ config, inFlight, ...dueKeysOf(due), rate, groupOrder, groupTurns, groupWakes, groups, groupPauses },
      ...{ batches, batchesAt },
    }
    const args = { nowMs: scriptTime(this.#settings), most: LOOKED_AT }
    return run(this.#sender, scripts.totals, keys, args, { idempotent: true })
  }

  /** `null` with more than `most` groups. */
  claims(most: number): Promise<ClaimsReply | null> {
    const { inFlight, groups } = this.#keys
    return run(this.#sender, scripts.lostClaims, { inFlight, groups }, { most }, { idempotent: true })
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
