import { PRIORITIES, type ReliableKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { asArray, asBytes } from './replies.js'
import * as scripts from './reliable-group-scripts.js'
import { run } from './run.js'
import type { Sender } from './sender.js'

/** How many names are read together. */
const NAMES = 1_000

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
    const { config, inFlight, due, groupOrder, groupTurns, groupWakes, groups, groupPauses, channel } = this.#keys
    const keys = { config, inFlight, due10: due[PRIORITIES] ?? '', groupOrder, groupTurns, groupWakes, groups }
    const args = { channel, nowMs: scriptTime(this.#settings), pause, group }
    return run(this.#sender, scripts.pauseGroup, { ...keys, groupPauses }, args, { idempotent: true })
  }

  /** Page by page, in the order of their bytes. */
  async *paused(): AsyncGenerator<Buffer[], void> {
    for (let from: string | Buffer = '-'; ;) {
      const args = [this.#keys.groupPauses, from, '+', 'LIMIT', '0', String(NAMES)]
      const page = asArray(await this.#sender.call('ZRANGEBYLEX', args, { idempotent: true })).map(asBytes)
      yield page
      const last = page.at(-1)
      if (last === undefined || page.length < NAMES) return
      from = Buffer.concat([Buffer.from('('), last])
    }
  }
}
