/**
 * The alphabets of the exhaustive tests: what the clients A and B do, each move by one script. Where the doctor repairs
 * something, the move begins with the accident.
 */
import { lengthOf, raw } from '../support.js'
import { nameIn, type Game, type Move } from './game.js'
import { HOUR, parse, type Keyspace } from './keyspace.js'
import type { Command, Step } from './operation.js'
import { operations } from './operations.js'

const PLENTY = 60_000_000

const {
  checkOrdered,
  contains,
  copy,
  drain,
  expire,
  expireTime,
  find,
  move,
  persist,
  poll,
  pollLast,
  rename,
  filterList,
  filterSchedule,
  stats,
  inspectOrder,
  inspectSchedule,
} = operations

const offersNow: Move = ['A offers, due now', (game) => game.offer('A', 0)]
const offersSoon: Move = ['A offers, due in 10 ms', (game) => game.offer('A', 10)]
const otherOffers: Move = ['B offers, due in 10 ms', (game) => game.offer('B', 10)]
const transfers: Move = ['A transfers', (game) => game.transfer({ client: 'A', limit: 1000, announce: false })]
const timePasses: Move = ['10 ms pass', (game) => (game.now += 10)]

/** Schedules: everything that an offered message can meet. */
export const scheduleMoves: readonly Move[] = [
  offersNow,
  offersSoon,
  otherOffers,
  transfers,
  ['B transfers one because its timer fired', (game) => game.transfer({ client: 'B', limit: 1, announce: true })],
  ['A cancels by the ticket of its offer', (game) => game.cancel(game.lastOf('A'))],
  // 1 ms more than what passes, so that a transfer that is 1 ms early is noticed
  ['B moves the message of A to 11 ms from now', (game) => game.reschedule(game.lastOf('A'), 11)],
  ['B moves the message of A to now', (game) => game.reschedule(game.lastOf('A'), 0)],
  [
    'B polls',
    (game) =>
      game.step(
        poll.step(game.queue, { count: 1, bytes: PLENTY, ordered: game.layout === 'redisson', budgetUs: PLENTY }),
        (reply, { gone }) => gone.push(...(reply as string[]).map(nameIn)),
      ),
  ],
  [
    'A removes its message by value',
    (game) => {
      const name = game.lastOf('A')?.name
      if (name === undefined) return false
      const args = {
        tail: Buffer.concat([lengthOf(raw(name)), raw(name)]),
        from: 0,
        page: 10,
        bytes: PLENTY,
        remove: true,
      }
      game.step(find.step(game.queue, { ...args, ordered: game.layout === 'redisson' }), (reply, { gone }) => {
        if ((reply as { found: boolean }).found) gone.push(name)
      })
    },
  ],
  ['B takes', (game) => takes(game, { right: false })],
  timePasses,
]

/** One message is delivered, and one of each client pending, before the moves of `objectMoves`. */
export const prologue: readonly Move[] = [offersNow, transfers, otherOffers, offersSoon]

