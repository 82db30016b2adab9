import { randomBytes, randomInt } from 'node:crypto'
import { RedelayedError } from 'redelayed'
import { runScript, type ScriptRunner } from '../run-script.js'
import { TopicError } from './errors.js'
import { leaseWorker, releaseWorker } from './scripts/generated.js'
import { Snowflake, WORKERS, type Worker } from './snowflake.js'

export interface WorkerLeaseOptions {
  /** How long a number is leased. Default 30 s; the lease is renewed three times in this time. */
  readonly leaseMs?: number
  /** The count of worker numbers. Default 1,024. */
  readonly count?: number
  readonly key?: string
  readonly onError?: (error: unknown) => void
}

interface Leased extends Worker {
  /** The clocks of Redis and of this process when the number was leased. */
  readonly at: number
  readonly sentAt: number
  readonly sentDate: number
}

/**
 * Draws ids that no other instance draws. It leases a worker number in Redis: an instance that cannot reach Redis stops drawing ids before
 * another one can get the number, and the lease of an instance that died runs out.
 */
export class WorkerLease {
  readonly #redis: ScriptRunner
  readonly #key: string
  readonly #leaseMs: number
  readonly #count: number
  readonly #onError: (error: unknown) => void
  readonly #token = randomBytes(12).toString('base64url')
  readonly #ids = new Snowflake()
  #leased: Leased | undefined
  #timer: NodeJS.Timeout | undefined
  #renewing: Promise<void> | undefined
  #isStopped = false

  constructor(redis: ScriptRunner, options: WorkerLeaseOptions = {}) {
    const { leaseMs = 30_000, count = WORKERS, key = 'redelayed:service:workers', onError = () => undefined } = options
    this.#redis = redis
    this.#leaseMs = leaseMs
    this.#count = count
    this.#key = key
    this.#onError = onError
  }

  /** @throws RedelayedError all numbers are leased, or Redis does not answer */
  async start(): Promise<void> {
    await this.#lease()
    this.#timer = setInterval(() => this.#renew(), this.#leaseMs / 3)
    this.#timer.unref()
  }

  /** Gives the number back. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    await this.#renewing
    const leased = this.#leased
    this.#leased = undefined
    if (leased === undefined) return
    // without Redis the lease ends by itself
    const reach = Math.max(this.#ids.reach, leased.from - 1) // no id may have been drawn
    await this.#run(releaseWorker, this.#token, leased.number, reach).catch(this.#onError)
  }

  /** @throws TopicError ERR_IDS_UNAVAILABLE Redis has not answered for so long that another instance may have the number */
  draw(): string {
    const leased = this.#leased
    const id = leased && this.#isHeld(leased) ? this.#ids.draw(leased, this.#now(leased)) : undefined
    if (id !== undefined) return id
    this.#renew()
    throw new TopicError('ERR_IDS_UNAVAILABLE', 'the worker number of this instance has run out')
  }

  /** Checks both clocks of the process: one stops while the machine is suspended, and the other can be set back. */
  #isHeld({ sentAt, sentDate }: Leased): boolean {
    return performance.now() - sentAt < this.#leaseMs && Date.now() - sentDate < this.#leaseMs
  }

  #now({ at, sentAt }: Leased): number {
    return at + performance.now() - sentAt
  }

  #renew(): void {
    if (this.#isStopped) return
    this.#renewing ??= this.#lease()
      .catch(this.#onError)
      .finally(() => (this.#renewing = undefined))
  }

  async #lease(): Promise<void> {
    const before = this.#leased
    const held = before?.number ?? -1
    const [sentAt, sentDate] = [performance.now(), Date.now()]
    const reply = await this.#run(leaseWorker, this.#token, held, randomInt(this.#count), this.#leaseMs, this.#count)
    const [number, from, upTo, at] = reply as [number, number, number, number]
    if (number < 0) {
      this.#leased = undefined
      throw new RedelayedError(
        'ERR_NO_WORKER_NUMBER',
        `all ${this.#count} worker numbers of --ids snowflake are leased`,
      )
    }
    // a number that was renewed keeps its beginning
    const begin = number === held ? Math.max(from, before?.from ?? 0) : from
    this.#leased = { number, from: begin, upTo, at, sentAt, sentDate }
  }

  #run(script: { sha1: string; source: string }, ...args: (string | number)[]): Promise<unknown> {
    return runScript(this.#redis, script, this.#key, ...args)
  }
}
