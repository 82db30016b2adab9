import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeKey } from '../../../src/server/api/api-keys.js'
import { freePort, hasNginx, Nginx } from '../../../src/server/test/support/nginx.js'
import { eventually } from '../../support/events.js'
import { Lag, allowedFor } from '../../support/lag.js'
import { randomFrom } from '../../support/random.js'
import { SentinelPlace, SinglePlace, type Place } from '../journal/place.js'
import { startSql, type Kind, type SqlServer } from '../journal/sql.js'
import { Books, isFar, type Problem } from './books.js'
import { Instance } from './instance.js'
import { MasterLine } from './master-line.js'
import { hooksOf, VISIBILITY_MS } from './messages.js'
import type { HttpProgram } from './program.js'
import { Receiver } from './receiver.js'
import { RestoreWatch } from './restore-watch.js'
import { Traffic } from './traffic.js'

/** Log lines, without the greeting. */
function errorsOf(output: string): string {
  const lines = output.split('\n').filter((line) => line.startsWith('{'))
  return lines
    .map((line) => line.slice(0, 500))
    .slice(-5)
    .join('\n')
}

/** The time of load before a fault and after it. */
const LEAD_MS = 1_000
/** A restore that was killed is taken over when its lease of 15 s is over; what no instance could add is adopted after 30 s. */
const DRAIN_MS = 90_000
const VERIFY_MS = 60_000
/** An instance that was just started looks this often for what was accepted and not added. */
const ADOPT_LOOK_MS = 5_000
const LOOK_MS = 1_000
const BACKLOG = 600
const MOST_TOLD = 5

/** The time that an endpoint has for an answer; the lease of a webhook is 5 s longer. */
const WEBHOOK_MS = 1_000
/** The messages of a round of which the service is asked how they ended. */
const ASKED = 30
const ENDS: readonly unknown[] = ['handled', 'removed']

export type Where = 'single' | 'sentinel'

export interface Round {
  readonly accepted: number
  readonly journalled: number
  readonly removed: number
  readonly delivered: number
  readonly twice: number
  readonly failures: number
  readonly worstLateMs: number
  readonly seconds: number
  readonly problems: readonly Problem[]
}

interface Parts {
  readonly place: Place
  readonly masterLine: MasterLine | undefined
  readonly sql: SqlServer
  readonly random: () => number
  readonly instances: readonly Instance[]
  readonly receiver: Receiver
  readonly program: HttpProgram
  readonly drainMs: number
  readonly toleratedMs: number
  readonly topic: string
  readonly url: string
  readonly dir: string
  readonly nginx: Nginx | undefined
  readonly key: string
}

/**
 * Two instances of the service behind nginx, or one with its journal in SQLite, with one Redis, or one that sentinels replace, and clients and a receiver of webhooks
 * that know HTTP only.
 */
export class HttpBench {
  readonly place: Place
  readonly sql: SqlServer
  readonly books = new Books()
  readonly random: () => number
  readonly instances: readonly Instance[]
  readonly traffic: Traffic
  readonly receiver: Receiver
  readonly #masterLine: MasterLine | undefined
  readonly #program: HttpProgram
  readonly #drainMs: number
  readonly #toleratedMs: number
  readonly #topic: string
  readonly #url: string
  readonly #dir: string
  readonly #nginx: Nginx | undefined
  #watch: RestoreWatch | undefined

  private constructor(parts: Parts) {
    const { instances, nginx, key, topic, random, receiver } = parts
    this.place = parts.place
    this.sql = parts.sql
    this.random = random
    this.instances = instances
    this.receiver = receiver
    this.#masterLine = parts.masterLine
    this.#program = parts.program
    this.#drainMs = parts.drainMs
    this.#toleratedMs = parts.toleratedMs
    this.#topic = topic
    this.#url = parts.url
    this.#dir = parts.dir
    this.#nginx = nginx
    const urls = nginx === undefined ? instances.map(({ url }) => url) : [nginx.url]
    this.traffic = new Traffic({ books: this.books, urls, key, topic, receiver, random })
  }

