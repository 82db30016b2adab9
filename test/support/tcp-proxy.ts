/** A TCP proxy in front of a server that can fail in the ways a network fails. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface TcpProxy {
  readonly port: number
  /** Open client connections. */
  readonly connections: number
  /** How many connections were ever accepted. */
  readonly accepted: number
  /** Resets every open connection; new ones are welcome. */
  cut(): void
  /** Half-open: sockets stay open and bytes of both directions are dropped, for old and new connections. */
  blackhole(on: boolean): void
  /** Closes every new connection at once, as a server that is not there. */
  refuse(on: boolean): void
  /** Holds back each piece, one way or both: `delay(50)`, `delay({ toServer: 50 })`. `delay(0)` ends it. */
  delay(ms: number | { toServer?: number; toClient?: number }): void
  stop(): Promise<void>
}

export async function startProxy(target: {
  targetPort: number
  targetHost?: string
  port?: number
}): Promise<TcpProxy> {
  const { targetPort, targetHost = '127.0.0.1', port: ownPort = 0 } = target
  const clients = new Set<Socket>()
  const sockets = new Set<Socket>()
  const timers = new Set<NodeJS.Timeout>()
  let refusing = false
  let dropping = false
  let accepted = 0
  let delays = { toServer: 0, toClient: 0 }

  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {}) // 'close' follows and ends the other side
    socket.once('close', () => sockets.delete(socket))
  }

  /** Forwards in order, also when the delay changes between two pieces. */
  const forward = (from: Socket, to: Socket, direction: keyof typeof delays) => {
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
    const pass = (action: () => void) => {
      waiting.push({ due: performance.now() + delays[direction], action })
      if (waiting.length === 1) flush()
    }
    from.on('data', (bytes: Buffer) => {
      if (!dropping) pass(() => !dropping && to.writable && to.write(bytes))
    })
    from.on('end', () => {
      if (!dropping) pass(() => to.end())
    })
    from.once('close', (hadError) => {
      if (hadError && !dropping) to.destroy()
    })
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    accepted++
    track(client)
    if (refusing) return client.resetAndDestroy()
    const upstream = connect({ port: targetPort, host: targetHost, allowHalfOpen: true })
    track(upstream)
    clients.add(client)
    // Behind a black hole neither side notices that the other has gone: that is what half-open means.
    client.once('close', () => {
      clients.delete(client)
      if (!dropping) upstream.destroy()
    })
    upstream.once('close', () => {
      if (!dropping) client.destroySoon()
    })
    forward(client, upstream, 'toServer')
    forward(upstream, client, 'toClient')
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(ownPort, '127.0.0.1', resolve)
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
    cut,
    blackhole(on) {
      dropping = on
      // What was swallowed cannot come back: a stream with a hole is broken, so the old connections end here.
      if (!on) cut()
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
