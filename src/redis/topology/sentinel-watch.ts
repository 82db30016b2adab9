import { isIP } from 'node:net'
import { Redis, type RedisOptions } from 'ioredis'
import type { Settings } from '../../options.js'
import type { Node } from '../options.js'
import { addressOfNodes } from '../connections/address.js'
import { guardReplies } from '../replies/reply-guard.js'
import { keepPinging } from '../replies/keep-pinging.js'
import { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { abandon } from '../connections/disconnect.js'
import { OVERRIDES } from '../connections/ioredis-defaults.js'
import { elsewhereThan, elsewhereThanIp, type IsStale } from '../connections/remote-address.js'
import { SentinelAgreement } from './sentinel-agreement.js'

const SWITCHED = '+switch-master'
/** The event of a new group: an administrator who changes the master removes and creates the group, without a failover. */
const MADE = '+monitor'

type Sentinel = NonNullable<RedisOptions['sentinels']>[number]
type Address = [host: string, port: string]

export interface SentinelWatchParams {
  /** The connection options, with the sentinels and the name of the master. */
  readonly options: RedisOptions
  readonly settings: Settings
  /** A sentinel has named a master: connections to other servers are stale. */
  readonly onSwitch: (isStale: IsStale) => void
  /** This sentinel knows of a failover of which the others may not know yet. */
  readonly onInformed: (sentinel: Sentinel) => void
  /** The sentinels name this master, but connections lead elsewhere again and again. */
  readonly onElsewhere: (master: string) => void
}

/**
 * Listens to all sentinels: they complete a failover some seconds before an old master that is still alive learns of it. Until then the old
 * master accepts writes and loses them. Each sentinel publishes when it has learned of the new master itself, so after the last
 * announcement no connection stays at the old master because it asked an outdated sentinel. Announcements can be lost, and sentinels can
 * have lied to a connection that asked them: so the watch also asks them again and again.
 */
export class SentinelWatch {
  readonly #params: SentinelWatchParams
  readonly #connections: readonly ReconnectingConnection[]
  readonly #agreement: SentinelAgreement<Sentinel>
  /** The connections for single questions. */
  readonly #asking = new Map<Sentinel, Redis>()
  /** The announced names of masters that are to be looked up. */
  readonly #names = new Map<Sentinel, Node>()
  readonly #lookingUp = new Set<Sentinel>()
  #started = false
  #closed = false

  constructor(params: SentinelWatchParams) {
    this.#params = params
    const sentinels = params.options.sentinels ?? []
    this.#agreement = new SentinelAgreement(sentinels.length, params.settings.pingInterval)
    this.#connections = sentinels.map((sentinel) => this.#listenTo(sentinel))
  }

  /** Starts at the first use of the master. */
  start(): void {
    if (this.#started) return
    this.#started = true
    for (const connection of this.#connections) connection.get().catch(() => undefined) // the connection keeps trying
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#names.clear()
    for (const redis of this.#asking.values()) abandon(redis)
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }

  #listenTo(sentinel: Sentinel): ReconnectingConnection {
    const { options, settings } = this.#params
    const { connectTimeout, commandTimeout, pingInterval } = settings
    let last: string | undefined
    const connection: ReconnectingConnection = new ReconnectingConnection({
      address: addressOfNodes([sentinel]),
      role: 'commands',
      open: () => {
        const redis = new Redis({ ...atSentinel(options), ...sentinel, connectTimeout, socketTimeout: commandTimeout })
        redis.on('message', (channel: string, message: string) => {
          const words = message.split(' ')
          const [name, host = '', port = ''] = channel === MADE ? words.slice(1) : [words[0], ...words.slice(3)]
          if (name !== options.name) return
          last = `${host}:${port}`
          this.#agreement.moved(sentinel, last, performance.now())
          this.#params.onInformed(sentinel)
          this.#announce(sentinel, host, port)
        })
        return redis
      },
      prepare: async (redis) => {
        keepPinging(connection, redis, pingInterval, () => this.#askAgain(sentinel, redis))
        redis.once('end', () => this.#agreement.forget(sentinel))
        // sent together, so that no failover happens between the answer and the subscription
        const [address] = await Promise.all([
          this.#masterOf(redis),
          redis.subscribe(SWITCHED),
          redis.subscribe(MADE).catch(() => undefined), // the user may not have this right
        ])
        if (address === undefined) {
          this.#agreement.forget(sentinel)
          return
        }
        const [host, port] = address
        // a sentinel that was isolated repeats its old answer, which would close connections to the right master
        if (last === `${host}:${port}`) {
          this.#agreement.answered(sentinel, last, performance.now())
          return
        }
        last = `${host}:${port}`
        this.#agreement.moved(sentinel, last, performance.now())
        this.#announce(sentinel, host, port)
      },
      connectTimeout,
      emit: () => undefined, // no event for a sentinel that is down, because there are others
    })
    return connection
  }

  /** The address of the master by this sentinel, if it knows one. */
  async #masterOf(redis: Redis): Promise<Address | undefined> {
    const address = await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#params.options.name ?? '')
    return Array.isArray(address) && address.length === 2 ? [String(address[0]), String(address[1])] : undefined
  }

  /** Asks a sentinel again, in place of a ping. */
  async #askAgain(sentinel: Sentinel, redis: Redis): Promise<void> {
    let address: Address | undefined
    try {
      address = await this.#masterOf(redis)
    } catch {
      await redis.ping() // if the connection is broken, this rejects, too
      void this.#askBeside(sentinel)
      return
    }
    this.#heard(sentinel, address)
  }

  /** Asks on a connection of its own: with RESP2 one that has a subscription cannot ask. */
  async #askBeside(sentinel: Sentinel): Promise<void> {
    const { options, settings } = this.#params
    if (this.#closed) return
    if (this.#asking.has(sentinel)) {
      this.#agreement.forget(sentinel)
      return
    }
    const limits = { connectTimeout: settings.connectTimeout, commandTimeout: settings.commandTimeout }
    const redis = guardReplies(new Redis({ ...atSentinel(options), ...sentinel, ...limits }))
    redis.on('error', () => undefined) // the command rejects, too
    this.#asking.set(sentinel, redis)
    const timer = setTimeout(() => abandon(redis), settings.connectTimeout)
    try {
      await redis.connect()
      this.#heard(sentinel, await this.#masterOf(redis))
    } catch {
      this.#agreement.forget(sentinel)
    } finally {
      clearTimeout(timer)
      abandon(redis)
      this.#asking.delete(sentinel)
    }
  }

  /** Closes connections to other servers than the master, if all sentinels that can be reached name it. */
  #heard(sentinel: Sentinel, address: Address | undefined): void {
    if (address === undefined) return this.#agreement.forget(sentinel)
    const name = address.join(':')
    this.#agreement.answered(sentinel, name, performance.now())
    const master = this.#mapped(...address)
    if (master === undefined || isIP(master.host) === 0) return // a name can have other addresses each time
    if (!this.#agreement.agreesOn(name, performance.now())) return
    const mayClose = !this.#agreement.rests(name, performance.now())
    const isElsewhere = elsewhereThanIp(master)
    let [isNow, areThere, areElsewhere] = [true, false, false]
    this.#params.onSwitch((peer, ...rest) => {
      if (peer === '') return false
      // A connection that is being opened is refused only if this answer closed another one. Otherwise each answer could refuse the next
      // attempt.
      if (!isNow) return mayClose && areElsewhere && isElsewhere(peer, ...rest)
      if (!isElsewhere(peer, ...rest)) {
        areThere = true
        return false
      }
      if (!areElsewhere && mayClose) this.#params.onInformed(sentinel) // before any connection is opened again
      areElsewhere = true
      return mayClose
    })
    isNow = false
    if (!areElsewhere && areThere) this.#agreement.matched(name)
    if (areElsewhere && mayClose && this.#agreement.closed(name, performance.now())) this.#params.onElsewhere(name)
  }

  /** Announces a master, unless its address cannot be mapped. */
  #announce(sentinel: Sentinel, host: string, port: string): void {
    const master = this.#mapped(host, port)
    if (master === undefined) return
    this.#names.delete(sentinel)
    if (isIP(master.host) > 0) return this.#params.onSwitch(elsewhereThanIp(master))
    this.#names.set(sentinel, master)
    void this.#lookUp(sentinel)
  }

  /**
   * Looks up the newest name that a sentinel has announced. One look-up at a time, so that a flood of names does not keep the process from
   * looking up others.
   */
  async #lookUp(sentinel: Sentinel): Promise<void> {
    if (this.#lookingUp.has(sentinel)) return
    this.#lookingUp.add(sentinel)
    try {
      for (let master = this.#names.get(sentinel); master !== undefined; master = this.#names.get(sentinel)) {
        const isStale = await elsewhereThan(master).catch(() => undefined)
        if (this.#names.get(sentinel) !== master) continue // the sentinel has announced another one, or the watch is closed
        this.#names.delete(sentinel)
        if (isStale !== undefined) this.#params.onSwitch(isStale)
      }
    } finally {
      this.#lookingUp.delete(sentinel)
    }
  }

  #mapped(host: string, port: string): Node | undefined {
    const { natMap } = this.#params.options
    const address = `${host}:${port}`
    try {
      const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address]
      return mapped ?? { host, port: Number(port) }
    } catch {
      return undefined
    }
  }
}

/** The options that apply to sentinels. */
function atSentinel(options: RedisOptions): RedisOptions {
  return {
    ...OVERRIDES,
    ...(options.sentinelUsername && { username: options.sentinelUsername }),
    ...(options.sentinelPassword && { password: options.sentinelPassword }),
    ...(options.sentinelTLS && { tls: options.sentinelTLS }),
    ...(options.family && { family: options.family }),
    ...(options.connectionName && { connectionName: options.connectionName }),
    enableReadyCheck: false,
    protocol: options.protocol ?? 3, // with 2 a connection with a subscription can ask nothing
  }
}
