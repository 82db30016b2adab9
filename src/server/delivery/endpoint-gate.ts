import { runScript, type ScriptRunner } from '../run-script.js'
import { endpointEnter, endpointHeld, endpointLeave } from './scripts/generated.js'

/** The commands that the gate sends; an ioredis client, of one server or of a cluster, has them. */
export interface GateCommands extends ScriptRunner {
  del(key: string): Promise<unknown>
  hmget(key: string, ...fields: string[]): Promise<(string | null)[]>
}

/** Whether webhooks flow to an endpoint. */
export interface GateState {
  /** Of its breaker: closed, webhooks flow; half-open, one webhook tries again. */
  readonly state: 'closed' | 'open' | 'half-open'
  /** Until when it is open, epoch milliseconds. */
  readonly until?: number
  /** The endpoint asked for a pause until then. */
  readonly pausedUntil?: number
  /** Of the webhooks of the last minute. */
  readonly tried: number
  readonly failed: number
}

export interface GateOptions {
  /** The breaker opens where so many of a minute's webhooks failed. Default 0.7, of at least 10. */
  readonly share?: number
  readonly least?: number
  /** How long it stays open until one webhook tries again, and then between tries. Default 30 s. */
  readonly openMs?: number
}

/** The longest pause. */
const MOST_MS = 86_400_000
/** Over so long the scripts count. */
const MINUTE_MS = 60_000

/** How a webhook ended: what is refused failed because of its message, and not of the endpoint. */
export type Ended = 'delivered' | 'failed' | 'refused'

/** What a delivery has changed: whether the breaker has just opened, and how long nothing has been delivered. */
export interface Left {
  readonly hasOpened: boolean
  readonly failingMs: number
}

/**
 * Keeps a bad endpoint from costing the others anything: before each webhook it says whether the endpoint may get one, and after each it hears
 * how it ended. The state is in Redis, under the Redis clock, so that all instances share it.
 */
export class EndpointGate {
  readonly #redis: GateCommands
  readonly #options: Required<GateOptions>

  constructor(redis: GateCommands, { share = 0.7, least = 10, openMs = 30_000 }: GateOptions = {}) {
    this.#redis = redis
    this.#options = { share, least, openMs }
  }

  /** @returns 0: go; else the milliseconds after which to ask again */
  async enter(endpoint: string, perSecond = 0): Promise<number> {
    return Number(await this.#run(endpointEnter, endpoint, perSecond, this.#options.openMs))
  }

  /** For how many milliseconds nothing goes there: the endpoint asked for a pause, or its breaker is open. It lets nothing through. */
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

  /** As it is, for those who look. It lets nothing through. @param now by the clock of Redis */
  async state(endpoint: string, now: number): Promise<GateState> {
    const fields = ['openUntil', 'pausedUntil', 'since', 'total', 'failed']
    const stored = await this.#redis.hmget(keyOf(endpoint), ...fields).catch((thrown: unknown) => {
      // of another type: the next webhook begins it anew
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

  /** Begins anew, with a closed breaker and no pause. */
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
