import { randomUUID } from 'node:crypto'
import { eventually } from '../../support/events.js'
import { randomFrom } from '../../support/random.js'
import { Books, NOT_SENT, type Message, type Span, type Wrong } from './books.js'
import { GoneError, MemberProcess } from './member-process.js'
import { PREFIX, type Place } from './place.js'
import type { Program } from './program.js'
import type { Flow, Item, Job, Lying, Payload, Said } from './protocol.js'
import { digestOf } from './serve.js'
import type { SqlServer } from './sql.js'

/** How often a producer adds, and how many at most. */
const EVERY_MS = 25
const MOST_ITEMS = 4
const MOST_DELAY_MS = 1_500
const FAR_MS = 86_400_000
/** The messages of each queue, enough for a restore of two pages. */
const BACKLOG = 1_500
const SHARES = { far: 0.05, fail: 0.08, poison: 0.02, park: 0.02, cancelled: 0.12, reused: 0.15 } as const
/** What else happens each time that a producer adds. */
const REVISED = { updated: 0.25, rescheduled: 0.2, redriven: 0.03 } as const
/** The share of new due times that are soon. */
const SOON = 0.3
const SOON_MS = { min: 500, max: 2_500 }
const MOST_REDRIVEN = 3
/** The most additions of a message under its id until there is an answer. */
const ATTEMPTS = 6
const AGAIN_MS = 250
/** The time of load before a fault and after it. */
const LEAD_MS = 1_000
/** A restore that was killed is taken over when its lease of 15 s is over; adopting waits for 5 s. */
const DRAIN_MS = 90_000
/** One of this many checks of open messages asks for dead letters. */
const LOOKS = 40
const MOST_LOST = 5
const STOP_MS = 15_000
const CLOCKS_MS = 600_000
const POISON_LIMIT = 2
const LIMIT = 1_000

export interface BenchParams {
  readonly place: Place
  readonly sql: SqlServer
  readonly program: Program
  readonly seed: number
  readonly consumers?: number
  /** Stops looking as soon as something is wrong: a planted fault is found. */
  readonly drainMs?: number
}

export interface Result {
  readonly accepted: number
  readonly journalled: number
  readonly refused: number
  readonly unknown: number
  readonly cancelled: number
  readonly revised: number
  readonly reused: number
  readonly redriven: number
  readonly delivered: number
  readonly twice: number
  readonly seconds: number
  readonly errors: Readonly<Record<string, number>>
  readonly problems: readonly { readonly wrong: Wrong; readonly text: string }[]
}

