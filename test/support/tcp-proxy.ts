/** A TCP proxy in front of a server that can fail in the ways a network fails. */
import { EventEmitter } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A throttled line passes a piece this often. */
const PIECE_MS = 20

export type Direction = 'toServer' | 'toClient'

export interface TcpProxy {
  readonly port: number
  /** Open client connections. */
  readonly connections: number
  /** How many connections were ever accepted. */
  readonly accepted: number
  /** Resets every open connection; new ones are welcome. */
  cut(): void
  /** Half-open: sockets stay open and bytes of both directions are dropped, or of one, for old and new connections. */
  blackhole(on: boolean | Direction): void
  /**
   * The same for those connections alone on which one of these commands was ever sent, or none of them: `{ but: [...] }`.
   * New ones work; `cut` or `blackhole(false)` ends it.
   */
  halfOpen(commands: readonly string[] | { but: readonly string[] }): number
  /**
   * New connections fall silent while they are being opened, and stay so: when they are accepted, or when the client sends a command
   * with this word, which is not answered any more. `undefined` ends it, for connections that are opened then.
   */
  muteNew(at: 'accept' | Uppercase<string> | undefined): void
  /** How many connections fell silent that way; each is a `muted` event. */
  readonly muted: number
  /** Also `accepted`, before a new connection is led to its server, and `piece`, when bytes have arrived at the proxy. */
  readonly events: EventEmitter
  /** Closes every new connection at once, as a server that is not there. */
  refuse(on: boolean): void
  /** Holds back each piece, one way or both: `delay(50)`, `delay({ toServer: 50 })`. `delay(0)` ends it. */
  delay(ms: number | Partial<Record<Direction, number>>): void
  /** How many bytes pass in a second, each way or only one, and on each connection; `Infinity` ends it. */
  throttle(bytesPerSecond: number, only?: Direction): void
  /** The address to which new connections lead. */
  retarget(port: number): void
  stop(): Promise<void>
}

export async function startProxy(target: {
  targetPort: number
  targetHost?: string
  /** The address at which the proxy listens. */
  host?: string
  port?: number
}): Promise<TcpProxy> {
  const { targetHost = '127.0.0.1', host = '127.0.0.1', port: ownPort = 0 } = target
  let { targetPort } = target
  let bytesPerMs = { toServer: Infinity, toClient: Infinity }
  /** By the client's socket: what it sent, and whether it is half-open. */
  const clients = new Map<Socket, { readonly commands: Set<string>; dead: boolean }>()
  const sockets = new Set<Socket>()
  const timers = new Set<NodeJS.Timeout>()
  let refusing = false
  let muteAt: string | undefined
  let muted = 0
  const events = new EventEmitter()
  let dropping: readonly Direction[] = []
  let accepted = 0
  let delays = { toServer: 0, toClient: 0 }

  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {}) // 'close' follows and ends the other side
    socket.once('close', () => sockets.delete(socket))
  }

  /** Forwards in order, also when the delay changes between two pieces. */
  const forward = (from: Socket, to: Socket, direction: Direction, drops: (direction: Direction) => boolean) => {
    const isDropping = () => drops(direction)
    let busyUntil = 0
    const waiting: { due: number; action: () => void }[] = []
    const flush = () => {
      for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
        const wait = next.due - performance.now()
        if (wait > 0) {
          const timer = setTimeout(() => {
            timers.delete(timer)
            flush()
          }, wait)
          timers.add(timer)
          return
        }
        waiting.shift()
        next.action()
      }
    }
    const pass = (bytes: number, action: () => void) => {
      busyUntil = Math.max(busyUntil, performance.now()) + bytes / bytesPerMs[direction]
      waiting.push({ due: busyUntil + delays[direction], action })
      if (waiting.length === 1) flush()
    }
    from.on('data', (bytes: Buffer) => {
      events.emit('piece')
      if (isDropping()) return
      // what is slow comes little by little, and not after a silence
      const most = Math.max(1, Math.min(bytes.length, Math.floor(bytesPerMs[direction] * PIECE_MS)))
      for (let at = 0; at < bytes.length; at += most) {
        const piece = bytes.subarray(at, at + most)
        pass(piece.length, () => !isDropping() && to.writable && to.write(piece))
      }
    })
    from.on('end', () => {
      if (!isDropping()) pass(0, () => to.end())
    })
    from.once('close', (hadError) => {
      if (hadError && !isDropping()) to.destroy()
    })
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    accepted++
    events.emit('accepted')
    track(client)
    if (refusing) return client.resetAndDestroy()
    const upstream = connect({ port: targetPort, host: targetHost, allowHalfOpen: true })
    track(upstream)
    const state = { commands: new Set<string>(), dead: false }
    const silentAt = muteAt
    const muteIf = (met: boolean) => {
      if (!met || state.dead) return
      state.dead = true
      muted++
      events.emit('muted')
    }
    muteIf(silentAt === 'accept')
    const drops = (direction: Direction): boolean => state.dead || dropping.includes(direction)
    const isDropping = (): boolean => drops('toServer') || drops('toClient')
    clients.set(client, state)
    client.on('data', (bytes: Buffer) => {
      for (const [, word] of bytes.toString('latin1').matchAll(/\r\n([A-Za-z]+)\r\n/g))
        state.commands.add(word!.toUpperCase())
      if (silentAt !== undefined) muteIf(state.commands.has(silentAt))
    })
    // Behind a black hole neither side notices that the other has gone: that is what half-open means.
    client.once('close', () => {
      clients.delete(client)
      if (!isDropping()) upstream.destroy()
    })
    upstream.once('close', () => {
      if (!isDropping()) client.destroySoon()
    })
    forward(client, upstream, 'toServer', drops)
    forward(upstream, client, 'toClient', drops)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(ownPort, host, resolve)
  })
  const { port } = server.address() as AddressInfo

  const cut = () => {
    for (const socket of sockets) {
      // a reset of a socket that is being ended leaves its handle open for ever (Node 20)
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }
  return {
    port,
    get connections() {
      return clients.size
    },
    get accepted() {
      return accepted
    },
    events,
    get muted() {
      return muted
    },
    muteNew(at) {
      muteAt = at
    },
    cut,
    blackhole(on) {
      dropping = on === true ? ['toServer', 'toClient'] : on === false ? [] : [on]
      // swallowed bytes cannot come back, and a stream with missing bytes is broken, so the old connections end here
      if (!on) cut()
    },
    halfOpen(commands) {
      const [names, but] = 'but' in commands ? [commands.but, true] : [commands, false]
      const chosen = [...clients.values()].filter((state) => names.some((name) => state.commands.has(name)) !== but)
      for (const state of chosen) state.dead = true
      return chosen.length
    },
    throttle(bytesPerSecond, only) {
      const all = { toServer: bytesPerSecond / 1_000, toClient: bytesPerSecond / 1_000 }
      bytesPerMs = only === undefined ? all : { ...bytesPerMs, [only]: all[only] }
    },
    retarget(port) {
      targetPort = port
    },
    refuse(on) {
      refusing = on
    },
    delay(ms) {
      delays = typeof ms === 'number' ? { toServer: ms, toClient: ms } : { toServer: 0, toClient: 0, ...ms }
    },
    async stop() {
      for (const timer of timers) clearTimeout(timer)
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      cut()
      await closed
    },
  }
}
