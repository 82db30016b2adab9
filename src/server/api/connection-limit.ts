import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { bareAnswer } from './bare-answer.js'

/** The time for a refused client to read its answer and to close its side, and the most bytes that it may send meanwhile. */
const LINGER_MS = 1_000
const LINGER_BYTES = 1_048_576
/** The most refused connections that are open; one more ends the oldest of them, which has its answer. */
const MOST_REFUSED = 1_000
const ANSWER = bareAnswer('too-many-connections', 'the service has --max-connections of them', ['Retry-After: 1'])

/**
 * Answers each connection beyond `most` with a problem, before it has sent a request. With `maxConnections` of Node a client could not see
 * why its connection was closed.
 * @param onRefused counts a refused connection
 */
export function limitConnections(server: Server, most: number, onRefused: () => void): void {
  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  const refused = new Set<Socket>()
  let taken = 0
  server.on('connection', (socket: Socket) => {
    if (taken >= most) {
      onRefused()
      refuse(socket, refused)
      return
    }
    taken++
    socket.once('close', () => taken--)
    for (const listener of listeners) listener.call(server, socket)
  })
}

function refuse(socket: Socket, refused: Set<Socket>): void {
  const [oldest] = refused
  if (refused.size >= MOST_REFUSED) oldest?.destroy()
  refused.add(socket)
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => {
    clearTimeout(timer)
    refused.delete(socket)
  })
  socket.once('error', () => socket.destroy()) // the client has reset it
  socket.end(ANSWER)
  // what is sent and not read would reset the connection, and the answer could be lost
  socket.on('data', () => {
    if (socket.bytesRead > LINGER_BYTES) socket.destroy()
  })
}