  /** @param toleratedMs so late a message may be in any case: on a machine that others use, too, each can be */
  static async start(
    kind: Kind,
    program: HttpProgram,
    seed: number,
    {
      where = 'single',
      drainMs = DRAIN_MS,
      toleratedMs = 0,
    }: { readonly where?: Where; readonly drainMs?: number; readonly toleratedMs?: number } = {},
  ): Promise<HttpBench> {
    const [place, sql, receiver] = await Promise.all([
      where === 'single' ? SinglePlace.start(0) : SentinelPlace.start(),
      startSql(kind),
      Receiver.start(),
    ])
    const url = await sql.fresh()
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-http-faults-'))
    const { key, line } = makeKey()
    writeFileSync(join(dir, 'api-keys'), `${line}\n`)
    const flags = ['--journal', url, '--api-keys', join(dir, 'api-keys'), '--data-dir', dir]
    const hooks = ['--webhook-networks', '127.0.0.0/8', '--webhook-ports', String(receiver.port)]
    const args = [...flags, ...hooks, '--no-ui', '--log-level', 'error']
    const redisPort = place instanceof SentinelPlace ? await place.stage.masterPort() : Number(place.client.port)
    // a SQLite file belongs to one process
    const ports = kind === 'sqlite' ? [await freePort()] : [await freePort(), await freePort()]
    const instances = await Promise.all(
      ports.map((port, at) =>
        Instance.make(`instance ${at + 1}`, { ...{ port, redisPort, args }, program: program.serve }),
      ),
    )
    // the first one makes the tables
    for (const instance of instances) await instance.start()
    const [first, second] = ports
    const isBehindNginx = hasNginx && first !== undefined && second !== undefined
    const nginx = isBehindNginx ? await Nginx.start([first, second]) : undefined
    const lines = instances.map((instance) => instance.line)
    const masterLine = place instanceof SentinelPlace ? new MasterLine(place.stage, lines) : undefined
    const topic = `http-faults-${process.pid}-${Date.now().toString(36)}`
    const parts = {
      place,
      sql,
      instances,
      receiver,
      masterLine,
      program,
      drainMs,
      toleratedMs,
      topic,
      url,
      dir,
      nginx,
      key,
    }
    const bench = new HttpBench({ ...parts, random: randomFrom(seed) })
    await bench.#makeTopics()
    await bench.traffic.fillBacklog(BACKLOG)
    if (kind !== 'sqlite') bench.#watch = await RestoreWatch.start(url, topic, bench.books)
    bench.traffic.consume()
    return bench
  }

