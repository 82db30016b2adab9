import type { Redis } from 'ioredis'
import { breakOff } from '../connections/break-off.js'
import { ProtocolError } from './reply-scanner.js'

/** The time between checks, while replies arrive. A PING costs the server as much as any other small command. */
const EVERY_MS = 100
/** The least pieces of replies between checks: without constant traffic a missing reply is noticed anyway, and a surplus one at once. */
const LEAST_PIECES = 4

/**
 * Sends a PING with a unique argument now and then, from the moment the client connects. After a lost or doubled reply each command gets
 * the reply of its neighbour, and during constant traffic nothing else would detect that.
 */
export function checkOrder(redis: Redis): Redis {
  let sent = 0
  redis.on('ready', () => {
    let dueAt = performance.now() + EVERY_MS
    let pieces = 0
    const again = (): void => {
      dueAt = performance.now() + EVERY_MS
    }
    redis.stream.on('data', () => {
      if (++pieces < LEAST_PIECES || performance.now() < dueAt) return
      pieces = 0
      dueAt = Infinity
      const expected = `redelayed-order-${++sent}`
      redis.ping(expected).then((reply: unknown) => {
        again()
        // `PONG` is the reply of a server that ignores the argument, and of no other command
        if (reply !== expected && reply !== 'PONG')
          breakOff(redis, new ProtocolError('the replies are not in the order of the commands'))
      }, again) // an error reply says nothing about the order
    })
  })
  return redis
}
