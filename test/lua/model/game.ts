/** Two clients on two queues: one sequence of moves, the model that follows it, and where every message should be. */
import type { QueueKeys } from '../../../src/keys.js'
import { old, ordered, raw, unordered } from '../support.js'
import { IDLE, LEASE } from './draws.js'
import { Keyspace, parse, text } from './keyspace.js'
import type { Step } from './operation.js'
import { operations } from './operations.js'
import { contentsOf, type Outcome, type QueueContent } from './play.js'

/** Makes the next steps of a game; `false` when it makes no sense now, as cancelling before anything was offered. */
export type Move = readonly [name: string, make: (game: Game) => unknown]

export interface Message {
  /** Two characters, which are also its payload. */
  readonly name: string
  readonly entry: string
  /** The due times in the tickets: the one that came from the offer, and the newest. */
  readonly firstTicket: number
  newestTicket: number
}

/** The facts that the replies of a real Redis state. */
class Ledger {
  /** Due times as the clients got them. */
  readonly due = new Map<string, number>()
  /** Handed to a client: taken, cancelled or removed. */
  readonly gone: string[] = []
  /** Handed to a list before they were due, because a client asked for it. */
  readonly early = new Set<string>()
  /** The ticket that the last move found nothing for. */
  refused: { name: string; due: number } | null = null
  /** The entries of delivered messages that the doctor set aside, which are not the messages themselves. */
  readonly setAside = new Set<string>()
  /** Whether a copy was made: a message can be in two places then. */
  copied = false
}

interface Turn {
  readonly step: Step
  readonly expected: unknown
  readonly account: (reply: unknown, ledger: Ledger) => void
}

export class Game {
  readonly redis = new Keyspace()
  readonly moves: string[] = []
  readonly turns: Turn[] = []
  readonly offered: Message[] = []
  now = 1_000_000

  constructor(
    readonly layout: 'redisson' | 'compact',
    readonly queue: QueueKeys,
    readonly other: QueueKeys,
  ) {}

  get queues(): QueueKeys[] {
    return [this.queue, this.other]
  }

  play([name, make]: Move): boolean {
    this.moves.push(name)
    return make(this) !== false
  }

  /** Takes a step on the model; `account` writes down what its reply from a real Redis means. */
  step(step: Step, account: Turn['account'] = () => {}): void {
    this.turns.push({ step, expected: step.apply(this.redis), account })
  }

  offer(client: 'A' | 'B', delayMs: number): void {
    const name = `${client}${this.offered.length}`
    // B writes as Redisson before 3.21.1 did
    const listed = client === 'A' ? ordered : old
    const entry = this.layout === 'redisson' ? listed(name, name) : unordered(name, name, 5)
    const { queue, now: nowMs } = this
    const args = { channel: queue.channel, nowMs, ordered: this.layout === 'redisson' }
    const due = nowMs + delayMs
    this.offered.push({ name, entry: text(entry), firstTicket: due, newestTicket: due })
    // B offers by the script for many
    if (client === 'B') {
      const many = operations.offerMany.step(queue, {
        ...args,
        resent: false,
        delays: String(delayMs),
        entries: [entry],
      })
      this.step(many, (reply, ledger) => ledger.due.set(name, (reply as { now: number }).now + delayMs))
    } else {
      const one = operations.offer.step(queue, { ...args, delayMs, entry, undeliveredUntilMs: -1 })
      this.step(one, (reply, ledger) => ledger.due.set(name, reply as number))
    }
  }

  /** The message that a client offered last. */
  lastOf(client: 'A' | 'B'): Message | undefined {
    return this.offered.findLast(({ name }) => name.startsWith(client))
  }

