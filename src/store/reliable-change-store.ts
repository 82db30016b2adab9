import type { ReliableKeys } from '../keys.js'
import { asArray, asBytesOrNull, asStreamId, asText } from './replies.js'
import * as scripts from './reliable-change-scripts.js'
import type { OpenReply, ReadStatus, StatusReply, StreamEntry } from './reliable-change-scripts.js'
import { run } from './run.js'
import type { ArgsOf } from './script.js'
import type { CallOptions, Sender } from './sender.js'

export type { StreamEntry } from './reliable-change-scripts.js'

/** The limits of one read. */
export interface Page {
  readonly count: number
  readonly bytes: number
}

/** A group and one of its readers. */
export interface Reader {
  readonly group: string
  readonly consumer: string
}

/** The entries after one, and whether that one is still there. */
export interface StreamPage {
  readonly status: ReadStatus
  readonly epoch: string | null
  readonly last: string | null
  readonly entries: readonly StreamEntry[]
}

const FIELD = 'changes'
/** The most ids that one script acknowledges. */
const IDS = 500
/** The most entries that one script removes; each takes 1 us at most, unless it is larger than 5 kB. */
const TRIMMED = 10_000
/** How long idle readers without unacknowledged entries are remembered. */
const FORGET_MS = 3_600_000
/** With more groups a script that trims takes the server milliseconds, so scripts trim only now and then. */
const FEW_GROUPS = 100
const NEXT_TRIM_MS = 1_000

/** The change stream of one queue in Redis. */
export class ReliableChangeStore {
  readonly #sender: Sender
  readonly #keys: Pick<ReliableKeys, 'config' | 'changes'>
  #nextTrimAt = 0

  constructor(sender: Sender, { config, changes }: ReliableKeys) {
    this.#sender = sender
    this.#keys = { config, changes }
  }

  /** The key of the stream. */
  get key(): string {
    return this.#keys.changes
  }

  /** Finds where a reader begins, and creates its group if there is none. `epoch` is that of the entry `from`. */
  open(group: string, from: string, epoch: string): Promise<OpenReply> {
    const args = { group, from, epoch, idleMs: FORGET_MS }
    return run(this.#sender, scripts.openChanges, this.#keys, args, { resend: group === '' ? 'reads' : 'undoes' })
  }

  /** The entries after one that fit into `bytes`, and a few more. */
  readAfter(id: string, { count, bytes }: Page): Promise<StreamEntry[]> {
    const args = { group: '', consumer: '', after: id, count, bytes }
    return this.#read(args, { resend: 'reads' })
  }

  /** Entries given to no reader of the group yet. If the reply is lost, `readOwn` returns them. */
  readNew({ group, consumer }: Reader, { count, bytes }: Page): Promise<StreamEntry[]> {
    return this.#read({ group, consumer, after: '>', count, bytes })
  }

  /** Entries after `id` that were given to this reader and not acknowledged. */
  readOwn({ group, consumer }: Reader, id: string, { count, bytes }: Page): Promise<StreamEntry[]> {
    return this.#read({ group, consumer, after: id, count, bytes }, { resend: 'reads' })
  }

  #read(args: ArgsOf<typeof scripts.followChanges.source>, options?: CallOptions): Promise<StreamEntry[]> {
    return run(this.#sender, scripts.followChanges, { changes: this.#keys.changes }, args, options)
  }

  /**
   * Takes over entries that a reader of the group has had for longer than `idleMs`; also returns where to continue, `0-0` after the last.
   */
  async claim(
    { group, consumer }: Reader,
    idleMs: number,
    from: string,
    count: number,
  ): Promise<{ next: string; entries: StreamEntry[] }> {
    const args = [this.#keys.changes, group, consumer, String(idleMs), from, 'COUNT', String(count)]
    const [next, entries] = asArray(await this.#sender.call('XAUTOCLAIM', args))
    return {
      next: asStreamId(next),
      entries: asArray(entries).flatMap((entry) => (entry === null ? [] : [asEntry(entry)])),
    }
  }

  /** At most `count` entries after one, and one entry more than fit into `bytes`; with an epoch, the entry before must belong to it. */
  async readPage(
    after: { readonly id: string; readonly epoch: string | null; readonly digest: string },
    count: number,
    bytes: number,
  ): Promise<StreamPage> {
    const args = { after: after.id, epoch: after.epoch ?? '', count, bytes, digest: after.digest }
    const { entries, ...page } = await run(this.#sender, scripts.readChanges, this.#keys, args, { resend: 'reads' })
    return { ...page, entries: entries.map(asEntry) }
  }

  /** Acknowledges all entries up to this one for a group. */
  release(group: string, id: string): Promise<boolean> {
    return run(this.#sender, scripts.releaseChanges, this.#keys, { group, id }, { resend: 'undoes' })
  }

  async acknowledge(group: string, ids: readonly string[]): Promise<number> {
    let done = 0
    for (let from = 0; from < ids.length; from += IDS) {
      const args = { group, trim: performance.now() >= this.#nextTrimAt, ids: ids.slice(from, from + IDS) }
      const reply = await run(this.#sender, scripts.acknowledgeChanges, this.#keys, args, { resend: 'harmless' })
      done += reply.done
      if (reply.groups > FEW_GROUPS) this.#nextTrimAt = performance.now() + NEXT_TRIM_MS
    }
    return done
  }

  /** Removes a group. The entries that only it kept are removed by several scripts, because there can be a million. */
  async removeGroup(group: string): Promise<boolean> {
    const remove = (from: string): Promise<{ isRemoved: boolean; from: string }> =>
      run(this.#sender, scripts.removeChangeGroup, this.#keys, { group, from, most: TRIMMED })
    const { isRemoved, ...first } = await remove('')
    for (let { from } = first; from !== '';) ({ from } = await remove(from))
    return isRemoved
  }

  /** Counts entries that no script has written among the last `count`. */
  inspect(count: number): Promise<{ examined: number; foreign: number }> {
    return run(this.#sender, scripts.inspectChanges, { changes: this.#keys.changes }, { count }, { resend: 'reads' })
  }

  status(): Promise<StatusReply> {
    return run(this.#sender, scripts.changeStatus, this.#keys, {}, { resend: 'reads' })
  }
}

function asEntry(reply: unknown): StreamEntry {
  const [id, fields] = asArray(reply)
  const pairs = fields === null ? [] : asArray(fields)
  const isOurs = pairs.length === 2 && asText(pairs[0]) === FIELD
  return { id: asStreamId(id), value: isOurs ? asBytesOrNull(pairs[1]) : null, isGone: fields === null }
}
