/** The scripts with which the doctor looks for disagreements of the keys, and repairs them. */
import fc from 'fast-check'
import { checkOrdered, inspectOrder, inspectSchedule } from '../../../src/store/scripts.js'
import { raw } from '../support.js'
import * as draws from './draws.js'
import { parse, text } from './keyspace.js'
import { operation } from './operation.js'

export const doctorOperations = {
  checkOrdered: operation(checkOrdered, {
    weight: 3,
    draw: fc.record({
      which: draws.which,
      wrong: fc.oneof({ weight: 6, arbitrary: fc.constant('nothing') }, fc.constantFrom('due', 'id')),
      restore: fc.boolean(),
    }),
    run({ redis, queue }, { which, wrong, restore }) {
      const schedule = redis.schedule(queue.timeouts)
      const found = draws.pick(
        schedule.filter(({ entry }) => parse(entry) !== null),
        which,
      )
      if (found === undefined) return null
      const { prefix: right, inOrder } = parse(found.entry)!
      const due = wrong === 'due' ? found.score + 1 : found.score
      const prefix = right.replace(/.$/s, wrong === 'id' ? '!' : '$&')
      // as with cancelOrReschedule: of two entries with one id and due time either may be meant
      if (schedule.filter(({ entry, score }) => score === due && entry.startsWith(prefix)).length > 1) return null
      // no caller asks to list what should not be listed
      return { keys: queue, args: { due: String(due), prefix: raw(prefix), restore: restore && inOrder } }
    },
    apply(redis, { timeouts, order }, { due, prefix, restore }) {
      const start = text(prefix)
      const found = redis
        .schedule(timeouts)
        .find(({ entry, score }) => String(score) === due && entry.startsWith(start))
      const list = redis.list(order)
      if (found === undefined || list.slice(-2_000).includes(found.entry)) return false
      if (restore) list.push(found.entry)
      return true
    },
  }),

  inspectOrder: operation(inspectOrder, {
    weight: 5,
    // large enough for several orphans
    draw: fc.record({ from: fc.nat({ max: 3 }), page: fc.integer({ min: 1, max: 9 }), setAside: fc.boolean() }),
    run: ({ queue }, drawn) => ({ keys: queue, args: { ...drawn, mark: raw('in no list') } }),
    apply(redis, { timeouts, order, quarantine }, { from, page, setAside }) {
      const list = redis.list(order)
      const seen = list.slice(from, from + page)
      const pending = seen.filter((element) => redis.scoreOf(timeouts, element) !== null)
      const orphans = seen.filter((element) => redis.scoreOf(timeouts, element) === null)
      if (setAside) {
        list.splice(from, seen.length, ...pending)
        redis.list(quarantine).push(...orphans.map((element) => `order-orphan ${Date.now()} ${element}`))
      }
      const prefixes = pending.flatMap((element) => {
        const parsed = parse(element)
        if (parsed === null) return []
        // what should not be listed has an id of another length, but as many bytes of it are returned
        return [raw(parsed.inOrder ? parsed.prefix : element.slice(0, 9))]
      })
      return { examined: seen.length, orphans: orphans.length, prefixes }
    },
  }),

  inspectSchedule: operation(inspectSchedule, {
    weight: 4,
    draw: fc.record({
      behind: fc.option(
        fc.record({ which: draws.which, skip: fc.nat({ max: 3 }), moved: fc.nat({ max: 3 }).map((n) => n === 0) }),
        { freq: 1 },
      ),
      page: draws.count,
    }),
    run({ redis, queue }, { behind, page }) {
      const at = behind && draws.pick(redis.schedule(queue.timeouts), behind.which)
      if (!at) return { keys: queue, args: { due: '-inf', skip: 0, page } }
      // the entries of a due time may all have gone since the last page
      const due = String(at.score - (behind.moved ? 1 : 0))
      return { keys: queue, args: { due, skip: behind.skip, page } }
    },
    apply(redis, { timeouts }, { due, skip, page }) {
      const first = due === '-inf' ? -Infinity : Number(due)
      const schedule = redis.schedule(timeouts)
      const from = schedule.filter(({ score }) => score < first).length + skip
      const seen = schedule.slice(from, from + page)

      const last = seen.at(-1)?.score
      const ofLast = seen.filter(({ score }) => score === last).length
      const next = { due: String(last), skip: last === first ? skip + ofLast : ofLast }
      const rest = seen.filter(({ score }) => score >= 0)
      const malformed = rest.filter(({ entry }) => parse(entry) === null)
      const listed = rest.filter(({ entry }) => parse(entry)?.inOrder)
      return {
        next: seen.length < page ? null : next,
        negative: seen.length - rest.length,
        malformed: malformed.length,
        // by the server's clock: long ago for all entries but those at the end of time
        malformedDue: malformed.filter(({ score }) => score <= Date.now()).length,
        old: listed.filter(({ entry }) => parse(entry)?.prefix.length === 8).length,
        ordered: listed.map(({ entry, score }) => ({ due: String(score), prefix: raw(parse(entry)!.prefix) })),
      }
    },
  }),
}