  cancel(message: Message | undefined): boolean {
    if (message === undefined) return false
    const { name, firstTicket } = message
    this.step(
      operations.cancelOrReschedule.step(this.queue, this.#ticket(message, firstTicket, -1)),
      (reply, ledger) => {
        if (reply === 0) ledger.gone.push(name)
        else ledger.refused = { name, due: firstTicket }
      },
    )
    return true
  }

  reschedule(message: Message | undefined, delayMs: number): boolean {
    if (message === undefined) return false
    const { name, newestTicket } = message
    this.step(
      operations.cancelOrReschedule.step(this.queue, this.#ticket(message, newestTicket, delayMs)),
      (reply, ledger) => {
        if (reply === null) ledger.refused = { name, due: newestTicket }
        else ledger.due.set(name, reply as number)
      },
    )
    if (this.turns.at(-1)?.expected !== null) message.newestTicket = this.now + delayMs
    return true
  }

  transfer(options: { client: 'A' | 'B'; limit: number; announce: boolean }): void {
    const others = {
      leaseMs: LEASE,
      leastLeaseMs: 1,
      subscribersPerLeaseMs: 1,
      idleMs: IDLE,
      renew: false,
      buckets: true,
      bytes: 2 ** 20,
      largeHead: '',
      largeFirst: '',
    }
    const args = { nowMs: this.now, budgetUs: 60_000_000, ...others, ...options }
    this.step(operations.transfer.step(this.queue, { channel: this.queue.channel, ...args }))
  }

  #ticket(message: Message, due: number, delayMs: number) {
    return {
      channel: this.queue.channel,
      nowMs: this.now,
      due,
      prefix: raw(parse(message.entry)!.prefix),
      delayMs,
    }
  }

  /** The replies, the contents and the publications that the model expects of Redis. */
  expected(): { replies: unknown[]; contents: QueueContent[]; published: string[][] } {
    return {
      replies: this.turns.map(({ expected }) => expected),
      contents: contentsOf(this.redis, this.queues),
      published: this.queues.map(({ channel }) => this.redis.takePublished(channel)),
    }
  }

  /** The violations of invariants in Redis, whatever the model expects. */
  problems({ replies, contents }: Outcome, published: readonly string[][]): string[] {
    const ledger = new Ledger()
    for (const [at, { account }] of this.turns.entries()) {
      ledger.refused = null
      account(replies[at], ledger)
    }
    return [
      ...this.#misplaced(ledger, contents),
      ...this.#untruthful(ledger, contents),
      ...contents.flatMap((content, at) => [
        ...this.#disordered(content),
        ...this.#overslept(content, published[at]!.at(-1), this.queues[at]!.leader),
      ]),
    ]
  }

  /** Each message is in one place: pending, in a destination, or gone; and there not before its time. */
  #misplaced({ due, gone, early, setAside, copied }: Ledger, contents: readonly QueueContent[]): string[] {
    const pending = contents.flatMap(pendingIn).map(({ name }) => name)
    const delivered = contents.flatMap(({ destination }) => destination.holds)
    const places = [...pending, ...delivered, ...gone]
    const problems = contents
      .flatMap(({ quarantine }) => quarantine.holds)
      .filter((what) => !(what.startsWith('order-orphan ') && setAside.has(nameIn(what))))
      .map((what) => `in quarantine: ${what}`)
    for (const { name } of this.offered) {
      const count = places.filter((each) => each === name).length
      if (count === 0 || (count > 1 && !copied)) problems.push(`${name} is in ${count} places`)
    }
    for (const name of delivered)
      if (due.get(name)! > this.now && !early.has(name)) problems.push(`${name} was delivered early`)
    return problems
  }

  /** The clients got the true due times, and only tickets without an entry were refused. */
  #untruthful({ due, refused }: Ledger, contents: readonly QueueContent[]): string[] {
    const pending = contents.flatMap(pendingIn)
    const problems = pending
      .filter(({ name, score }) => due.get(name) !== score)
      .map(({ name, score }) => `${name} is due at ${score}, a client got ${due.get(name)}`)
    if (pendingIn(contents[0]!).some(({ name, score }) => name === refused?.name && score === refused.due))
      problems.push(`the ticket of ${refused!.name} was refused, but it is pending`)
    return problems
  }

  /** The order list holds what the schedule holds, in the order of the offers. */
  #disordered(content: QueueContent): string[] {
    const listed = content.order.holds.map(nameIn)
    const pending = pendingIn(content).map(({ name }) => name)
    const should =
      this.layout === 'compact' ? [] : this.offered.map(({ name }) => name).filter((name) => pending.includes(name))
    return listed.join() === should.join() ? [] : [`the order list holds ${listed.join()} instead of ${should.join()}`]
  }

  /** Whoever keeps the last announcement wakes up for the head, or when the leader's lease ends. */
  #overslept(content: QueueContent, announced: string | undefined, leader: string): string[] {
    const head = pendingIn(content)[0]
    if (
      head === undefined ||
      Number(announced ?? Infinity) <= Math.max(head.score, this.redis.leases.get(leader)?.until ?? 0)
    )
      return []
    return [`the head ${head.name} is due at ${head.score}, the last announcement was ${announced}`]
  }
}

function pendingIn({ timeouts }: QueueContent): { name: string; score: number }[] {
  return timeouts.holds.map((line) => {
    const [entry = '', score] = line.split(' at ')
    return { name: nameIn(entry), score: Number(score) }
  })
}

/** The name of a message from its entry, whose payload it is. */
export function nameIn(entry: string): string {
  return entry.slice(-2)
}
