import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** A proxy between the client under test and Redis that fails on demand. */
export interface FlakyServer {
  readonly port: number
  /**
   * Cuts every connection; new ones work.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * kit.redis.disconnect()
   * ```
   */
  disconnect(): void
  /**
   * Cuts every connection and refuses new ones until `start`, like a server that is down.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * kit.redis.stop()
   * kit.redis.start()
   * ```
   */
  stop(): void
  /**
   * Lets new connections through again, after `stop`.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * kit.redis.stop()
   * kit.redis.start()
   * ```
   */
  start(): void
  /**
   * Keeps connections open but passes no byte, like a network that drops packets, until `thaw` cuts them.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * kit.redis.freeze()
   * kit.redis.thaw()
   * ```
   */
  freeze(): void
  /**
   * Cuts the connections that `freeze` kept open; new ones work.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * kit.redis.freeze()
   * kit.redis.thaw()
   * ```
   */
  thaw(): void
  /**
   * Cuts every connection and stops listening. The test kit does it in its `close`.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * await kit.redis.close()
   * ```
   */
  close(): Promise<void>
}

export async function flakyServer(target: { readonly host: string; readonly port: number }): Promise<FlakyServer> {
  const sockets = new Set<Socket>()
  let isDown = false
  let isFrozen = false

  const track = (socket: Socket): void => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined) // 'close' follows
    socket.once('close', () => sockets.delete(socket))
  }
  const forward = (from: Socket, to: Socket): void => {
    from.on('data', (bytes) => {
      if (!isFrozen) to.write(bytes)
    })
    from.once('close', () => to.destroy())
  }
  const server: Server = createServer((client) => {
    track(client)
    if (isDown) {
      client.destroy()
      return
    }
    const upstream = connect(target)
    track(upstream)
    forward(client, upstream)
    forward(upstream, client)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    disconnect: cut,
    stop: () => {
      isDown = true
      cut()
    },
    start: () => {
      isDown = false
    },
    freeze: () => {
      isFrozen = true
    },
    thaw: () => {
      isFrozen = false
      cut() // a stream with missing bytes is useless
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      cut()
      await closed
    },
  }
}
