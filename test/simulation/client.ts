import type { Sweeper } from '../../src/scheduler/sweeper.js'
import type { ScriptOptions } from '../../src/scheduler/due-machine.js'
import type { DueScheduler, ScriptResult } from '../../src/scheduler/due-scheduler.js'
import type { Code } from './code.js'
import type { ModelRedis, Subscriber } from './model-redis.js'
import { Process, type World } from './world.js'

/** The faults a network has, for all clients alike. */
export interface Network {
  /** Milliseconds from one end to the other. */
  latency(): number
  lose(): boolean
}

const TIMEOUT_MS = 1_000
const SWEEP_MS = 5_000

/** A process with the real scheduler, timers and sweep, connected to the model of Redis. */
export class SimClient implements Subscriber {
  readonly process: Process
  readonly #world: World
  readonly #redis: ModelRedis
  readonly #network: Network
  readonly #scheduler: DueScheduler
  readonly #sweeper: Sweeper<DueScheduler>
  /** Grows with each connection: what belonged to an earlier one is not heard any more. */
  #connection = 0
  #arrival = 0
  scripts = 0
  errors = 0
  /** The subscription is half-open: messages vanish and the client has not noticed yet. */
  deaf = false

  constructor(world: World, redis: ModelRedis, network: Network, code: Code) {
    this.#world = world
    this.#redis = redis
    this.#network = network
    const process = (this.process = new Process(world))
    this.#scheduler = new code.DueScheduler({
      fineWaits: undefined,
      script: (options) => this.#transfer(options),
      isBrief: () => false,
      onError: () => this.errors++,
      clock: process.clock,
      remote: new code.RemoteClock(process.clock),
      random: world.random,
    })
    this.#sweeper = new code.Sweeper({
      members: new Map([['queue', this.#scheduler]]),
      interval: SWEEP_MS,
      sweep: (scheduler: DueScheduler) => scheduler.wake(),
      clock: process.clock,
      random: world.random,
    })
    this.#sweeper.start()
    this.#connect()
  }

  /** A message leaves Redis; those of one connection arrive in order. */
  onMessage(due: number): void {
    if (this.deaf || this.#network.lose()) return
    const connection = this.#connection
    this.#arrival = Math.max(this.#arrival, this.#world.now + this.#network.latency())
    const arrives = this.#arrival - this.#world.now
    this.#world.after(arrives, () => connection === this.#connection && this.#scheduler.onAnnounced(due), this.process)
  }

  /** This client offers something that is due, before its channel is subscribed. */
  onOffered(): void {
    this.#scheduler.onKnown(this.#redis.now)
  }

  /** The connection breaks, and another one is opened. */
  cut(): void {
    this.#redis.subscribers.delete(this)
    this.#connection++
    this.deaf = false
    this.#world.after(this.#world.between(20, 400), () => this.#connect(), this.process)
  }

  kill(): void {
    this.process.dead = true
    this.#redis.subscribers.delete(this)
  }

  async stop(): Promise<void> {
    this.#sweeper.stop()
    await this.#scheduler.stop()
  }

  #connect(): void {
    if (!this.#redis.up) {
      this.#world.after(this.#world.between(50, 500), () => this.#connect(), this.process)
      return
    }
    const connection = this.#connection
    this.#world.after(this.#network.latency(), () => {
      if (connection !== this.#connection || this.process.dead) return
      this.#redis.subscribers.add(this)
      this.#world.after(
        this.#network.latency(),
        () => connection === this.#connection && this.#scheduler.onSubscribed(),
        this.process,
      )
    })
  }

  #transfer(options: ScriptOptions): Promise<ScriptResult> {
    this.scripts++
    return new Promise((resolve, reject) => {
      const fail = (after: number): void => {
        this.#world.after(after, () => reject(new Error('the connection broke')), this.process)
      }
      if (this.#network.lose()) {
        fail(TIMEOUT_MS)
        return
      }
      this.#world.after(this.#network.latency(), () => {
        if (!this.#redis.up) {
          fail(this.#network.latency())
          return
        }
        const result = this.#redis.transfer(this, options)
        if (this.#network.lose()) fail(TIMEOUT_MS)
        else this.#world.after(this.#network.latency(), () => resolve(result), this.process)
      })
    })
  }
}
