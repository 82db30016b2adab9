import { ChangesBehindError } from '../errors.js'
import type { ReliableKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { pagesOf } from './pages.js'
import * as scripts from './reliable-scripts.js'
import { asArray, asBytes, asBytesOrNull, asInteger, asText } from './replies.js'
import { run } from './run.js'
import type { KeysOf } from './script.js'
import type { Sender } from './sender.js'

/** Another value of a repeat, and its messages. */
export interface RepeatChange {
  /** The value as the caller knows it; empty for none. */
  readonly known: Buffer
  /** Empty to remove the repeat. */
  readonly value: Buffer
  /** When the next message has to be prepared; `null` for never. */
  readonly at: number | null
  /** `PRIORITIES` where the records have a group. */
  readonly priority: number
  /** The id of a message that is removed unless it is visible or a consumer has it; empty for none. */
  readonly withdrawn: Buffer
  /** For each message three: its id, when it is visible, its record. */
  readonly items: readonly Buffer[]
}

/** How many repeats are read together. */
const READS = 100
/** Repeats up to this size are read together. */
const SMALL_BYTES = 65_536
/** Of what is kept of a repeat beside its payload: the headers, whose characters JSON can make six times as long, and little else. */
const OTHER_BYTES = 1024 * 1024
/** The script's answer where the groups have left too many changes unread. */
const BEHIND = -(2 ** 31)

interface Params {
  readonly keys: ReliableKeys
  readonly scriptKeys: KeysOf<typeof scripts.repeat.source>
  /** The name by which the change stream knows the caller. */
  readonly client: string
}

/** What Redis has of the repeats of one reliable queue. */
export class RepeatStore {
  readonly #sender: Sender
  readonly #settings: Settings
  readonly #params: Params

  constructor(sender: Sender, settings: Settings, params: Params) {
    this.#sender = sender
    this.#settings = settings
    this.#params = params
  }

  /** 1, or 0 when the value was another one; where there is room for some of the messages only, -1 less how many that are. */
  async change(name: Buffer, { known, value, at, priority, withdrawn, items }: RepeatChange): Promise<number> {
    const { keys, scriptKeys, client } = this.#params
    const result = await run(
      this.#sender,
      scripts.repeat,
      scriptKeys,
      {
        channel: keys.channel,
        nowMs: scriptTime(this.#settings),
        name,
        expected: known,
        value,
        at: at === null ? '' : String(at),
        priority,
        withdrawn,
        client,
        items,
      },
      { idempotent: true }, // a second time the value is another one, and nothing happens
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
    return score === null ? null : Number(asText(score))
  }

  /** All repeats by their names; `null` for one that was removed meanwhile, the number of bytes for one that is larger than any can be. */
  async *all(): AsyncGenerator<[name: Buffer, value: Buffer | number | null], void> {
    const { repeats } = this.#params.keys
    const most = mostRepeatBytes(this.#settings.maxPayloadBytes)
    const names = asArray(await this.#call('HKEYS', repeats)).map(asBytes)
    for (const page of pagesOf(names, READS)) {
      // together but for the large ones: any client can have written any number of any size
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
    return this.#sender.call(command, args, { idempotent: true })
  }
}

/** How large what is kept of a repeat can be; a poll reads none that is larger. */
export function mostRepeatBytes(maxPayloadBytes: number): number {
  return Math.ceil(maxPayloadBytes / 3) * 4 + OTHER_BYTES
}
