import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Server, Session } from '../redis/server.js'
import type { Process, World } from '../world.js'

/** A fault of the connections that are opened while it lasts; they never heal. */
export type Opening =
  | { readonly kind: 'hangs' }
  /** After so many replies nothing comes any more. */
  | { readonly kind: 'silent'; readonly after: number }
  /** After so many writes nothing arrives any more. */
  | { readonly kind: 'deaf'; readonly after: number }
  /** Connecting takes so many milliseconds. */
  | { readonly kind: 'slow'; readonly ms: number }

interface Item {
  readonly bytes: string
  /** Lists were popped for it. */
  readonly popped: readonly string[]
  readonly isEnd: boolean
}

const ADDRESS = '10.0.0.1'

/** One direction of a connection: bytes arrive in order, late, held back, or never. */
export class Pipe {
  /** Nothing arrives any more, and no side is notified. */
  isDead = false
  heldUntil = 0
  readonly #world: World
  readonly #latency: () => number
  readonly #deliver: (item: Item) => void
  readonly #owner: Process | undefined
  #last = 0
  #onTheWay: Item[] = []
  #backlog: Item[] = []

  constructor(params: { world: World; latency: () => number; deliver: (item: Item) => void; owner?: Process }) {
    this.#world = params.world
    this.#latency = params.latency
    this.#deliver = params.deliver
    this.#owner = params.owner
  }

  send(item: Item): void {
    this.#last = Math.max(this.#last, this.#world.now + this.#latency())
    this.#onTheWay.push(item)
    // the events of items that arrive at one time can change places, because their times are rounded
    this.#world.after(this.#last - this.#world.now, () => this.#arrive(this.#onTheWay.shift()), this.#owner)
  }

  #arrive(item: Item | undefined): void {
    if (this.isDead || item === undefined) return
    this.#backlog.push(item)
    if (this.heldUntil <= this.#world.now) this.#release()
    else if (this.#backlog.length === 1) this.#wait()
  }

  #wait(): void {
    const ms = this.heldUntil - this.#world.now
    this.#world.after(ms, () => (this.heldUntil > this.#world.now ? this.#wait() : this.#release()), this.#owner)
  }

  #release(): void {
    if (this.isDead) return
    for (const item of this.#backlog.splice(0)) this.#deliver(item)
  }
}

/** Both ends of a connection. */
export class Connection {
  readonly owner: Process
  readonly socket: SimSocket
  readonly toServer: Pipe
  readonly toClient: Pipe
  session: Session | undefined
  readonly #network: Network

