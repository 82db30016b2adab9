import { runScript, type ScriptRunner } from '../run-script.js'
import { endpointEnter, endpointHeld, endpointLeave } from './scripts/generated.js'

/** The commands that the gate sends; an ioredis client of a server or a cluster has them. */
export interface GateCommands extends ScriptRunner {
  del(key: string): Promise<unknown>
  hmget(key: string, ...fields: string[]): Promise<(string | null)[]>
}

/** Whether webhooks flow to an endpoint. */
export interface GateState {
  /** The state of its breaker. Closed: webhooks flow; half-open: one webhook tries again. */
  readonly state: 'closed' | 'open' | 'half-open'
  /** The end of the open state, epoch milliseconds. */
  readonly until?: number
  /** The end of the pause that the endpoint asked for. */
  readonly pausedUntil?: number
  /** The webhooks of the last minute. */
  readonly tried: number
  readonly failed: number
}

export interface GateOptions {
  /** The breaker opens when this share of a minute's webhooks failed. Default 0.7, of at least 10. */
  readonly share?: number
  readonly least?: number
  /** How long the breaker stays open until one webhook tries again, and then between tries. Default 30 s. */
  readonly openMs?: number
}

/** The longest pause. */
const MOST_MS = 86_400_000
/** The period over which the scripts count. */
const MINUTE_MS = 60_000

/** How a webhook ended. `refused`: it failed because of its message and not of the endpoint. */
export type Ended = 'delivered' | 'failed' | 'refused'

/** The result of a delivery: whether the breaker has just opened, and how long nothing has been delivered. */
export interface Left {
  readonly hasOpened: boolean
  readonly failingMs: number
}

/**
 * Keeps a bad endpoint from slowing down the others: before each webhook it decides whether the endpoint may get it, and after each it
 * records how it ended. All instances share its state in Redis, under the Redis clock.
 */
export class EndpointGate {
  readonly #redis: GateCommands
  readonly #options: Required<GateOptions>

  constructor(redis: GateCommands, { share = 0.7, least = 10, openMs = 30_000 }: GateOptions = {}) {
    this.#redis = redis
    this.#options = { share, least, openMs }
  }

  /** @returns 0: send; otherwise the milliseconds after which to ask again */
  async enter(endpoint: string, perSecond = 0): Promise<number> {
    return Number(await this.#run(endpointEnter, endpoint, perSecond, this.#options.openMs))
  }

  /** How long, in milliseconds, the endpoint's own pause or its open breaker holds webhooks. It lets none through. */
  async heldMs(endpoint: string): Promise<number> {
    return Number(await this.#run(endpointHeld, endpoint))
  }

  async leave(endpoint: string, ended: Ended, pauseMs = 0): Promise<Left> {
    const { least, share, openMs } = this.#options
    const how = { failed: 0, delivered: 1, refused: 2 }[ended]
    const reply = await this.#run(endpointLeave, endpoint, how, Math.ceil(pauseMs), least, share, openMs)
    const [hasOpened, failingMs] = reply as [number, number]
    return { hasOpened: hasOpened === 1, failingMs }
  }

  /** The state for display. It lets no webhook through. @param now by the clock of Redis */
  async state(endpoint: string, now: number): Promise<GateState> {
    const fields = ['openUntil', 'pausedUntil', 'since', 'total', 'failed']
    const stored = await this.#redis.hmget(keyOf(endpoint), ...fields).catch((thrown: unknown) => {
      // another type: the next webhook starts it anew
      if (thrown instanceof Error && thrown.message.startsWith('WRONGTYPE')) return []
      throw thrown
    })
    const [openUntil = 0, pausedUntil = 0, since = 0, total = 0, failed = 0] = stored.map((text) => {
      const number = Number(text ?? 0)
      return number >= 0 && number <= now + MOST_MS ? number : 0
    })
    const isFresh = now - since < MINUTE_MS
    return {
      state: openUntil === 0 ? 'closed' : openUntil > now ? 'open' : 'half-open',
      ...(openUntil > now && { until: openUntil }),
      ...(pausedUntil > now && { pausedUntil }),
      ...{ tried: isFresh ? total : 0, failed: isFresh ? failed : 0 },
    }
  }

  /** Resets the gate of an endpoint: a closed breaker and no pause. */
  async forget(endpoint: string): Promise<void> {
    await this.#redis.del(keyOf(endpoint))
  }

  #run(script: { sha1: string; source: string }, endpoint: string, ...args: number[]): Promise<unknown> {
    return runScript(this.#redis, script, keyOf(endpoint), ...args)
  }
}

function keyOf(endpoint: string): string {
  return `redelayed:service:endpoint:{${endpoint}}`
}
