/** TCP proxies that know what a connection is for by its commands, and freeze it for ever at a stage of its life. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { TLSSocket, createSecureContext, type SecureContext } from 'node:tls'
import { RequestReader } from './request-reader.js'

/** The purpose of a connection. */
export type Role = 'commands' | 'subscriber' | 'blocking' | 'durable'
/** Which bytes are dropped: the connection is half-open, or cut in one direction. */
export type Lost = 'both' | 'toServer' | 'toClient'
/** `accept`: from the first byte on; `TLS`: in the middle of the handshake; or the name of a command: from that command on. */
export type Stage = string

const ROLES: readonly (readonly [Role, RegExp])[] = [
  ['subscriber', /^SUBSCRIBE$/],
  ['blocking', /^(BLMPOP|BLPOP|BRPOP|BLMOVE|BRPOPLPUSH)$/],
  ['durable', /^(WAIT|WAITAOF)$|^SCRIPT LOAD$/],
]

type OnStage = (connection: Connection, stage: Stage) => void

class Connection {
  role: Role = 'commands'
  frozen: Lost | undefined
  #closed = false
  readonly #raw: Socket
  readonly #upstream: Socket
  readonly #onStage: OnStage

  constructor(raw: Socket, port: number, tls: SecureContext | undefined, onStage: OnStage) {
    this.#raw = raw
    this.#onStage = onStage
    this.#upstream = connect({ port, host: '127.0.0.1' })
    const client = tls === undefined ? raw : new TLSSocket(this.#gate(), { isServer: true, secureContext: tls })
    const reader = new RequestReader((command) => {
      const [role] = ROLES.find(([, pattern]) => pattern.test(command)) ?? []
      if (role !== undefined) this.role = role
      onStage(this, command)
    })
    for (const socket of [raw, this.#upstream]) socket.setNoDelay(true)
    for (const socket of new Set([raw, client, this.#upstream])) socket.on('error', () => {}) // 'close' follows
    client.on('data', (bytes: Buffer) => {
      reader.push(bytes) // freezes before what it names has passed
      if (!this.#loses('toServer') && this.#upstream.writable) this.#upstream.write(bytes)
    })
    this.#upstream.on('data', (bytes: Buffer) => {
      if (!this.#loses('toClient') && client.writable) client.write(bytes)
    })
    // an end is bytes, too: behind a hole in the network the server goes on waiting for a client that is gone
    raw.once('close', () => {
      this.#closed = true
      client.destroy()
      if (!this.#loses('toServer')) this.#upstream.destroy()
    })
    this.#upstream.once('close', () => {
      if (!this.#loses('toClient')) client.destroy()
    })
  }

  /** The client has given it up. */
  get closed(): boolean {
    return this.#closed
  }

  /** Both sides see a connection that broke. */
  reset(): void {
    for (const socket of [this.#raw, this.#upstream]) {
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  /** Between the socket and TLS, so that a frozen connection loses bytes of TLS, also those of its handshake. */
  #gate(): Duplex {
    const raw = this.#raw
    let isFirst = true
    const send = (bytes: Buffer): void => {
      if (!this.#loses('toClient') && raw.writable) raw.write(bytes)
    }
    const gate = new Duplex({
      read: () => {},
      write: (bytes: Buffer, _, done) => {
        const middle = isFirst ? bytes.length >> 1 : 0
        if (isFirst) {
          isFirst = false
          send(bytes.subarray(0, middle))
          this.#onStage(this, 'TLS')
        }
        send(bytes.subarray(middle))
        done()
      },
      destroy: (error, done) => {
        raw.destroy()
        done(error)
      },
    })
    raw.on('data', (bytes: Buffer) => {
      if (!this.#loses('toServer')) gate.push(bytes)
    })
    return gate
  }

  #loses(direction: Exclude<Lost, 'both'>): boolean {
    return this.frozen === 'both' || this.frozen === direction
  }
}

/** The proxies of one client in front of some servers. */
export class StageProxy {
  /** The proxies by the known address of their server. */
  readonly natMap: Record<string, { host: string; port: number }> = {}
  readonly #servers: Server[] = []
  readonly #connections: Connection[] = []
  readonly #tls: SecureContext | undefined
  #armed: { stage: Stage; lost: Lost; left: number } | undefined
  #frozen = 0

  /** The key and certificate if clients connect by TLS. */
  constructor(tls?: { readonly key: string; readonly cert: string }) {
    if (tls !== undefined) this.#tls = createSecureContext(tls)
  }

  /** The port in front of a server. */
  async front(port: number): Promise<number> {
    const server = createServer((client) => {
      const connection = new Connection(client, port, this.#tls, (which, stage) => this.#reached(which, stage))
      this.#connections.push(connection)
      this.#reached(connection, 'accept')
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    this.#servers.push(server)
    const own = (server.address() as AddressInfo).port
    this.natMap[`127.0.0.1:${port}`] = { host: '127.0.0.1', port: own }
    return own
  }

  /** The number of connections that were ever frozen. */
  get frozen(): number {
    return this.#frozen
  }

  /** The connections that the client has not closed. */
  get open(): number {
    return this.#connections.filter(({ closed }) => !closed).length
  }

  of(role: Role): number {
    return this.#live(role).length
  }

  /** All connections of a role that are open now; those that come later work. Gives how many. */
  freeze(role: Role, lost: Lost): number {
    const chosen = this.#live(role)
    for (const connection of chosen) this.#freeze(connection, lost)
    return chosen.length
  }

  /** Resets all connections of a role; as many of those that come next, or `most`, freeze when they reach the stage. */
  freezeNext(role: Role, stage: Stage, lost: Lost, most = Infinity): number {
    const chosen = this.#live(role)
    this.arm(stage, lost, Math.min(most, chosen.length))
    for (const connection of chosen) connection.reset()
    return chosen.length
  }

  /** The first so many connections that reach the stage from now on are frozen there. */
  arm(stage: Stage, lost: Lost, count: number): void {
    this.#armed = { stage, lost, left: count }
  }

  async stop(): Promise<void> {
    const closed = this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))
    for (const connection of this.#connections) connection.reset()
    await Promise.all(closed)
  }

  #live(role: Role): Connection[] {
    return this.#connections.filter((one) => one.role === role && !one.closed && one.frozen === undefined)
  }

  #reached(connection: Connection, stage: string): void {
    const armed = this.#armed
    if (armed === undefined || armed.left === 0 || connection.frozen !== undefined) return
    if (stage !== armed.stage && stage.split(' ')[0] !== armed.stage) return
    armed.left--
    this.#freeze(connection, armed.lost)
  }

  #freeze(connection: Connection, lost: Lost): void {
    connection.frozen = lost
    this.#frozen++
  }
}
