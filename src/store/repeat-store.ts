import { ChangesBehindError } from '../errors.js'
import type { ReliableKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { pagesOf } from './pages.js'
import * as scripts from './reliable-scripts.js'
import { asArray, asBytes, asBytesOrNull, asInteger, asNumber } from './replies.js'
import { run } from './run.js'
import type { KeysOf } from './script.js'
import type { Sender } from './sender.js'

/** A new value of a repeat, and its messages. */
export interface RepeatChange {
  /** The server's time, as the caller knows it, with which the change was computed. */
  readonly computedAt: number
  /** The value that the caller knows; empty for none. */
  readonly known: Buffer
  /** The new value; empty to remove the repeat. */
  readonly value: Buffer
  /** When the next message has to be prepared; `null` for never. */
  readonly at: number | null
  /** The priority of the messages; `PRIORITIES` if the records have a group. */
  readonly priority: number
  /** The id of a message to remove unless it is visible or a consumer has it; empty for none. */
  readonly withdrawn: Buffer
  /** Three items for each message: its id, when it is visible, its record. */
  readonly items: readonly Buffer[]
}

/** The most repeats read together. */
const READS = 100
/** The largest repeat that is read together with others. */
const SMALL_BYTES = 65_536
/** The most bytes of a stored repeat beside its payload: the headers, whose characters JSON can make six times as long, and little else. */
const OTHER_BYTES = 1024 * 1024
/** The script's reply if the groups have left too many changes unread. */
const BEHIND = -(2 ** 31)

interface Params {
  readonly keys: ReliableKeys
  readonly scriptKeys: KeysOf<typeof scripts.repeat.source>
  /** The caller's name in the change stream. */
  readonly client: string
}

/** The repeats of one reliable queue in Redis. */
export class RepeatStore {
  readonly #sender: Sender
  readonly #settings: Settings
  readonly #params: Params

  constructor(sender: Sender, settings: Settings, params: Params) {
    this.#sender = sender
    this.#settings = settings
    this.#params = params
  }

  /**
   * Changes a repeat; resolves with 1, with 0 if the value was another one or the caller's time is wrong, or, if not all messages fit, with
   * -1 less the number that fit.
   */
  async change(name: Buffer, change: RepeatChange): Promise<number> {
    const { keys, scriptKeys, client } = this.#params
    const { computedAt, known, value, at, priority, withdrawn, items } = change
    const result = await run(
      this.#sender,
      scripts.repeat,
      scriptKeys,
      {
        channel: keys.channel,
        nowMs: scriptTime(this.#settings),
        computedAt,
        name,
        expected: known,
        value,
        at: at === null ? '' : String(at),
        priority,
        withdrawn,
        client,
        items,
      },
      { resend: 'undoes' }, // a second time the value is another one, unless later calls have made it what it was
    )
    if (result === BEHIND) throw new ChangesBehindError()
    return result
  }

  async get(name: string | Buffer): Promise<Buffer | null> {
    return asBytesOrNull(await this.#call('HGET', this.#params.keys.repeats, name))
  }

  /** When the next message of a repeat has to be prepared, epoch milliseconds; `null` for never. */
  async tickOf(name: string): Promise<number | null> {
    const score = await this.#call('ZSCORE', this.#params.keys.ticks, name)
    return score === null ? null : asNumber(score)
  }

  /** All repeats by their names; `null` for one that was removed meanwhile, the number of bytes for one that is too large. */
  async *all(): AsyncGenerator<[name: Buffer, value: Buffer | number | null], void> {
    const { repeats } = this.#params.keys
    const most = mostRepeatBytes(this.#settings.maxPayloadBytes)
    const names = asArray(await this.#call('HKEYS', repeats)).map(asBytes)
    for (const page of pagesOf(names, READS)) {
      // together except for large ones: any client can have written any number of any size
      const sizes = (await Promise.all(page.map((name) => this.#call('HSTRLEN', repeats, name)))).map(asInteger)
      const small = page.filter((_, at) => (sizes[at] ?? 0) <= SMALL_BYTES)
      const values = small.length === 0 ? [] : asArray(await this.#call('HMGET', repeats, ...small))
      let next = 0
      for (const [at, name] of page.entries()) {
        const size = sizes[at] ?? 0
        if (size <= SMALL_BYTES) yield [name, asBytesOrNull(values[next++] ?? null)]
        else yield [name, size <= most ? await this.get(name) : size]
      }
    }
  }

  #call(command: string, ...args: readonly (string | Buffer)[]): Promise<unknown> {
    return this.#sender.call(command, args, { resend: 'reads' })
  }
}

/** The largest stored repeat; a poll does not read a larger one. */
export function mostRepeatBytes(maxPayloadBytes: number): number {
  return Math.ceil(maxPayloadBytes / 3) * 4 + OTHER_BYTES
}
