import type { Redis } from 'ioredis'
import { breakOff } from '../connections/break-off.js'
import { ProtocolError } from './reply-scanner.js'

/** How often, while replies come. A PING costs the server as much as any other small command. */
const EVERY_MS = 100
/** Only after so many pieces of replies: without constant traffic a lost reply is noticed because it never comes, and one too many at once. */
const LEAST_PIECES = 4

/**
 * Asks now and then for a reply that only one command can have. Where a reply was lost or came twice, each command has that of its
 * neighbour from then on, and as long as there is traffic nothing else would show it. From when the client connects.
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
        // a server that passes over the argument says what no other command is answered
        if (reply !== expected && reply !== 'PONG')
          breakOff(redis, new ProtocolError('the replies are not in the order of the commands'))
      }, again) // a refusal says nothing of the order
    })
  })
  return redis
}
