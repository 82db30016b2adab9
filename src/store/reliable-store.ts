import { dueKeysOf } from './due-keys.js'
import { randomBytes } from 'node:crypto'
import { InternalError, InvalidArgumentError } from '../errors.js'
import type { ReliableKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { IDLE_MS } from './lease.js'
import { pagesOf, partly } from './pages.js'
import { asPollReply } from './poll-reply.js'
import { asArray, asBytes, asBytesOrNull, asFlag, asInteger } from './replies.js'
import { ReliableMoveStore } from './reliable-move-store.js'
import { mostRepeatBytes, RepeatStore } from './repeat-store.js'
import * as scripts from './reliable-scripts.js'
import type {
  AddReply,
  BatchReply,
  Claim,
  CountReply,
  EndReply,
  EndsReply,
  GetReply,
  MessageReply,
  PollReply,
} from './reliable-scripts.js'
import { itemArgs, restoreArgs, type HowToRestore, type NewMessage, type RestoredMessage } from './new-message.js'
import { run, runMany } from './run.js'
import type { Sender } from './sender.js'
import type { KeysOf } from './script.js'
import { waitedFor, type WaitedFor } from './durable-scripts.js'

/** Options of adding messages. */
export interface HowToAdd {
  readonly existing: 'keep' | 'replace' | 'postpone'
  /** How many milliseconds ago the first attempt was sent, which may have been carried out; `FIRST_ADD` if this is the first one. */
  readonly sentAgoMs: number
  /** Empty for none. */
  readonly batch: string
}

/** The last message of a batch: checked and encoded, with the options in the script's format. */
export type LastMessage = Pick<NewMessage, 'id' | 'priority' | 'timeToLive' | 'deliveryLimit' | 'headers' | 'payload'>

/** Options of claiming messages. */
export interface HowToHold {
  /** The visibility; `AS_SET` for the queue's. */
  readonly visibilityMs: number
  /** Whether the messages are prefetched: each counts as an attempt only from when it is extended as begun. */
  readonly beforehand: boolean
}

/** How unhandled messages are given back. */
export interface GiveBack {
  readonly how: 'failed' | 'rejected' | 'released'
  readonly delayMs: number
  /** The reason, in one line. */
  readonly reason: string
}

/** A stored message. */
export interface StoredMessage extends MessageReply {
  readonly id: Buffer
}

/** The `sentAgoMs` of a first attempt. */
export const FIRST_ADD = -1
/** The argument for the value of the queue's configuration, or of the message. */
export const AS_SET = -1
/** A script's reply for a time beyond 2^53-1. */
const TOO_LATE = -3
/** The reply of `giveBack` for a message that the dead letters could not take. */
export const NO_DEAD_LETTER = 3

/** The most messages that one script acknowledges, extends or gives back, and that one call can poll. */
export const MOST_HANDLED = 1_000
/** The most ids sent together. */
const IDS = 500
/** The most messages that one script reads. */
const READS = 100
/** The most ids that Redis walks to the beginning of a page, in about 0.2 ms. */
const MOST_WALKED = 10_000
/** About how long one poll script runs, and other clients' commands wait. */
const POLL_BUDGET_US = 2_000
const TOKEN_BYTES = 8
/** The longest setting. */
const SETTING_BYTES = 100
const EPOCH_BYTES = 12

/** The most bytes of results that one script writes after the first. */
const RESULT_BYTES = 1_048_576
/** The argument before a result, so that an empty result differs from none. */
const HAS_RESULT = Buffer.from('1')

const durableAdd = waitedFor(scripts.add)

/** All keys of a queue by their names in scripts. */
type ScriptKeys = KeysOf<(typeof scripts.add | typeof scripts.poll | typeof scripts.acknowledge)['source']>

/** One reliable queue in Redis: a method for each script and command, with its keys, limits and replies. */
export class ReliableStore {
  readonly keys: ReliableKeys
  readonly repeats: RepeatStore
  readonly moves: ReliableMoveStore
  readonly #sender: Sender
  readonly #settings: Settings
  readonly #deadChannel: string
  readonly #scriptKeys: ScriptKeys
  readonly #client: string

  /** `dead`: the keys of the dead-letter queue; `client`: the caller's name in the change stream. */
  constructor(
    sender: Sender,
    settings: Settings,
    { keys, dead }: { keys: ReliableKeys; dead: ReliableKeys },
    client: string,
  ) {
    this.keys = keys
    this.#client = client
    this.#sender = sender
    this.#settings = settings
    this.#deadChannel = dead.channel
    this.#scriptKeys = scriptKeysOf(keys, dead)
    this.repeats = new RepeatStore(sender, settings, { keys, scriptKeys: this.#scriptKeys, client })
    this.moves = new ReliableMoveStore(sender, settings, { keys, client, idsOf: (...args) => this.idsOf(...args) })
  }

  /** Adds messages; resolves with the script's outcome of each. Sent once; the caller decides when to send it again. */
  async add(messages: readonly NewMessage[], how: HowToAdd): Promise<AddReply> {
    const reply = await run(this.#sender, scripts.add, this.#scriptKeys, this.#addArgs(messages, how, false))
    assertOf(messages, reply)
    return reply
  }

  /** As `add`, through a sender that waits until the writes are durable. */
  async addDurably(
    sender: Pick<Sender, 'pipeline'>,
    messages: readonly NewMessage[],
    how: HowToAdd,
  ): Promise<WaitedFor<AddReply>> {
    const args = this.#addArgs(messages, how, true)
    const [answer] = await runMany(sender, durableAdd, this.#scriptKeys, [args])
    if (answer === undefined || answer instanceof Error) throw answer ?? new InternalError('add-reply', 'there is none')
    assertOf(messages, answer.reply)
    return answer
  }

  /**
   * Restores messages; resolves with the outcome of each, see the script. Sent once, because a consumer can have handled the restored
   * messages of a lost reply by the time it is sent again.
   */
  restore(messages: readonly RestoredMessage[], { known, deadLetters }: HowToRestore): Promise<number[]> {
    const items = messages.flatMap((message) => restoreArgs(message, deadLetters))
    const args = { channel: this.keys.channel, client: this.#client, known, items }
    return run(this.#sender, scripts.restore, this.#scriptKeys, args)
  }

  /**
   * Hands out visible messages. Sent again if the connection breaks: the messages of a lost reply are redelivered when their visibility
   * timeout ends.
   */
  poll(count: number, { visibilityMs, beforehand }: HowToHold, announce: boolean): Promise<PollReply> {
    const sentAt = performance.now()
    return run(
      this.#sender,
      { source: scripts.poll.source, decode: (reply) => asPollReply(reply, sentAt, visibilityMs) },
      this.#scriptKeys,
      {
        channel: this.keys.channel,
        deadChannel: this.#deadChannel,
        nowMs: this.#now,
        budgetUs: POLL_BUDGET_US,
        count,
        visibilityMs,
        token: randomBytes(TOKEN_BYTES).toString('base64url'),
        idleMs: IDLE_MS,
        announce,
        beforehand,
        repeatBytes: mostRepeatBytes(this.#settings.maxPayloadBytes),
        client: this.#client,
      },
      { resend: 'harmless' },
    )
  }

  /**
   * Acknowledges messages; resolves with whether each was the caller's. `results`: one for each message, `null` for none, kept if the queue
   * keeps completed messages.
   */
  acknowledge(claims: readonly Claim[], results?: readonly (Buffer | null)[]): Promise<boolean[]> {
    return inPages(
      claims,
      (page, from) =>
        run(this.#sender, scripts.acknowledge, this.#scriptKeys, {
          nowMs: this.#now,
          client: this.#client,
          withResults: results !== undefined,
          handled: results === undefined ? namesOf(page) : withResults(page, results, from),
        }),
      (at) => results?.[at]?.length ?? 0,
    )
  }

  /** How the messages of the first ids have ended, at least one, and whether the queue keeps completed messages. */
  ends(ids: readonly string[]): Promise<EndsReply> {
    return this.#ends(ids, false)
  }

  /** The completed messages of the first ids, at least one, whatever else has these ids. */
  async completed(ids: readonly Buffer[]): Promise<readonly EndReply[]> {
    return (await this.#ends(ids, true)).ends
  }

  /** The counts of batches; `null` if there is none of the name. */
  batches(names: readonly string[]): Promise<(BatchReply | null)[]> {
    return run(this.#sender, scripts.batches, this.#scriptKeys, { names: names.slice(0, READS) }, { resend: 'reads' })
  }

  /** Closes a batch; resolves with its counts, or with `null` if its last message is too large. Closing it again changes nothing. */
  closeBatch(name: string, last: LastMessage | null): Promise<BatchReply | null> {
    const size = last?.payload.length ?? 0
    const args = { nowMs: this.#now, client: this.#client, name, last: lastBytes(last), size }
    return run(this.#sender, scripts.closeBatch, this.#scriptKeys, args, { resend: 'undoes' })
  }

  /** The ids of completed messages, the latest first. */
  async completedIds(from: number, most: number): Promise<Buffer[]> {
    const reply = await this.#read('ZREVRANGE', this.keys.completedAt, String(from), String(from + most - 1))
    return asArray(reply).map(asBytes)
  }

  /** Counts the completed messages; `oldest` excludes those that were completed before that time, epoch milliseconds. */
  async countCompleted(oldest: number | undefined): Promise<number> {
    return asInteger(await this.#read('ZCOUNT', this.keys.completedAt, String(oldest ?? '-inf'), '+inf'))
  }

  /** Gives messages back; resolves with the script's reply for each, 0 if it was not the caller's. */
  giveBack(claims: readonly Claim[], how: GiveBack): Promise<number[]> {
    const known = { channel: this.keys.channel, deadChannel: this.#deadChannel, ...how, client: this.#client }
    return inPages(claims, async (page) => {
      const args = { ...known, nowMs: this.#now, handled: namesOf(page) }
      const results = await run(this.#sender, scripts.negativeAcknowledge, this.#scriptKeys, args)
      if (results[0] === TOO_LATE) throw new InvalidArgumentError('delay', 'a time of at most 2^53-1 ms', how.delayMs)
      return results
    })
  }

  /**
   * Extends messages; resolves with the new end of each visibility, `null` if it was not the caller's. The first `unbegun` are not being
   * handled yet; the others count as attempts from now on.
   */
  extend(claims: readonly Claim[], visibilityMs: number, unbegun: number): Promise<(number | null)[]> {
    const { channel } = this.keys
    return inPages(claims, (page, from) =>
      run(
        this.#sender,
        scripts.extend,
        this.#scriptKeys,
        { channel, nowMs: this.#now, visibilityMs, unbegun: Math.max(0, unbegun - from), handled: namesOf(page) },
        // late, a shorter time of the caller's choice would end a longer one
        { resend: visibilityMs === AS_SET ? 'harmless' : 'undoes' },
      ),
    )
  }

  /**
   * Stores a progress; resolves with the end of the message's visibility, `null` if it was not the caller's. With `visibilityMs` `null`
   * that does not change.
   */
  progress({ member, delivery }: Claim, progress: Buffer, visibilityMs: number | null): Promise<number | null> {
    const visibility = visibilityMs === null ? '' : String(visibilityMs)
    const holder = { member: typeof member === 'string' ? Buffer.from(member) : member, delivery, client: this.#client }
    const args = { channel: this.keys.channel, nowMs: this.#now, visibilityMs: visibility, progress, ...holder }
    return run(this.#sender, scripts.progress, this.#scriptKeys, args, { resend: 'undoes' })
  }

  /** The messages of some ids, page by page with the time of the read; `null` for ids without a message. */
  async *get(ids: readonly Buffer[]): AsyncGenerator<{ now: number; messages: (StoredMessage | null)[] }, void> {
    for (let from = 0; from < ids.length;) {
      const page = ids.slice(from, from + READS)
      const { now, messages } = await this.#get(page)
      yield { now, messages: messages.map((message, at) => message && { ...message, id: page[at] as Buffer }) }
      from += messages.length
    }
  }

  /** The time of the clock that decides when messages become visible, epoch milliseconds. */
  async now(): Promise<number> {
    return (await this.#get([])).now
  }

  count(): Promise<CountReply> {
    return run(this.#sender, scripts.count, this.#scriptKeys, { nowMs: this.#now }, { resend: 'reads' })
  }

  /** Sets settings, names and values in turn; resolves with whether anything changed. */
  configure(settings: readonly string[], { ifAbsent }: { readonly ifAbsent: boolean }): Promise<boolean> {
    const { channel } = this.keys
    const epoch = randomBytes(EPOCH_BYTES).toString('base64url')
    return run(this.#sender, scripts.configure, this.#scriptKeys, { channel, ifAbsent, epoch, settings })
  }

  /** Removes messages; yields the ids of removed ones, page by page. */
  async *remove(ids: readonly string[], { alsoHeld }: { readonly alsoHeld: boolean }): AsyncGenerator<string[], void> {
    let isPartly = false
    for (let from = 0; from < ids.length;) {
      const page = ids.slice(from, from + IDS)
      const args = { nowMs: this.#now, alsoHeld, client: this.#client, ids: page }
      const removing = run(this.#sender, scripts.remove, this.#scriptKeys, args)
      const removed: readonly boolean[] = await removing.catch(partly(isPartly))
      if (removed.length === 0) throw new InternalError('remove-reply', 'there is none')
      isPartly ||= removed.includes(true)
      from += removed.length // fewer than requested if they are large
      yield page.filter((_, at) => removed[at])
    }
  }

  /** Reschedules a message; resolves with the time at which it becomes visible, `null` if there is none or a consumer has it. */
  reschedule(id: Buffer, when: string, priority: number): Promise<number | null> {
    const args = { channel: this.keys.channel, nowMs: this.#now, id, when, priority, client: this.#client }
    return run(this.#sender, scripts.reschedule, this.#scriptKeys, args)
  }

  /** Replaces a payload; resolves with 1, with 0 if there is no message or a consumer has it, or with less if the payload is too large. */
  update(id: Buffer, payload: Buffer): Promise<number> {
    const args = { nowMs: this.#now, id, payload, client: this.#client }
    return run(this.#sender, scripts.update, this.#scriptKeys, args, { resend: 'undoes' })
  }

  /** The values of some settings; `null` for one that is not set, or too long. */
  async settings(names: readonly string[]): Promise<(string | null)[]> {
    const { config } = this.keys
    const sizes = await Promise.all(names.map((name) => this.#read('HSTRLEN', config, name)))
    const fit = names.filter((_, at) => asInteger(sizes[at]) <= SETTING_BYTES)
    if (fit.length === 0) return names.map(() => null)
    const values = asArray(await this.#read('HMGET', config, ...fit))
    return names.map((name) => asBytesOrNull(values[fit.indexOf(name)] ?? null)?.toString() ?? null)
  }

  async size(): Promise<number> {
    return asInteger(await this.#read('HLEN', this.keys.messages))
  }

  /** How many of these ids have a message. */
  async contains(ids: readonly Buffer[]): Promise<number> {
    let there = 0
    for (const page of pagesOf(ids, IDS)) {
      // one command each: a single one would return the messages
      const replies = await Promise.all(page.map((id) => this.#read('HEXISTS', this.keys.messages, id)))
      there += replies.filter(asFlag).length
    }
    return there
  }

  /** Ids of a schedule in the order of their times, from the index `from` on. */
  async idsOf(
    schedule: number | 'inFlight',
    times: readonly [least: string, most: string],
    from: number,
    most: number,
  ): Promise<Buffer[]> {
    const key = this.#keyOf(schedule)
    const members = await (from > MOST_WALKED
      ? this.#membersByRank(key, times, from, most)
      : this.#members('ZRANGEBYSCORE', key, ...times, 'LIMIT', String(from), String(most)))
    return schedule === 'inFlight' ? members.map((member) => member.subarray(1)) : members
  }

  /** As `idsOf`, by rank, which Redis finds at once, where it would otherwise walk over up to a million ids. */
  async #membersByRank(
    key: string,
    [least, latest]: readonly [least: string, most: string],
    from: number,
    most: number,
  ): Promise<Buffer[]> {
    const before = least.startsWith('(') ? least.slice(1) : `(${least}`
    const [earlier, until] = await Promise.all([
      least === '-inf' ? 0 : this.#read('ZCOUNT', key, '-inf', before).then(asInteger),
      latest === '+inf' ? Infinity : this.#read('ZCOUNT', key, '-inf', latest).then(asInteger),
    ])
    const [first, end] = [earlier + from, Math.min(earlier + from + most, until)]
    return first < end ? this.#members('ZRANGE', key, String(first), String(end - 1)) : []
  }

  async #members(command: string, ...args: string[]): Promise<Buffer[]> {
    return asArray(await this.#read(command, ...args)).map(asBytes)
  }

  /** How many ids of a schedule have times in this range. */
  async countOf(schedule: number | 'inFlight', times: readonly [least: string, most: string]): Promise<number> {
    return asInteger(await this.#read('ZCOUNT', this.#keyOf(schedule), ...times))
  }

  #keyOf(schedule: number | 'inFlight'): string {
    return schedule === 'inFlight' ? this.keys.inFlight : (this.keys.due[schedule] ?? '')
  }

  /** Removes all messages and the memory of duplicates; resolves with whether there was anything. */
  async clear(): Promise<boolean> {
    const args = { client: this.#client }
    return (await run(this.#sender, scripts.clear, this.#scriptKeys, args, { resend: 'undoes' })) > 0
  }

  async #ends(ids: readonly (string | Buffer)[], onlyCompleted: boolean): Promise<EndsReply> {
    const args = { nowMs: this.#now, onlyCompleted, ids: ids.slice(0, READS) }
    const reply = await run(this.#sender, scripts.ends, this.#scriptKeys, args, { resend: 'reads' })
    if (ids.length > 0 && reply.ends.length === 0) throw new InternalError('ends-reply', 'there is none')
    return reply
  }

  #get(ids: readonly Buffer[]): Promise<GetReply> {
    return run(this.#sender, scripts.get, this.#scriptKeys, { nowMs: this.#now, ids }, { resend: 'reads' })
  }

  #addArgs(messages: readonly NewMessage[], how: HowToAdd, durable: boolean) {
    const items = messages.flatMap(itemArgs)
    return { channel: this.keys.channel, nowMs: this.#now, ...how, durable, client: this.#client, items }
  }

  /** Sends a command, again if the connection breaks. */
  #read(command: string, ...args: readonly (string | Buffer)[]): Promise<unknown> {
    return this.#sender.call(command, args, { resend: 'reads' })
  }

  get #now(): number {
    return scriptTime(this.#settings)
  }
}

function assertOf(messages: readonly NewMessage[], { outcomes }: AddReply): void {
  if (outcomes.length !== messages.length) throw new InternalError('add-reply', 'it is not of these messages')
}

function scriptKeysOf(keys: ReliableKeys, dead: ReliableKeys): ScriptKeys {
  const { messages, deliveries, failures, config, once, inFlight, repeats, ticks, changes, completed } = keys
  const { completedAt, rate, groupOrder, groupTurns, groupWakes, groups, groupPauses, taskPauses, batches, batchesAt } =
    keys
  const [deadDue = ''] = dead.due
  return {
    ...{
      messages,
      deliveries,
      failures,
      config,
      once,
      inFlight,
      repeats,
      ticks,
      changes,
      completed,
      completedAt,
      rate,
    },
    ...dueKeysOf(keys.due),
    ...{ groupOrder, groupTurns, groupWakes, groups, groupPauses, taskPauses, batches, batchesAt },
    ...{ deadMessages: dead.messages, deadDeliveries: dead.deliveries, deadFailures: dead.failures, deadDue },
    ...{ deadConfig: dead.config, deadChanges: dead.changes },
    ...{ deadBatches: dead.batches, deadBatchesAt: dead.batchesAt, deadInFlight: dead.inFlight },
  }
}

/** The last message in the form that the scripts store until the batch has finished. */
function lastBytes(last: LastMessage | null): Buffer {
  if (last === null) return Buffer.alloc(0)
  const { id, priority, timeToLive, deliveryLimit, headers, payload } = last
  const name = Buffer.from(id)
  const head = `${priority},${timeToLive},${deliveryLimit},${headers.length},${name.length}\n`
  return Buffer.concat([Buffer.from(head), name, headers, payload])
}

function namesOf(claims: readonly Claim[]): (string | Buffer)[] {
  const names: (string | Buffer)[] = []
  for (const { member, delivery } of claims) names.push(member, delivery)
  return names
}

function withResults(claims: readonly Claim[], results: readonly (Buffer | null)[], from: number): (string | Buffer)[] {
  return claims.flatMap(({ member, delivery }, at) => {
    const result = results[from + at] ?? null
    return [member, delivery, result === null ? '' : Buffer.concat([HAS_RESULT, result])]
  })
}

/**
 * The replies of a script for claims: each call gets a page, and can answer for fewer claims if they are large. `bytesOf`: the further
 * bytes of the claim at an index.
 */
async function inPages<R>(
  claims: readonly Claim[],
  ask: (page: readonly Claim[], from: number) => Promise<readonly R[]>,
  bytesOf: (at: number) => number = () => 0,
): Promise<R[]> {
  const answers: R[] = []
  while (answers.length < claims.length) {
    const from = answers.length
    let [to, bytes] = [from, 0]
    do bytes += bytesOf(to++)
    while (to < claims.length && to - from < MOST_HANDLED && bytes + bytesOf(to) <= RESULT_BYTES)
    const some = await ask(claims.slice(from, to), from).catch(partly(from > 0))
    if (some.length === 0) throw new InternalError('claims-reply', 'there is none')
    answers.push(...some)
  }
  return answers
}
