import { dueKeysOf } from './due-keys.js'
import { randomBytes } from 'node:crypto'
import { ChangesBehindError, ConnectionError, InternalError } from '../errors.js'
import { PRIORITIES, reliableNameOfKey, type ReliableKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { IDLE_MS } from './lease.js'
import { pagesOf } from './pages.js'
import { asPollReply } from './poll-reply.js'
import { asArray, asBytes, asBytesOrNull, asFlag, asInteger } from './replies.js'
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

/** How messages are added. */
export interface HowToAdd {
  readonly existing: 'keep' | 'replace' | 'postpone'
  /** Whether an earlier attempt may have been carried out. */
  readonly resent: boolean
  /** Empty for none. */
  readonly batch: string
}

/** The last message of a batch: checked and encoded, each option as the script takes it. */
export type LastMessage = Pick<NewMessage, 'id' | 'priority' | 'timeToLive' | 'deliveryLimit' | 'headers' | 'payload'>

/** How messages are claimed. */
export interface HowToHold {
  /** `AS_SET` is what the queue says. */
  readonly visibilityMs: number
  /** The messages are prefetched: each counts as an attempt only from when it is extended as begun. */
  readonly beforehand: boolean
}

/** What becomes of messages that were not handled. */
export interface GiveBack {
  readonly how: 'failed' | 'rejected' | 'released'
  readonly delayMs: number
  /** One line. */
  readonly reason: string
}

/** Which messages are moved. */
export interface HowToMove {
  /** Without it, the first `count`. */
  readonly ids?: readonly Buffer[] | undefined
  readonly count: number
  readonly priority: number
  /** Whether the messages are the dead letters of the target. */
  readonly isRedriven: boolean
}

/** A message as it is stored. */
export interface StoredMessage extends MessageReply {
  readonly id: Buffer
}

/** For an argument: as the queue's configuration says, or as the message has it. */
export const AS_SET = -1
/** A script's answer for a time beyond 2^53-1. */
export const TOO_LATE = -3
/** The answer of `giveBack` for a message that the dead letters could not take. */
export const NO_DEAD_LETTER = 3

/** How many messages one script acknowledges, extends or gives back, and how many one call can poll. */
export const MOST_HANDLED = 1_000
/** How many ids are sent together. */
const IDS = 500
/** How many messages one script reads. */
const READS = 100
/** Over so many ids Redis walks to where a page begins, in some 0.2 ms. */
const MOST_WALKED = 10_000
/** One poll hands out for about this long, so that other clients' commands wait no longer. */
const POLL_BUDGET_US = 2_000
const TOKEN_BYTES = 8
/** No setting is longer. */
const SETTING_BYTES = 100
const EPOCH_BYTES = 12
/** The scripts' answers where the groups have left too many changes unread. */
const BEHIND = -6

/** Of the results that one script writes, but for the first. */
const RESULT_BYTES = 1_048_576
/** What the script gets before a result, so that an empty one differs from none. */
const HAS_RESULT = Buffer.from('1')

const durableAdd = waitedFor(scripts.add)

/** All keys of a queue by the names that the scripts have for them. */
type ScriptKeys = KeysOf<(typeof scripts.add | typeof scripts.poll | typeof scripts.acknowledge)['source']>

/** What Redis has of one reliable queue: a method for each script and command, with their keys, limits and replies. */
export class ReliableStore {
  readonly keys: ReliableKeys
  readonly repeats: RepeatStore
  readonly #sender: Sender
  readonly #settings: Settings
  readonly #deadChannel: string
  readonly #scriptKeys: ScriptKeys
  readonly #client: string

  /** `dead`: of the queue that gets the dead letters; `client`: the name by which the change stream knows the caller. */
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
  }

  /** What became of each message, as the script says it. Sent once; the caller knows when it may be sent again. */
  async add(messages: readonly NewMessage[], how: HowToAdd): Promise<AddReply> {
    const reply = await run(this.#sender, scripts.add, this.#scriptKeys, this.#addArgs(messages, how, false))
    assertOf(messages, reply)
    return reply
  }

  /** The same through a sender that waits until the writes are durable. */
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
   * Puts messages back as they were; resolves with what became of each, see the script. Sent once: what a lost reply
   * restored, a consumer can have handled by the time it is sent again.
   */
  restore(messages: readonly RestoredMessage[], { known, deadLetters }: HowToRestore): Promise<number[]> {
    const items = messages.flatMap((message) => restoreArgs(message, deadLetters))
    const args = { channel: this.keys.channel, client: this.#client, known, items }
    return run(this.#sender, scripts.restore, this.#scriptKeys, args)
  }

  /** Hands out visible messages. Sent again when the connection breaks: what a lost reply held is redelivered when its visibility ends. */
  poll(count: number, { visibilityMs, beforehand }: HowToHold, announce: boolean): Promise<PollReply> {
    const sentAt = performance.now()
    return run(
      this.#sender,
      { source: scripts.poll.source, decode: (reply) => asPollReply(reply, sentAt) },
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
      { idempotent: true },
    )
  }

  /** For each message whether it was the caller's. `results`: one for each message, `null` for none, kept where the queue keeps completed ones. */
  acknowledge(claims: readonly Claim[], results?: readonly (Buffer | null)[]): Promise<boolean[]> {
    const acknowledge = (some: readonly Claim[], from: number): Promise<readonly boolean[]> =>
      run(this.#sender, scripts.acknowledge, this.#scriptKeys, {
        nowMs: this.#now,
        client: this.#client,
        withResults: results !== undefined,
        handled: results === undefined ? namesOf(some) : withResults(some, results, from),
      })
    return inPages(
      claims,
      async (page, from) => {
        const answers = [...(await acknowledge(page, from))]
        // fewer than asked for where they are large
        while (answers.length < page.length) {
          const done = answers.length
          const some = await acknowledge(page.slice(done), from + done).catch(partly(true))
          if (some.length === 0) throw new InternalError('acknowledge-reply', 'there is none')
          answers.push(...some)
        }
        return answers
      },
      (at) => results?.[at]?.length ?? 0,
    )
  }

  /** How the messages of some ids have ended, as many as the script answers for, and whether the queue keeps completed ones. */
  ends(ids: readonly string[]): Promise<EndsReply> {
    return this.#ends(ids, false)
  }

  /** What is kept of completed messages of some ids, whatever else there is of these; as many as the script answers for. */
  async completed(ids: readonly string[]): Promise<readonly EndReply[]> {
    return (await this.#ends(ids, true)).ends
  }

  /** The counts of some batches; `null` where there is none of the name. */
  batches(names: readonly string[]): Promise<(BatchReply | null)[]> {
    return run(this.#sender, scripts.batches, this.#scriptKeys, { names: names.slice(0, READS) }, { idempotent: true })
  }

  /** Closes a batch; resolves with its counts, or with `null` where its last message is too large. Closing it again changes nothing. */
  closeBatch(name: string, last: LastMessage | null): Promise<BatchReply | null> {
    const size = last?.payload.length ?? 0
    const args = { nowMs: this.#now, client: this.#client, name, last: lastBytes(last), size }
    return run(this.#sender, scripts.closeBatch, this.#scriptKeys, args, { idempotent: true })
  }

  /** The ids of completed messages, the last ones first. */
  async completedIds(from: number, most: number): Promise<Buffer[]> {
    const reply = await this.#callIdempotent('ZREVRANGE', this.keys.completedAt, String(from), String(from + most - 1))
    return asArray(reply).map(asBytes)
  }

  /** For each message what the script says: 0 where it was not the caller's. `TOO_LATE` alone when the time is. */
  giveBack(claims: readonly Claim[], how: GiveBack): Promise<number[]> {
    const { channel } = this.keys
    const giveBack = (some: readonly Claim[]): Promise<number[]> =>
      run(this.#sender, scripts.negativeAcknowledge, this.#scriptKeys, {
        channel,
        deadChannel: this.#deadChannel,
        nowMs: this.#now,
        ...how,
        client: this.#client,
        handled: namesOf(some),
      })
    return inPages(claims, async (page) => {
      const results: number[] = []
      // fewer than asked for where they are large
      while (results.length < page.length) {
        const some = await giveBack(page.slice(results.length)).catch(partly(results.length > 0))
        if (some.length === 0) throw new InternalError('give-back-reply', 'there is none')
        if (some[0] === TOO_LATE) return some
        results.push(...some)
      }
      return results
    })
  }

  /**
   * For each message when its visibility ends now; `null` where it was not the caller's. The first `unbegun` of them are not being handled yet;
   * the others count as attempts from now on.
   */
  extend(claims: readonly Claim[], visibilityMs: number, unbegun: number): Promise<(number | null)[]> {
    const { channel } = this.keys
    return inPages(claims, (page, from) =>
      run(
        this.#sender,
        scripts.extend,
        this.#scriptKeys,
        { channel, nowMs: this.#now, visibilityMs, unbegun: Math.max(0, unbegun - from), handled: namesOf(page) },
        { idempotent: true },
      ),
    )
  }

  /** When the message's visibility ends now; `null` where it was not the caller's. `visibilityMs`: `null` leaves that as it is. */
  progress({ member, delivery }: Claim, progress: Buffer, visibilityMs: number | null): Promise<number | null> {
    const visibility = visibilityMs === null ? '' : String(visibilityMs)
    const holder = { member: typeof member === 'string' ? Buffer.from(member) : member, delivery, client: this.#client }
    const args = { channel: this.keys.channel, nowMs: this.#now, visibilityMs: visibility, progress, ...holder }
    return run(this.#sender, scripts.progress, this.#scriptKeys, args, { idempotent: true })
  }

  /** The messages of some ids, page by page with the time at which they were read; `null` for those that are not there. */
  async *get(ids: readonly Buffer[]): AsyncGenerator<{ now: number; messages: (StoredMessage | null)[] }, void> {
    for (let from = 0; from < ids.length;) {
      const page = ids.slice(from, from + READS)
      const { now, messages } = await this.#get(page)
      yield { now, messages: messages.map((message, at) => message && { ...message, id: page[at] as Buffer }) }
      from += messages.length
    }
  }

  /** The clock that decides when something becomes visible, epoch milliseconds. */
  async now(): Promise<number> {
    return (await this.#get([])).now
  }

  count(): Promise<CountReply> {
    return run(this.#sender, scripts.count, this.#scriptKeys, { nowMs: this.#now }, { idempotent: true })
  }

  /** Names and values in turn. Resolves with whether anything was changed. */
  configure(settings: readonly string[], { ifAbsent }: { readonly ifAbsent: boolean }): Promise<boolean> {
    const { channel } = this.keys
    const epoch = randomBytes(EPOCH_BYTES).toString('base64url')
    return run(this.#sender, scripts.configure, this.#scriptKeys, { channel, ifAbsent, epoch, settings })
  }

  /** Moves messages that no consumer has to another queue; resolves with how many. */
  async moveTo(target: ReliableKeys, { ids, count, priority, isRedriven }: HowToMove): Promise<number> {
    const { messages, deliveries, failures, due, config, changes, completed, completedAt } = this.keys
    const { groupOrder, groupTurns, groupWakes, groups, inFlight } = this.keys
    const { batches, batchesAt } = this.keys
    const grouped = { due10: due[PRIORITIES] ?? '', groupOrder, groupTurns, groupWakes, groups, inFlight }
    const targets = {
      targetMessages: target.messages,
      targetDue: target.due[priority] ?? '',
      targetConfig: target.config,
      targetChanges: target.changes,
      targetDue10: target.due[PRIORITIES] ?? '',
      targetGroupOrder: target.groupOrder,
      targetGroupTurns: target.groupTurns,
      targetGroupWakes: target.groupWakes,
      targetGroups: target.groups,
      targetInFlight: target.inFlight,
    }
    const own = { messages, deliveries, failures, due: due[priority] ?? '', config, changes, completed, completedAt }
    const keys = { ...own, ...grouped, batches, batchesAt, ...targets }
    const targetName = JSON.stringify(reliableNameOfKey(target.messages) ?? '')
    const move = async (some: readonly Buffer[], most: number) => {
      const known = { targetChannel: target.channel, client: this.#client, targetName, priority, isRedriven }
      const args = { ...known, nowMs: this.#now, count: most, ids: some }
      const reply = await run(this.#sender, scripts.move, keys, args)
      if (reply.moved === BEHIND) throw new ChangesBehindError()
      return reply
    }
    let moved = 0
    if (ids !== undefined) {
      for (let from = 0; from < ids.length;) {
        const page = ids.slice(from, from + IDS)
        const reply = await move(page, count).catch(partly(moved > 0))
        if (reply.rest >= page.length) throw new InternalError('move-reply', 'it moved none')
        moved += reply.moved
        from += page.length - reply.rest
      }
      return moved
    }
    for (;;) {
      const reply = await move([], count - moved).catch(partly(moved > 0))
      moved += reply.moved
      // behind what is no message there may be some, and behind what is large
      if ((reply.gone === 0 && reply.rest === 0) || moved >= count) return moved
    }
  }

  /** Removes messages; yields the ids of those that were there, page by page. */
  async *remove(ids: readonly string[], { alsoHeld }: { readonly alsoHeld: boolean }): AsyncGenerator<string[], void> {
    let isPartly = false
    for (let from = 0; from < ids.length;) {
      const page = ids.slice(from, from + IDS)
      const args = { nowMs: this.#now, alsoHeld, client: this.#client, ids: page }
      const removing = run(this.#sender, scripts.remove, this.#scriptKeys, args)
      const removed: readonly boolean[] = await removing.catch(partly(isPartly))
      if (removed.length === 0) throw new InternalError('remove-reply', 'there is none')
      isPartly ||= removed.includes(true)
      from += removed.length // fewer than asked for where they are large
      yield page.filter((_, at) => removed[at])
    }
  }

  /** When the message becomes visible now; `null` where there is none or a consumer has it. */
  reschedule(id: Buffer, when: string, priority: number): Promise<number | null> {
    const args = { channel: this.keys.channel, nowMs: this.#now, id, when, priority, client: this.#client }
    return run(this.#sender, scripts.reschedule, this.#scriptKeys, args)
  }

  /** 1 when the message has this payload now, 0 where there is none or a consumer has it, less when the payload is too large. */
  update(id: Buffer, payload: Buffer): Promise<number> {
    const args = { nowMs: this.#now, id, payload, client: this.#client }
    return run(this.#sender, scripts.update, this.#scriptKeys, args, { idempotent: true })
  }

  /** The values of some settings; `null` for one that is not set, or longer than any of them. */
  async settings(names: readonly string[]): Promise<(string | null)[]> {
    const { config } = this.keys
    const sizes = await Promise.all(names.map((name) => this.#callIdempotent('HSTRLEN', config, name)))
    const fit = names.filter((_, at) => asInteger(sizes[at]) <= SETTING_BYTES)
    if (fit.length === 0) return names.map(() => null)
    const values = asArray(await this.#callIdempotent('HMGET', config, ...fit))
    return names.map((name) => asBytesOrNull(values[fit.indexOf(name)] ?? null)?.toString() ?? null)
  }

  async size(): Promise<number> {
    return asInteger(await this.#callIdempotent('HLEN', this.keys.messages))
  }

  /** How many of some ids are there. */
  async contains(ids: readonly Buffer[]): Promise<number> {
    let there = 0
    for (const page of pagesOf(ids, IDS)) {
      // one command each: one for all would answer with the messages
      const replies = await Promise.all(page.map((id) => this.#callIdempotent('HEXISTS', this.keys.messages, id)))
      there += replies.filter(asFlag).length
    }
    return there
  }

  /** Some ids of a schedule in the order of their times, from the `from`th on. */
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

  /** The same where Redis would walk over a million others first, one by one: it finds a rank at once. */
  async #membersByRank(
    key: string,
    [least, latest]: readonly [least: string, most: string],
    from: number,
    most: number,
  ): Promise<Buffer[]> {
    const before = least.startsWith('(') ? least.slice(1) : `(${least}`
    const [earlier, until] = await Promise.all([
      least === '-inf' ? 0 : this.#callIdempotent('ZCOUNT', key, '-inf', before).then(asInteger),
      latest === '+inf' ? Infinity : this.#callIdempotent('ZCOUNT', key, '-inf', latest).then(asInteger),
    ])
    const [first, end] = [earlier + from, Math.min(earlier + from + most, until)]
    return first < end ? this.#members('ZRANGE', key, String(first), String(end - 1)) : []
  }

  async #members(command: string, ...args: string[]): Promise<Buffer[]> {
    return asArray(await this.#callIdempotent(command, ...args)).map(asBytes)
  }

  /** How many ids of a schedule have such times. */
  async countOf(schedule: number | 'inFlight', times: readonly [least: string, most: string]): Promise<number> {
    return asInteger(await this.#callIdempotent('ZCOUNT', this.#keyOf(schedule), ...times))
  }

  #keyOf(schedule: number | 'inFlight'): string {
    return schedule === 'inFlight' ? this.keys.inFlight : (this.keys.due[schedule] ?? '')
  }

  /** Removes all messages and what is known of duplicates; resolves with whether there was anything. */
  async clear(): Promise<boolean> {
    const args = { client: this.#client }
    return (await run(this.#sender, scripts.clear, this.#scriptKeys, args, { idempotent: true })) > 0
  }

  async #ends(ids: readonly string[], onlyCompleted: boolean): Promise<EndsReply> {
    const args = { nowMs: this.#now, onlyCompleted, ids: ids.slice(0, READS) }
    const reply = await run(this.#sender, scripts.ends, this.#scriptKeys, args, { idempotent: true })
    if (ids.length > 0 && reply.ends.length === 0) throw new InternalError('ends-reply', 'there is none')
    return reply
  }

  #get(ids: readonly Buffer[]): Promise<GetReply> {
    return run(this.#sender, scripts.get, this.#scriptKeys, { nowMs: this.#now, ids }, { idempotent: true })
  }

  #addArgs(messages: readonly NewMessage[], how: HowToAdd, durable: boolean) {
    const items = messages.flatMap(itemArgs)
    return { channel: this.keys.channel, nowMs: this.#now, ...how, durable, client: this.#client, items }
  }

  /** A command that the client sends again when the connection breaks. */
  #callIdempotent(command: string, ...args: readonly (string | Buffer)[]): Promise<unknown> {
    return this.#sender.call(command, args, { idempotent: true })
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
  const { completedAt, rate, groupOrder, groupTurns, groupWakes, groups, groupPauses, batches, batchesAt } = keys
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
    ...{ groupOrder, groupTurns, groupWakes, groups, groupPauses, batches, batchesAt },
    ...{ deadMessages: dead.messages, deadDeliveries: dead.deliveries, deadFailures: dead.failures, deadDue },
    ...{ deadConfig: dead.config, deadChanges: dead.changes },
    ...{ deadBatches: dead.batches, deadBatchesAt: dead.batchesAt, deadInFlight: dead.inFlight },
  }
}

/** As the scripts keep it until the batch has finished. */
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

/** `bytesOf`: what goes with a claim of an index. */
async function inPages<R>(
  claims: readonly Claim[],
  page: (claims: readonly Claim[], from: number) => Promise<readonly R[]>,
  bytesOf: (at: number) => number = () => 0,
): Promise<R[]> {
  const results: R[] = []
  for (let from = 0, to = 0; from < claims.length; from = to) {
    let bytes = 0
    do bytes += bytesOf(to++)
    while (to < claims.length && to - from < MOST_HANDLED && bytes + bytesOf(to) <= RESULT_BYTES)
    results.push(...(await page(claims.slice(from, to), from).catch(partly(from > 0))))
  }
  return results
}

/** `isPartly`: of earlier pages of the same call something was carried out, whatever became of this one. */
function partly(isPartly: boolean): (error: unknown) => never {
  return (error) => {
    if (!isPartly || !(error instanceof ConnectionError)) throw error
    throw new ConnectionError(error.message, 'unknown', { cause: error })
  }
}