/** Lists and whole objects; with the few others that change what these find. */
export const objectMoves: readonly Move[] = [
  offersSoon,
  transfers,
  timePasses,
  ['A renames the delayed queue', (game) => renames(game, game.queue, game.other)],
  ['B renames it back', (game) => renames(game, game.other, game.queue)],
  [
    'A copies the delayed queue, and what is in the way goes',
    (game) => {
      const [from, to] = [game.queue, game.other]
      // what the other queue held would be lost on purpose
      if (game.redis.exists(to.timeouts)) return false
      const keys = { first: from.timeouts, second: from.order, newFirst: to.timeouts, newSecond: to.order }
      game.step(copy.step(keys, { replace: true, channel: to.channel }), (reply, ledger) => {
        ledger.copied ||= reply === true
      })
    },
  ],
  [
    'B moves two elements to the other list, or none',
    (game) =>
      game.step(
        move.step({ source: game.queue.destination, target: game.other.destination }, { count: 2, exactly: true }),
      ),
  ],
  [
    'A moves its last pending message to the other list',
    (game) => {
      const keys = { ...game.queue, target: game.other.destination }
      game.step(pollLast.step(keys, { ordered: game.layout === 'redisson' }), (reply, { early }) => {
        if (reply !== null) early.add(reply as string)
      })
    },
  ],
  ['B takes from the right', (game) => takes(game, { right: true })],
  [
    'B retains its own elements',
    (game) => {
      const [mine, others] = [true, false].map((own) =>
        game.offered.map(({ name }) => name).filter((name) => name.startsWith('B') === own),
      )
      const before = game.redis.list(game.queue.destination).filter((name) => others!.includes(name))
      const args = { skip: 0, page: 10, bytes: PLENTY, retain: true, mark: raw('in no list'), elements: mine!.map(raw) }
      game.step(filterList.step(game.queue, args), (reply, { gone }) => {
        if ((reply as { removed: number }).removed === before.length) gone.push(...before)
      })
    },
  ],
  [
    'A removes the pending messages of B',
    (game) => {
      const names = game.offered.map(({ name }) => name).filter((name) => name.startsWith('B'))
      const pending = game.redis.schedule(game.queue.timeouts).map(({ entry }) => nameIn(entry))
      const before = names.filter((name) => pending.includes(name))
      const first = { afterScore: '', after: Buffer.alloc(0), page: 10, bytes: PLENTY, budgetUs: PLENTY }
      const args = { ...first, ordered: game.layout === 'redisson', remove: 'matches', payloads: names.map(raw) }
      game.step(filterSchedule.step(game.queue, args), (reply, { gone }) => {
        if ((reply as { removed: number }).removed === before.length) gone.push(...before)
      })
    },
  ],
  ['A counts', (game) => game.step(stats.step(game.queue, { channel: game.queue.channel, nowMs: game.now }))],
  [
    'B looks for the first message',
    (game) =>
      game.step(contains.step(game.queue, { element: raw(game.offered[0]!.name), from: 0, page: 10, bytes: PLENTY })),
  ],
  [
    'A lets the delayed queue expire, if it does not yet',
    (game) => {
      const args = { millis: 5 * HOUR, absolute: false, condition: 'unset' }
      game.step(expire.step({ first: game.queue.timeouts, second: game.queue.order }, args))
    },
  ],
  [
    'B lets it expire no more',
    (game) => game.step(persist.step({ first: game.queue.timeouts, second: game.queue.order }, {})),
  ],
  ['A asks when it expires', (game) => game.step(expireTime.step({ key: game.queue.timeouts }, {}))],
  [
    'the doctor sets aside what was delivered and is at both ends of the order list',
    (game) => {
      const { queue, offered } = game
      const { entry, name } = offered[0]!
      const args = { from: 0, page: 10, setAside: true, mark: raw('in no list') }
      const accident: Command[] = [
        ['LPUSH', [queue.order, raw(entry)]],
        ['RPUSH', [queue.order, raw(entry)]],
      ]
      const happens = (redis: Keyspace) => {
        redis.list(queue.order).unshift(entry)
        redis.list(queue.order).push(entry)
      }
      game.step(after(accident, happens, inspectOrder.step(queue, args)), (reply, { setAside }) => {
        if ((reply as { orphans: number }).orphans === 2) setAside.add(name)
      })
    },
  ],
  [
    'the doctor puts back what fell out of the order list',
    (game) => {
      const { queue, redis } = game
      const entry = redis.list(queue.order).at(-1)
      if (entry === undefined) return false
      const due = String(redis.scoreOf(queue.timeouts, entry))
      const args = { due, prefix: raw(parse(entry)!.prefix), restore: true }
      const accident: Command[] = [['RPOP', [queue.order]]]
      game.step(after(accident, (redis) => redis.list(queue.order).pop(), checkOrdered.step(queue, args)))
    },
  ],
  [
    'the doctor looks through the schedule',
    (game) => game.step(inspectSchedule.step(game.queue, { due: '-inf', skip: 0, page: 10 })),
  ],
]

function takes(game: Game, { right }: { right: boolean }): void {
  game.step(drain.step(game.queue, { count: 1, bytes: PLENTY, right }), (reply, { gone }) =>
    gone.push(...(reply as string[])),
  )
}

function renames(game: Game, from: Game['queue'], to: Game['queue']): void {
  const keys = { first: from.timeouts, second: from.order, newFirst: to.timeouts, newSecond: to.order }
  game.step(rename.step(keys, { replace: false, channel: to.channel }))
}

/** An accident and, before anything else happens, its repair. */
function after(accident: readonly Command[], happens: (redis: Keyspace) => void, step: Step): Step {
  return {
    ...step,
    commands: [...accident, ...step.commands],
    apply(redis, reply) {
      happens(redis)
      redis.forgetEmptyKeys()
      return step.apply(redis, reply)
    },
  }
}