/** Service processes with a journal, consumers and producers on one queue, and the books of every message. */
export class Bench {
  readonly place: Place
  readonly sql: SqlServer
  readonly random: () => number
  readonly members: readonly MemberProcess[]
  readonly consumers: readonly MemberProcess[]
  readonly queue = `${PREFIX}:${randomUUID().slice(0, 8)}`
  books = new Books()
  readonly #drainMs: number
  readonly #ending = new Set<Promise<void>>()
  readonly #shifts = new Map<MemberProcess, number>()
  #url = ''
  #errors: Record<string, number> = {}
  #numbers = 0
  #backlog = 0
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor({ place, sql, program, seed, consumers = 2, drainMs = DRAIN_MS }: BenchParams) {
    this.place = place
    this.sql = sql
    this.random = randomFrom(seed)
    this.#drainMs = drainMs
    const process = (name: string, script: string): MemberProcess =>
      new MemberProcess(name, script, (said, from) => this.#hear(said, from))
    // a SQLite file is open in one process
    const count = sql.kind === 'sqlite' ? 1 : 3
    this.members = Array.from({ length: count }, (_, at) => process(`member-${at + 1}`, program.member))
    this.consumers = Array.from({ length: consumers }, (_, at) => process(`consumer-${at + 1}`, program.consumer))
  }

  async start(): Promise<void> {
    this.#url = await this.sql.fresh()
    await this.members[0]?.start(this.#jobOf(this.members[0]))
    const others = [...this.members.slice(1), ...this.consumers]
    await Promise.all(others.map((process) => process.start(this.#jobOf(process))))
    await this.fillBacklog(BACKLOG)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    clearInterval(this.#timer)
    await Promise.all([...this.consumers, ...this.members].map((process) => process.stop(STOP_MS)))
    await Promise.all(this.#ending)
  }

  /** Load, the fault, the healing, everything handled to the end; and then what the books say. */
  async round(fault: () => Promise<void>): Promise<Result> {
    const startedAt = performance.now()
    const known = new Set(this.books.messages.values())
    this.books.newRound(await this.place.now())
    this.#errors = {}
    this.#produce(true)
    try {
      await this.pause(LEAD_MS)
      await fault()
      await this.place.healthy()
      await this.pause(LEAD_MS)
      await this.sql.revive?.()
    } finally {
      this.#produce(false)
    }
    await Promise.all(this.#ending)
    await this.#settle()
    const { books } = this
    if (books.problems.length === 0) books.agreed()
    const fresh = [...books.messages.values()].filter((message) => !known.has(message))
    const count = (which: (message: Message) => boolean): number => fresh.filter(which).length
    return {
      accepted: count(({ state }) => state === 'accepted'),
      journalled: count(({ outcome }) => outcome === 'journalled'),
      refused: count(({ state }) => state === 'refused'),
      unknown: count(({ state }) => state === 'unknown'),
      cancelled: count(({ cancel }) => cancel?.done === true),
      revised: books.revised,
      reused: count(({ isReused }) => isReused),
      redriven: books.redriven,
      delivered: fresh.reduce((sum, { deliveries }) => sum + deliveries.length, 0),
      twice: count(
        (message) => message.deliveries.filter(({ how, effect }) => how === 'done' && effect === true).length > 1,
      ),
      seconds: Math.round((performance.now() - startedAt) / 100) / 10,
      errors: this.#errors,
      problems: [...books.problems],
    }
  }

  /** Between two times in milliseconds: faults come at random moments. */
  pause(min: number, max = min): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, min + (max - min) * this.random()))
  }

  /** @throws GoneError none is there */
  oneMember(): MemberProcess {
    const ready = this.members.filter((member) => member.isReady)
    const member = ready[Math.floor(this.random() * ready.length)]
    if (member === undefined) throw new GoneError(NOT_SENT)
    return member
  }

  /** After a kill. */
  async revive(member: MemberProcess): Promise<void> {
    await member.start(this.#jobOf(member), this.#shifts.get(member) ?? 0)
  }

  /** Each member has another date. */
  async shiftClocks(on: boolean): Promise<void> {
    for (const member of this.members) {
      const shiftMs = on ? Math.round((this.random() * 2 - 1) * CLOCKS_MS) : 0
      this.#shifts.set(member, shiftMs)
      if (member.isReady) await member.order({ kind: 'date', shiftMs })
    }
  }

  /** Delays each page of a restore by this time, in the running members. */
  async slowRestores(pageMs: number): Promise<void> {
    const ready = this.members.filter((member) => member.isReady)
    await Promise.all(ready.map((member) => member.order({ kind: 'slow', pageMs }).catch(() => undefined)))
  }

  /** A restore by hand, in several members at once. */
  async restoreByHand(): Promise<void> {
    const span: Span = { from: Date.now(), to: Infinity }
    this.books.restores.push(span)
    await Promise.all(this.members.map((member) => member.order({ kind: 'restore' }).catch(() => undefined)))
    span.to = Date.now()
  }

  /** Until there are so many messages of tomorrow: a restore reads them in pages of 1,000, two at a time. */
  async fillBacklog(count: number): Promise<void> {
    const missing = Math.max(0, count - this.#backlog)
    this.#backlog += missing
    const items = Array.from({ length: missing }, () => ({ ...this.#draw(), ...usual(this.#numbers), delay: FAR_MS }))
    for (let from = 0; from < items.length; from += 500) await this.#add(items.slice(from, from + 500))
  }

  /** Many messages that are cancelled soon after they are accepted. */
  addAndCancel(count: number): void {
    const each = async (): Promise<void> => {
      const messages = await this.#add([this.#drawLater(2_500, 4_000)])
      await this.pause(0, 300)
      await Promise.all(messages.map((message) => this.#cancel(message)))
    }
    for (let i = 0; i < count; i++) this.#follow(each())
  }

  /** Many messages that are due at about the same time. */
  async addCrowd(count: number, min: number, max: number): Promise<void> {
    await this.#add(Array.from({ length: count }, () => this.#drawLater(min, max)))
  }

  /** Many messages that are due in a while; the result cancels them. */
  async addForCancel(count: number): Promise<() => Promise<void>> {
    const messages = await this.#add(Array.from({ length: count }, () => this.#drawLater(7_000, 9_000)))
    return async () => void (await Promise.all(messages.map((message) => this.#cancel(message))))
  }

  /** Many large messages. */
  async addBulk(count: number, bytes: number): Promise<void> {
    await this.#add(
      Array.from({ length: count }, () => {
        const item = { ...this.#drawLater(2_000, 4_000), ...usual(this.#numbers) }
        return { ...item, payload: { ...item.payload, text: 'x'.repeat(bytes) } }
      }),
    )
  }

  /** Whether a member said an error of this kind in this round. */
  hasSeen(code: RegExp): boolean {
    return Object.keys(this.#errors).some((each) => code.test(each))
  }

  countError(code: string): void {
    this.#errors[code] = (this.#errors[code] ?? 0) + 1
  }

  #produce(on: boolean): void {
    clearInterval(this.#timer)
    if (!on) return
    this.#timer = setInterval(() => {
      const count = 1 + Math.floor(this.random() ** 3 * MOST_ITEMS)
      this.#follow(this.#produceSome(Array.from({ length: count }, () => this.#again(this.#draw()))))
      if (this.random() < REVISED.updated) this.#follow(this.#update())
      if (this.random() < REVISED.rescheduled) this.#follow(this.#reschedule())
      if (this.random() < REVISED.redriven) this.#follow(this.#redrive())
    }, EVERY_MS)
  }

  /** Some messages have the ids of earlier ones. */
  #again(item: Item): Item {
    if (item.payload.kind !== 'usual' || this.random() > SHARES.reused) return item
    return { ...item, id: this.books.finalId(this.random) ?? item.id }
  }

  async #update(): Promise<void> {
    const message = this.books.oneToRevise(this.random)
    if (message === undefined) return
    const payload = { ...message.item.payload, text: `revision ${++this.#numbers}` }
    const answered = this.books.updates(message, digestOf(payload))
    answered(
      await this.#ask((member) => member.order({ kind: 'update', id: message.item.id, payload })).catch(() => GONE),
    )
  }

  async #reschedule(): Promise<void> {
    const now = await this.place.now().catch(() => undefined)
    const message = this.books.oneToRevise(this.random)
    if (message === undefined || now === undefined) return
    const { min, max } = SOON_MS
    const isSoon = this.random() < SOON
    const delay = isSoon ? min + this.random() * (max - min) : FAR_MS * (1 + this.random())
    const dueAt = Math.round(now + delay)
    const answered = this.books.reschedules(message, dueAt, isSoon)
    if (isSoon) this.#backlog--
    answered(
      await this.#ask((member) => member.order({ kind: 'reschedule', id: message.item.id, dueAt })).catch(() => GONE),
    )
  }

  async #redrive(): Promise<void> {
    const count = 1 + Math.floor(this.random() * MOST_REDRIVEN)
    const answered = this.books.redrives()
    answered(await this.#ask((member) => member.order({ kind: 'redrive', count })).catch(() => GONE))
  }

  async #produceSome(items: readonly Item[]): Promise<void> {
    const added = await this.#add(items)
    await Promise.all(
      added.map(async (message) => {
        const { delay, payload } = message.item
        if (delay > MOST_DELAY_MS || payload.kind !== 'usual' || this.random() > SHARES.cancelled) return
        await this.pause(0, delay * 1.2)
        await this.#cancel(message)
      }),
    )
  }

  /** Adds messages as an application that must not lose any; returns the accepted ones. */
  async #add(items: readonly Item[]): Promise<Message[]> {
    const messages = items.map((item) => this.books.begin(item, digestOf(item.payload)))
    let open: readonly Message[] = messages
    for (let attempt = 1; attempt <= ATTEMPTS && open.length > 0 && !this.#isOver; attempt++) {
      if (attempt > 1) await this.pause(AGAIN_MS)
      const askedAt = Date.now()
      const answers = await this.#ask((member) =>
        member.order({ kind: 'add', items: open.map(({ item }) => item) }),
      ).catch((error: unknown) => open.map(() => ({ error: reasonOf(error) })))
      open = open.filter((message, at) => {
        const answer = answers[at] ?? { error: 'there is no answer' }
        if ('error' in answer) this.countError(`add ${answer.error}`)
        return this.books.answered(message, answer, askedAt)
      })
    }
    for (const message of messages) message.isPending = false
    return messages.filter(({ state }) => state === 'accepted')
  }

  async #ask<T>(order: (member: MemberProcess) => Promise<T>): Promise<T> {
    return order(this.oneMember())
  }

  async #cancel(message: Message): Promise<void> {
    const from = Date.now()
    message.cancel = { from, to: Infinity, done: null }
    const { id } = message.item
    const answer = await this.#ask((member) => member.order({ kind: 'cancel', id })).catch(() => ({ error: 'gone' }))
    if ('error' in answer) this.countError(`cancel ${answer.error}`)
    const to = Date.now()
    // the client repeats a cancel whose answer was lost with Redis: a Redis that has forgotten the message then says false
    const isCut = this.books.losses.some((loss) => loss.from <= to && loss.to >= from)
    message.cancel = { from, to, done: 'done' in answer && (answer.done || !isCut) ? answer.done : null }
  }

  #draw(): Item {
    const n = ++this.#numbers
    const dice = this.random()
    const { poison, park, fail, far } = SHARES
    const kinds = [
      ['poison', poison],
      ['park', park],
      ['fail', fail],
    ] as const
    let sum = 0
    const kind = kinds.find(([, share]) => dice < (sum += share))?.[0] ?? 'usual'
    const isFar = kind === 'usual' && dice > 1 - far
    return {
      id: `${n}-${this.random() < 0.5 ? 'A' : 'a'}`,
      payload: { n, kind, text: 'é'.repeat(Math.floor(this.random() ** 4 * 800)) },
      delay: isFar ? FAR_MS : Math.floor(this.random() * MOST_DELAY_MS),
      priority: Math.floor(this.random() * 10),
      headers: this.random() < 0.3 ? { trace: String(n) } : {},
      deliveryLimit: kind === 'poison' ? POISON_LIMIT : LIMIT,
    }
  }

  #drawLater(min: number, max: number): Item {
    return { ...this.#draw(), delay: min + Math.floor(this.random() * (max - min)) }
  }

  /** Waits until each due message was handled, no call is under way, and SQL and Redis agree. */
  async #settle(): Promise<void> {
    const { books } = this
    if (!(await this.#allHandled())) return
    await this.#agreement()
    let flows = await this.#flows()
    // SQL decides whether a message of tomorrow that was rescheduled just before a loss is due soon
    if (books.open(flows).length > 0) {
      if (!(await this.#allHandled(flows))) return
      await this.#agreement()
      flows = await this.#flows()
    }
    books.judge(flows)
    await this.#compare('queue', flows)
    await this.#compare('dead letters', flows)
    const letters = books.unseenLetters()
    if (letters !== undefined) books.judgeRedriven(await this.#flowsOf(letters))
  }

  #explain({ item: { id } }: Message): Promise<string> {
    return this.#ask((member) => member.order({ kind: 'explain', id })).catch(String)
  }

  /** The changes in SQL of the messages that came again or were changed. */
  #flows(): Promise<Map<string, Flow>> {
    return this.#flowsOf([...new Set([...this.books.repeated(), ...this.books.revisedIds()])])
  }

  async #flowsOf(ids: readonly string[]): Promise<Map<string, Flow>> {
    const found = await this.oneMember().order({ kind: 'flow', ids })
    return new Map(ids.map((id, at) => [id, found[at] ?? []]))
  }

  /** Resolves with whether nothing is wrong. */
  async #allHandled(flows?: ReadonlyMap<string, Flow>): Promise<boolean> {
    const { books } = this
    const until = Date.now() + this.#drainMs
    for (let look = 1; books.open(flows).length > 0 && Date.now() < until; look++) {
      await this.pause(50)
      if (look % LOOKS === 0) await this.#findDead()
    }
    for (const message of books.open(flows).slice(0, MOST_LOST))
      books.lost(message, 'it was accepted, and not handled', await this.#explain(message))
    return books.problems.length === 0
  }

  async #findDead(): Promise<void> {
    const messages = this.books.perhapsDead()
    if (messages.length === 0) return
    const ids = messages.map(({ item }) => item.id)
    const found = await this.#ask((member) => member.order({ kind: 'lying', ids, dead: true })).catch(() => [])
    messages.forEach((message, at) => (message.isDead = (found[at] ?? null) !== null))
  }

  async #agreement(): Promise<void> {
    let differences: readonly string[]
    const until = Date.now() + this.#drainMs
    do {
      const from = Date.now()
      differences = await this.#ask((member) => member.order({ kind: 'verify' })).catch((error: unknown) => [
        String(error),
      ])
      if (differences.length === 0) {
        // its process may have been killed before it could say so
        for (const loss of this.books.losses) loss.restoredAt = Math.min(loss.restoredAt, from)
        return
      }
      await this.pause(500)
    } while (Date.now() < until)
    for (const text of differences) this.books.differs(text)
  }

  async #compare(where: 'queue' | 'dead letters', flows: ReadonlyMap<string, Flow>): Promise<void> {
    const { books } = this
    let messages: Message[] = []
    let found: readonly (Lying | null)[] = []
    const ask = async (): Promise<void> => {
      messages = where === 'queue' ? books.far(flows) : books.dead()
      const ids = messages.map(({ item }) => item.id)
      found = await this.oneMember().order({ kind: 'lying', ids, dead: where === 'dead letters' })
    }
    // what was not answered for dies when its visibility ends
    await eventually(
      async () => {
        await ask()
        if (found.includes(null)) throw new Error('some are missing')
      },
      30_000,
      300,
    ).catch(() => undefined)
    const missing = books.compare(messages, found, where, flows)
    for (const message of missing.slice(0, MOST_LOST)) {
      const why = await this.#explain(message)
      books.lost(message, `it is not in the ${where}`, why)
    }
    if (missing.length > MOST_LOST) books.other(`and ${missing.length - MOST_LOST} more are not in the ${where}`)
  }

  #hear(said: Said, from: MemberProcess): void {
    const { books } = this
    switch (said.said) {
      case 'claimed':
        return books.claimed(said)
      case 'answered':
        return books.said(said)
      case 'error':
        return this.countError(`${from.name.replace(/-\d+$/, '')} ${said.code}`)
      case 'adopted':
        return void books.adoptions.push(Date.now())
      case 'restored':
        if (said.queue !== this.queue) return
        for (const loss of books.losses)
          if (loss.to < Infinity && loss.from > books.agreedAt) loss.restoredAt = Date.now()
        return
      case 'forgotten':
        if (said.queue !== this.queue) return
        for (const loss of books.losses) if (loss.from > books.agreedAt) loss.seenAt = Math.min(loss.seenAt, Date.now())
        return
    }
  }

  #jobOf(process: MemberProcess): Job {
    const { name } = process
    const isWorker = process === this.consumers[1]
    return { name: `${this.queue}/${name}`, client: this.place.client, queue: this.queue, url: this.#url, isWorker }
  }

  #follow(promise: Promise<void>): void {
    const followed = promise
      .catch((error: unknown) => this.books.other(String(error)))
      .finally(() => this.#ending.delete(followed))
    this.#ending.add(followed)
  }
}

const GONE = { error: 'gone' } as const

function reasonOf(error: unknown): string {
  if (!(error instanceof GoneError)) return String(error)
  return error.message === NOT_SENT ? NOT_SENT : 'gone'
}

function usual(n: number): { payload: Payload; deliveryLimit: number } {
  return { payload: { n, kind: 'usual', text: `backlog ${n}` }, deliveryLimit: LIMIT }
}