  async #makeTopics(): Promise<void> {
    const settings = { visibilityTimeout: VISIBILITY_MS, deliveryLimit: 1_000, retryDelays: [100] }
    const make = async (method: string, path: string, body: object): Promise<Record<string, unknown>> => {
      const answer = await this.traffic.ask(method, path, { body: JSON.stringify(body) })
      if (answer.status !== 201)
        throw new Error(`${path} was not made: ${answer.status} ${JSON.stringify(answer.body)}`)
      return answer.body
    }
    await make('PUT', `/v1/topics/${this.#topic}`, settings)
    const endpoint = { url: `http://127.0.0.1:${this.receiver.port}/`, timeout: WEBHOOK_MS }
    const { id, secret } = await make('POST', '/v1/endpoints', endpoint)
    this.receiver.secret = String(secret)
    await make('PUT', `/v1/topics/${hooksOf(this.#topic)}`, { ...settings, endpoint: id })
  }

  /** The Redis of which the bench decides what it keeps. */
  get redis(): SinglePlace {
    if (!(this.place instanceof SinglePlace)) throw new Error('it needs one Redis')
    return this.place
  }

  /** The servers among which sentinels choose. */
  get sentinels(): SentinelPlace {
    if (!(this.place instanceof SentinelPlace)) throw new Error('it needs sentinels')
    return this.place
  }

  /** Else requests go to an instance that is away, too. */
  get isBehindProxy(): boolean {
    return this.#nginx !== undefined
  }

  async stop(): Promise<void> {
    await this.traffic.stop()
    await this.#watch?.stop()
    await this.#nginx?.stop()
    this.#masterLine?.stop()
    await Promise.all(this.instances.map((instance) => instance.stop()))
    await this.receiver.stop()
    await this.place.stop()
    await this.sql.stop()
    rmSync(this.#dir, { recursive: true, force: true })
  }

  /** Between two times in milliseconds: faults come at random moments. */
  pause(min: number, max = min): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, min + (max - min) * this.random()))
  }

  /** From now on `hasSeen` knows no earlier lines. */
  forgetOutput(): void {
    for (const instance of this.instances) instance.forgetOutput()
  }

  /** Whether the last lines of an instance have this. */
  hasSeen(what: RegExp): boolean {
    return this.instances.some(({ output }) => what.test(output))
  }

  oneInstance(): Instance {
    return this.instances[Math.floor(this.random() * this.instances.length)]!
  }

  /** Load, the fault, the healing, everything handled to the end; and then what the books say. */
  async round(
    fault: (bench: HttpBench) => Promise<void>,
    { isRedisWell = false, catchUpMs = 0 }: { isRedisWell?: boolean | undefined; catchUpMs?: number | undefined } = {},
  ): Promise<Round> {
    const { books, traffic } = this
    const startedAt = performance.now()
    books.round++
    books.worstLateMs = 0
    books.losses.length = 0
    traffic.failures = []
    const lag = new Lag()
    let lagMs: number | undefined
    try {
      traffic.produce(true)
      await this.pause(LEAD_MS)
      await fault(this)
      await this.place.healthy()
      await this.#masterLine?.follow()
      await this.pause(LEAD_MS)
      await this.sql.revive?.()
      traffic.produce(false)
      await traffic.pushed()
      const refused = books.refused()
      if (refused > 0) books.wrong('other', `${refused} messages were never accepted, also after the fault`)
      await this.#handled()
    } finally {
      traffic.produce(false)
      lagMs = allowedFor(lag.stop())
    }
    books.judge({ isRedisWell, lagMs: () => Math.max(lagMs ?? 0, this.#toleratedMs), catchUpMs })
    if (books.problems.length === 0) await this.#compare()
    if (books.problems.length === 0) await this.#final()
    const mine = [...books.messages.values()].filter(({ round }) => round === books.round)
    const count = (which: (message: (typeof mine)[number]) => boolean): number => mine.filter(which).length
    return {
      accepted: count(({ state }) => state === 'accepted'),
      journalled: count(({ outcome }) => outcome === 'journalled'),
      removed: count(({ cancel }) => cancel?.done === true),
      delivered: mine.reduce((sum, { deliveries }) => sum + deliveries.length, 0),
      twice: count(
        ({ deliveries }) =>
          deliveries.filter(({ answer, how }) => how === 'acknowledged' && answer === 'ok').length > 1,
      ),
      failures: traffic.failures.length,
      worstLateMs: Math.round(books.worstLateMs),
      seconds: Math.round((performance.now() - startedAt) / 100) / 10,
      problems: [...books.problems],
    }
  }

  /**
   * Whether Redis and SQL agree. An empty Redis records nothing before an instance has seen that: what was accepted and handled by then comes once more, after
   * 30 s.
   */
  async verify(): Promise<readonly Problem[]> {
    const problems: Problem[] = []
    for (const topic of [this.#topic, hooksOf(this.#topic)]) problems.push(...(await this.#verify(topic)))
    return problems
  }

  async #verify(topic: string): Promise<readonly Problem[]> {
    const until = Date.now() + VERIFY_MS
    for (;;) {
      // one process has the file
      const alone = this.sql.kind === 'sqlite' ? this.instances : []
      for (const instance of alone) await instance.end('SIGTERM')
      const { code, text } = await this.#run('verify', topic)
      if (code === 0) return []
      for (const instance of alone) await instance.start()
      if (alone.length > 0) await this.pause(ADOPT_LOOK_MS)
      if (Date.now() > until) return [{ wrong: 'verify', text: `${topic}: ${text.slice(0, 2_000)}` }]
      await this.pause(500)
    }
  }

  /** The last output of the instances, for a report. */
  get output(): string {
    return this.instances.map(({ name, output }) => `${name}: ${errorsOf(output)}`).join('\n')
  }

  async #handled(): Promise<void> {
    const { books } = this
    const until = Date.now() + this.#drainMs
    while (books.open().length > 0 && Date.now() < until) {
      await this.pause(LOOK_MS)
      await this.#findHandled()
    }
    const open = books.open()
    for (const message of open.slice(0, MOST_TOLD)) {
      const known = await this.traffic.find(message).catch(String)
      books.lost(message, `it was accepted, and not handled; the service says ${JSON.stringify(known)}`)
    }
    if (open.length > MOST_TOLD) books.wrong('lost', `and ${open.length - MOST_TOLD} more`)
  }

  /** A lease whose answer was lost, and that was answered again by nginx or after its time, can have been acknowledged. */
  async #findHandled(): Promise<void> {
    const unsure = this.books
      .open()
      .filter(({ deliveries }) => deliveries.some(({ how, answer }) => how === 'acknowledged' && answer !== undefined))
    for (const message of unsure.slice(0, 50)) {
      const found = await this.traffic.find(message).catch(() => undefined)
      if (found?.['state'] === 'handled') message.isHandled = true
    }
  }

  /** Checks that the messages that are due tomorrow are where they should be. */
  async #compare(): Promise<void> {
    const until = Date.now() + this.#drainMs
    let waiting = new Map<string, number>()
    const missingIn = () => this.books.far().filter(({ item }) => !waiting.has(item.id))
    do waiting = await eventually(() => this.traffic.waiting(), 30_000, 500)
    while (missingIn().length > 0 && Date.now() < until)
    for (const { item, attempts, dueAt } of this.books.far()) {
      const found = waiting.get(item.id)
      if (found !== undefined && attempts === 1 && found !== dueAt)
        this.books.wrong('changed', `${item.id} is due at ${found}, not at ${dueAt}`)
    }
    const missing = missingIn()
    for (const message of missing.slice(0, MOST_TOLD)) {
      const found = await this.traffic.find(message).catch(String)
      this.books.lost(message, `it is not listed in its topic, which says of it ${JSON.stringify(found) ?? 'nothing'}`)
    }
    if (missing.length > MOST_TOLD) this.books.wrong('lost', `and ${missing.length - MOST_TOLD} more of the backlog`)
  }

  /** Checks that what was handled or removed is so according to the service, which has nothing else left. */
  async #final(): Promise<void> {
    const { books, traffic } = this
    const until = Date.now() + this.#drainMs
    const far = new Set([...books.messages.values()].filter(isFar).map(({ item }) => item.id))
    const left = async (): Promise<string[]> =>
      [...(await eventually(() => traffic.waiting(), 30_000, 500)).keys()].filter((id) => !far.has(id))
    let rest = await left()
    // what Redis forgot of acknowledgements comes again
    while (rest.length > 0 && Date.now() < until) {
      await this.pause(LOOK_MS)
      rest = await left()
    }
    if (rest.length > 0) books.wrong('other', `the topics still have ${rest.slice(0, MOST_TOLD).join(', ')}`)
    const dead = await eventually(() => traffic.waiting('dead-letters'), 30_000, 500)
    if (dead.size > 0)
      books.wrong('other', `there are dead letters: ${[...dead.keys()].slice(0, MOST_TOLD).join(', ')}`)
    for (const message of books.ended().slice(-ASKED)) {
      let state: unknown
      do state = (await traffic.find(message).catch(() => undefined))?.['state']
      while (!ENDS.includes(state) && Date.now() < until)
      if (!ENDS.includes(state)) books.wrong('other', `${message.item.id} was handled, and is ${String(state)}`)
    }
  }

  async #run(action: string, topic: string): Promise<{ code: number | null; text: string }> {
    const { place } = this
    const port = place instanceof SentinelPlace ? await place.stage.masterPort() : place.client.port
    const args = ['journal', action, '--redis', `redis://127.0.0.1:${port}`, '--journal', this.#url, '--queue', topic]
    const child = spawn(process.execPath, [this.#program.journal, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    const keep = (bytes: Buffer): void => void (text += bytes.toString())
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => resolve({ code, text }))
    })
  }
}
