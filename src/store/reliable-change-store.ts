import type { ReliableKeys } from '../keys.js'
import { asArray, asBytesOrNull, asText } from './replies.js'
import * as scripts from './reliable-change-scripts.js'
import type { OpenReply, ReadStatus, StatusReply, StreamEntry } from './reliable-change-scripts.js'
import { run } from './run.js'
import type { ArgsOf } from './script.js'
import type { Sender } from './sender.js'

export type { StreamEntry } from './reliable-change-scripts.js'

/** How much one script reads. */
export interface Page {
  readonly count: number
  readonly bytes: number
}

/** A group, and one of its readers. */
export interface Reader {
  readonly group: string
  readonly consumer: string
}

/** Entries after one, if that one is still there. */
export interface StreamPage {
  readonly status: ReadStatus
  readonly epoch: string | null
  readonly last: string | null
  readonly entries: readonly StreamEntry[]
}

const FIELD = 'changes'
/** How many ids one script acknowledges. */
const IDS = 500
/** How many entries one script removes; each takes 1 us at most, unless it is larger than 5 kB. */
const TRIMMED = 10_000
/** Readers that are gone for so long, and left nothing, are forgotten. */
const FORGET_MS = 3_600_000
/** Where there are more groups, a script that trims takes the server milliseconds: it does so only now and then. */
const FEW_GROUPS = 100
const NEXT_TRIM_MS = 1_000

/** What Redis has of one queue's change stream. */
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

  /** Where a reader begins; its group is made if there is none. `epoch`: of the entry `from`. */
  open(group: string, from: string, epoch: string): Promise<OpenReply> {
    const args = { group, from, epoch, idleMs: FORGET_MS }
    return run(this.#sender, scripts.openChanges, this.#keys, args, { idempotent: true })
  }

  /** The entries after one: those that fit into `bytes`, and a few more. */
  readAfter(id: string, { count, bytes }: Page): Promise<StreamEntry[]> {
    const args = { group: '', consumer: '', after: id, count, bytes }
    return this.#read(args, { idempotent: true })
  }

  /** Entries that no reader of the group has got yet. Where the reply is lost, they are among those that this reader has. */
  readNew({ group, consumer }: Reader, { count, bytes }: Page): Promise<StreamEntry[]> {
    return this.#read({ group, consumer, after: '>', count, bytes }, { idempotent: false })
  }

  /** Entries after `id` that this reader has got and not acknowledged. */
  readOwn({ group, consumer }: Reader, id: string, { count, bytes }: Page): Promise<StreamEntry[]> {
    return this.#read({ group, consumer, after: id, count, bytes }, { idempotent: true })
  }

  #read(args: ArgsOf<typeof scripts.followChanges.source>, options: { idempotent: boolean }): Promise<StreamEntry[]> {
    return run(this.#sender, scripts.followChanges, { changes: this.#keys.changes }, args, options)
  }

  /** Takes over entries that a reader of the group has had for longer than `idleMs`; and where to continue, `0-0` after the last. */
  async claim(
    { group, consumer }: Reader,
    idleMs: number,
    from: string,
    count: number,
  ): Promise<{ next: string; entries: StreamEntry[] }> {
    const args = [this.#keys.changes, group, consumer, String(idleMs), from, 'COUNT', String(count)]
    const [next, entries] = asArray(await this.#sender.call('XAUTOCLAIM', args))
    return {
      next: asText(next),
      entries: asArray(entries).flatMap((entry) => (entry === null ? [] : [asEntry(entry)])),
    }
  }

  /** At most `count` entries after one, and one entry more than fit into `bytes`; with an epoch, that one must be an entry of it. */
  async readPage(
    after: { readonly id: string; readonly epoch: string | null; readonly digest: string },
    count: number,
    bytes: number,
  ): Promise<StreamPage> {
    const args = { after: after.id, epoch: after.epoch ?? '', count, bytes, digest: after.digest }
    const { entries, ...page } = await run(this.#sender, scripts.readChanges, this.#keys, args, { idempotent: true })
    return { ...page, entries: entries.map(asEntry) }
  }

  /** The group has all entries up to this one. */
  release(group: string, id: string): Promise<boolean> {
    return run(this.#sender, scripts.releaseChanges, this.#keys, { group, id }, { idempotent: true })
  }

  async acknowledge(group: string, ids: readonly string[]): Promise<number> {
    let done = 0
    for (let from = 0; from < ids.length; from += IDS) {
      const args = { group, trim: performance.now() >= this.#nextTrimAt, ids: ids.slice(from, from + IDS) }
      const reply = await run(this.#sender, scripts.acknowledgeChanges, this.#keys, args, { idempotent: true })
      done += reply.done
      if (reply.groups > FEW_GROUPS) this.#nextTrimAt = performance.now() + NEXT_TRIM_MS
    }
    return done
  }

  /** What the group has kept goes in several scripts, as it can be a million entries. */
  async removeGroup(group: string): Promise<boolean> {
    const remove = (from: string): Promise<{ isRemoved: boolean; from: string }> =>
      run(this.#sender, scripts.removeChangeGroup, this.#keys, { group, from, most: TRIMMED })
    const { isRemoved, ...first } = await remove('')
    for (let { from } = first; from !== '';) ({ from } = await remove(from))
    return isRemoved
  }

  /** How many of the last `count` entries no script has written. */
  inspect(count: number): Promise<{ examined: number; foreign: number }> {
    return run(this.#sender, scripts.inspectChanges, { changes: this.#keys.changes }, { count }, { idempotent: true })
  }

  status(): Promise<StatusReply> {
    return run(this.#sender, scripts.changeStatus, this.#keys, {}, { idempotent: true })
  }
}

function asEntry(reply: unknown): StreamEntry {
  const [id, fields] = asArray(reply)
  const pairs = fields === null ? [] : asArray(fields)
  const isOurs = pairs.length === 2 && asText(pairs[0]) === FIELD
  return { id: asText(id), value: isOurs ? asBytesOrNull(pairs[1]) : null, isGone: fields === null }
}
