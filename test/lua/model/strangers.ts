/** Values that other programs and accidents can leave in a queue: no script writes them, but every script must cope with them. */
import fc from 'fast-check'
import { ordered, raw, unordered } from '../support.js'
import * as draws from './draws.js'
import { text } from './keyspace.js'
import { drafts, type Command, type Draft, type World } from './operation.js'

const malformed = fc.string({ maxLength: 3, unit: fc.constantFrom('\x00', '\x05', '\x08', 'z', '\xff') })

function write(name: string, commands: Command[], apply: (redis: World['redis']) => void) {
  return { name, commands, decode: () => null, apply: (redis: World['redis']) => (apply(redis), null) }
}

export function strangers(poison: boolean): fc.Arbitrary<Draft> {
  const delivered = drafts(
    'push to the destination',
    fc.array(draws.payload, { minLength: 1, maxLength: 4 }),
    ({ queue }, payloads) =>
      write('RPUSH', [['RPUSH', [queue.destination, ...payloads.map(raw)]]], (redis) =>
        redis.list(queue.destination).push(...payloads),
      ),
  )
  // an id of 7 bytes reads as the old format, which is in the order list; this one is not
  const odd = drafts(
    'an entry with an odd id',
    fc.record({ payload: draws.payload, idBytes: fc.constantFrom(0, 1, 7, 12), delay: fc.nat({ max: 40 }) }),
    ({ queue, now }, { payload, idBytes, delay }) =>
      schedule(queue.timeouts, text(unordered('', payload, idBytes)), now + delay),
  )
  if (!poison) return fc.oneof(delivered, odd)

  const unreadable = drafts(
    'malformed',
    fc.record({
      bytes: malformed,
      delay: fc.oneof({ weight: 6, arbitrary: fc.integer({ min: -5, max: 30 }) }, fc.constant('the last')),
      order: fc.constantFrom(0, 1, 2),
    }),
    ({ queue, now }, { bytes, delay, order }) =>
      schedule(queue.timeouts, bytes, now + draws.delayMs(delay, now), queue.order, order),
  )
  const negative = drafts(
    'negative',
    fc.record({
      entry: fc.oneof(draws.entry, malformed),
      due: fc.integer({ min: -3, max: -1 }),
      order: fc.constantFrom(0, 1),
    }),
    ({ queue, layout }, { entry, due, order }) => {
      const bytes = typeof entry === 'string' ? entry : draws.entryOf(entry, layout)
      return schedule(queue.timeouts, bytes, due, queue.order, order)
    },
  )
  // as many as one transfer sets aside, and more
  const manyNegative = drafts('many negative', fc.integer({ min: 99, max: 102 }), ({ queue }, count) => {
    const entries = Array.from({ length: count }, (_, n) => text(ordered(`n${String(n).padStart(3, '0')}`, 'p')))
    return write('ZADD', [['ZADD', [queue.timeouts, ...entries.flatMap((entry) => ['-1', raw(entry)])]]], (redis) =>
      entries.forEach((entry) => redis.put(queue.timeouts, entry, -1)),
    )
  })
  // one that was delivered already, as a client that was killed between two commands leaves it, or one a second time
  const stale = drafts(
    'once more in the order list',
    fc.record({ entry: draws.entry, listed: fc.option(draws.which, { freq: 2 }) }),
    ({ redis, queue, layout }, drawn) => {
      const known = drawn.listed === null ? undefined : draws.pick(redis.list(queue.order), drawn.listed)
      const entry = known ?? draws.entryOf(drawn.entry, layout)
      return write('RPUSH', [['RPUSH', [queue.order, raw(entry)]]], (redis) => redis.list(queue.order).push(entry))
    },
  )
  const unlisted = drafts('out of the order list', draws.which, ({ redis, queue }, which) => {
    const entry = draws.pick(redis.list(queue.order), which)
    if (entry === undefined) return null
    return write('LREM', [['LREM', [queue.order, '1', raw(entry)]]], (redis) => {
      redis.pull(queue.order, entry)
      redis.forgetEmptyKeys()
    })
  })
  return fc.oneof(
    { weight: 6, arbitrary: delivered },
    { weight: 3, arbitrary: odd },
    { weight: 9, arbitrary: unreadable },
    { weight: 6, arbitrary: negative },
    { weight: 1, arbitrary: manyNegative },
    { weight: 12, arbitrary: stale },
    { weight: 4, arbitrary: unlisted },
  )
}

/** In the schedule, and so often in the order list. */
function schedule(timeouts: string, entry: string, score: number, order = '', copies = 0) {
  const commands: Command[] = [['ZADD', [timeouts, String(score), raw(entry)]]]
  for (let n = 0; n < copies; n++) commands.push(['RPUSH', [order, raw(entry)]])
  return write('ZADD', commands, (redis) => {
    redis.put(timeouts, entry, score)
    for (let n = 0; n < copies; n++) redis.list(order).push(entry)
  })
}