  constructor(network: Network, owner: Process, opening: Opening | undefined) {
    this.#network = network
    this.owner = owner
    const { world } = network
    const [silent, deaf] = (['silent', 'deaf'] as const).map((kind) =>
      opening?.kind === kind ? opening.after : Infinity,
    ) as [number, number]
    let [received, sent] = [0, 0]
    this.toServer = new Pipe({
      world,
      latency: network.latency,
      deliver: ({ bytes, isEnd }) => {
        if (received++ >= deaf) return
        if (isEnd) this.session?.end()
        else this.session?.receive(bytes)
      },
    })
    this.toClient = new Pipe({
      world,
      latency: network.latency,
      owner,
      deliver: ({ bytes, popped, isEnd }) => {
        if (sent++ >= silent || this.socket.destroyed) return
        if (isEnd) this.socket.push(null)
        else {
          if (popped.length > 0) network.onHanded?.(owner, popped)
          this.socket.push(Buffer.from(bytes, 'latin1'))
        }
      },
    })
    this.toServer.heldUntil = network.busyUntil
    this.socket = new SimSocket(this)
    if (opening?.kind === 'hangs') return
    const ms = network.latency() + (opening?.kind === 'slow' ? opening.ms : 0)
    world.after(ms, () => this.#accept())
  }

  /** The client has closed its end: what is on its way arrives before that. */
  onClosed(): void {
    this.toServer.send({ bytes: '', popped: [], isEnd: true })
    this.#network.connections.delete(this)
  }

  /** The client's end breaks. The server notices at once, or when what is on its way has arrived. */
  reset(server: 'at once' | 'later'): void {
    if (server === 'at once') {
      this.toServer.isDead = true
      this.session?.end()
    }
    this.toClient.isDead = true
    const { world } = this.#network
    world.after(this.#network.latency(), () => this.socket.fail('ECONNRESET'), this.owner)
  }

  #accept(): void {
    const { world, server } = this.#network
    if (this.socket.destroyed) return
    if (!this.#network.up) {
      world.after(this.#network.latency(), () => this.socket.fail('ECONNREFUSED'), this.owner)
      return
    }
    this.session = server.accept({
      send: (bytes) => this.toClient.send({ bytes, popped: this.#network.takePopped(), isEnd: false }),
      close: () => this.toClient.send({ bytes: '', popped: [], isEnd: true }),
    })
    world.after(this.#network.latency(), () => this.socket.onConnected(), this.owner)
  }
}

/** The client's end, as ioredis knows it. */
class SimSocket extends Duplex {
  connecting = true
  remoteAddress: string | undefined
  remotePort: number | undefined
  bytesRead = 0
  readonly #connection: Connection
  #waiting: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined
  #timeout = 0

  constructor(connection: Connection) {
    super({ allowHalfOpen: false })
    this.#connection = connection
  }

  onConnected(): void {
    if (this.destroyed) return
    this.connecting = false
    this.remoteAddress = ADDRESS
    this.remotePort = 6379
    this.#waiting?.()
    this.emit('connect')
    this.emit('ready')
  }

  fail(code: string): void {
    this.destroy(Object.assign(new Error(`simulated ${code}`), { code }))
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  setTimeout(ms: number, callback?: () => void): this {
    this.#timeout = ms
    if (callback !== undefined) {
      if (ms === 0) this.off('timeout', callback)
      else this.once('timeout', callback)
    }
    this.#watch()
    return this
  }

  override _read(): void {
    this.#watch()
  }

  override push(chunk: Buffer | string | null, encoding?: BufferEncoding): boolean {
    this.bytesRead += chunk?.length ?? 0
    return super.push(chunk, encoding)
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.#send(chunk, done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done)
  }

  override _final(done: () => void): void {
    this.#whenConnected(() => {
      this.#connection.onClosed()
      done()
    })
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.remoteAddress = undefined
    if (!this.writableFinished) this.#connection.onClosed()
    done(error)
  }

  #send(chunk: Buffer, done: () => void): void {
    this.#whenConnected(() => {
      this.#watch()
      this.#connection.toServer.send({ bytes: chunk.toString('latin1'), popped: [], isEnd: false })
      done()
    })
  }

  #whenConnected(action: () => void): void {
    if (this.connecting) this.#waiting = action
    else action()
  }

  #watch(): void {
    clearTimeout(this.#timer)
    if (this.#timeout > 0) this.#timer = setTimeout(() => this.emit('timeout'), this.#timeout)
  }
}

/** All connections between the processes and the server. */
export class Network {
  readonly world: World
  readonly server: Server
  readonly connections = new Set<Connection>()
  /** Whether the server runs. */
  up = true
  /** Until then the server works and reads nothing. */
  busyUntil = 0
  latency: () => number
  /** The fault of connections that begin now; the first applicable one counts. */
  readonly openings = new Set<() => Opening | undefined>()
  /** Elements arrived at a process that lives. */
  onHanded: ((owner: Process, elements: readonly string[]) => void) | undefined
  #popped: string[] = []

  constructor(world: World, server: Server, latency: () => number) {
    this.world = world
    this.server = server
    this.latency = latency
  }

  connect(): Socket {
    const owner = this.world.current
    if (owner === undefined) throw new Error('no process opens this connection')
    const connection = new Connection(this, owner, this.#opening())
    this.connections.add(connection)
    return connection.socket as unknown as Socket
  }

  #opening(): Opening | undefined {
    for (const opening of this.openings) {
      const befalls = opening()
      if (befalls !== undefined) return befalls
    }
    return undefined
  }

  /** An element leaves a list; it goes with the next reply. */
  onPopped(element: string): void {
    this.#popped.push(element)
  }

  takePopped(): string[] {
    return this.#popped.splice(0)
  }

  of(owner: Process): Connection[] {
    return [...this.connections].filter((connection) => connection.owner === owner)
  }
}
