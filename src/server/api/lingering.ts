import type { FastifyInstance } from 'fastify'
import type { Socket } from 'node:net'

/** The time for a client that is still sending to read its answer and to close its side, and the most bytes that it may send meanwhile. */
const LINGER_MS = 1_000
const LINGER_BYTES = 8 * 1_048_576
/** The pause between two checks of the bytes: many lingering connections must not keep the service busy. */
const LOOK_MS = 100

/**
 * If a request is answered before all of it has arrived and its connection is then closed, data that the client still sends would reset the
 * connection, and the answer could be lost. So the service ends its side and discards incoming data for a while.
 */
export function lingerAfterEarlyAnswers(app: FastifyInstance): void {
  app.addHook('onSend', ({ raw }, _reply, _payload, done) => {
    if (!raw.complete) linger(raw.socket)
    done()
  })
}

/** Replaces `destroySoon`, by which Node ends a connection that it does not keep after an answer. */
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
