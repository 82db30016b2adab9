import type { FastifyInstance } from 'fastify'
import type { Socket } from 'node:net'

/** So long a client that is still sending has to read its answer and to close its side, and so many bytes it may send meanwhile. */
const LINGER_MS = 1_000
const LINGER_BYTES = 8 * 1_048_576
const LOOK_MS = 10

/**
 * Where a request is answered before all of it has arrived, and its connection is closed then, what the client still sends would reset the connection, and
 * the answer could be lost. So its end is sent, and what comes is thrown away for a while.
 */
export function lingerAfterEarlyAnswers(app: FastifyInstance): void {
  app.addHook('onSend', ({ raw }, _reply, _payload, done) => {
    if (!raw.complete) linger(raw.socket)
    done()
  })
}

/** From the end of an answer on, which Node ends with `destroySoon` where the connection is not kept. */
function linger(socket: Socket): void {
  socket.destroySoon = () => {
    const most = socket.bytesRead + LINGER_BYTES
    const looking = setInterval(() => {
      if (socket.bytesRead > most) socket.destroy()
    }, LOOK_MS)
    const timer = setTimeout(() => socket.destroy(), LINGER_MS)
    socket.once('close', () => {
      clearInterval(looking)
      clearTimeout(timer)
    })
    socket.end()
  }
}
