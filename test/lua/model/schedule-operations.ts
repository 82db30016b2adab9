/** The scripts that work on pending entries. */
import fc from 'fast-check'
import {
  cancelOrReschedule,
  find,
  offer,
  offerMany,
  poll,
  pollLast,
  filterSchedule,
  stats,
  transfer,
} from '../../../src/store/scripts.js'
import { lengthOf, raw } from '../support.js'
import * as draws from './draws.js'
import { isFull, parse, text, upToBytes, type Keyspace } from './keyspace.js'
import { operation } from './operation.js'

const PLENTY = 60_000_000

export const scheduleOperations = {
  offer: operation(offer, {
    weight: 14,
    draw: fc.record({
      delay: draws.delay,
      entry: draws.entry,
      again: fc.option(draws.which, { freq: 10 }),
      repeated: fc.constantFrom('no', 'in time', 'too late'),
    }),
    run({ redis, queue, layout, now }, drawn) {
      const known = drawn.again === null ? undefined : draws.pick(redis.schedule(queue.timeouts), drawn.again)?.entry
      const entry = known ?? draws.entryOf(drawn.entry, layout)
      const args = {
        channel: queue.channel,
        nowMs: now,
        delayMs: draws.delayMs(drawn.delay, now),
        entry: raw(entry),
        ordered: parse(entry)?.inOrder ?? false,
        undeliveredUntilMs: { no: -1, 'in time': Number.MAX_SAFE_INTEGER, 'too late': 0 }[drawn.repeated],
      }
      return { keys: queue, args }
    },
    apply(redis, { timeouts, order }, { channel, nowMs, delayMs, entry, ordered, undeliveredUntilMs }) {
      const due = nowMs + delayMs
      const present = redis.scoreOf(timeouts, text(entry))
      if (undeliveredUntilMs >= 0 && present !== null) return present
      if (undeliveredUntilMs === 0) return -3
      if (!Number.isSafeInteger(due)) return -2
      if (present !== null) return -1
      redis.put(timeouts, text(entry), due)
      if (ordered) redis.list(order).push(text(entry))
      if (redis.headOf(timeouts)?.entry === text(entry)) redis.publish(channel, due)
      return due
    },
  }),

  offerMany: operation(offerMany, {
    weight: 6,
    draw: fc.record({
      items: fc.array(fc.record({ delay: draws.delay, entry: draws.entry }), { maxLength: 4 }),
      again: fc.option(draws.which, { freq: 4 }),
      resent: fc.boolean(),
    }),
    run({ redis, queue, layout, now }, { items, again, resent }) {
      const known = again === null ? undefined : draws.pick(redis.schedule(queue.timeouts), again)?.entry
      const drawn = items.map(({ delay, entry }) => [draws.delayMs(delay, now), draws.entryOf(entry, layout)] as const)
      const all = known === undefined ? drawn : [...drawn, [7, known] as const]
      const ordered = all.length > 0 && all.every(([, entry]) => parse(entry)?.inOrder ?? false)
      const args = {
        channel: queue.channel,
        nowMs: now,
        ordered,
        resent,
        delays: all.map(([delay]) => delay).join(),
        entries: all.map(([, entry]) => raw(entry)),
      }
      return { keys: queue, args }
    },
    apply(redis, { timeouts, order }, { channel, nowMs, ordered, resent, delays, entries }) {
      const others = new Map<number, number>()
      const added = new Set<string>()
      for (const [n, bytes] of entries.entries()) {
        const due = nowMs + Number(delays.split(',')[n])
        const entry = text(bytes)
        const present = redis.scoreOf(timeouts, entry)
        if (!Number.isSafeInteger(due)) others.set(n, -2)
        else if (present !== null) others.set(n, resent ? present : -1)
        else {
          redis.put(timeouts, entry, due)
          if (ordered) redis.list(order).push(entry)
          added.add(entry)
        }
      }
      const head = redis.headOf(timeouts)
      if (head !== undefined && added.has(head.entry)) redis.publish(channel, head.score)
      return { now: nowMs, others: [...others] }
    },
    compare: ({ now, others }) => ({ now, others: [...others] }),
  }),

  cancelOrReschedule: operation(cancelOrReschedule, {
    weight: 6,
    draw: fc.record({
      which: draws.which,
      delay: fc.option(draws.delay, { nil: 'cancel' as const, freq: 2 }),
      wrong: fc.oneof({ weight: 6, arbitrary: fc.constant('nothing') }, fc.constantFrom('due', 'id')),
    }),
    run({ redis, queue, now }, { which, delay, wrong }) {
      const schedule = redis.schedule(queue.timeouts)
      const found = draws.pick(
        schedule.filter(({ entry }) => parse(entry) !== null),
        which,
      )
      if (found === undefined) return null
      const due = wrong === 'due' ? found.score + 1 : found.score
      const prefix = parse(found.entry)!.prefix.replace(/.$/s, wrong === 'id' ? '!' : '$&')
      // of two entries with one id and due time either may be meant; the ids that are drawn by the library are never equal
      if (schedule.filter(({ entry, score }) => score === due && entry.startsWith(prefix)).length > 1) return null
      const delayMs = delay === 'cancel' ? -1 : draws.delayMs(delay, now)
      return { keys: queue, args: { channel: queue.channel, nowMs: now, due, prefix: raw(prefix), delayMs } }
    },
    apply(redis, { timeouts, order }, { channel, nowMs, due, prefix, delayMs }) {
      const start = text(prefix)
      const found = redis.schedule(timeouts).find(({ entry, score }) => score === due && entry.startsWith(start))
      if (found === undefined) return null
      const newDue = nowMs + delayMs
      if (!Number.isSafeInteger(newDue)) return -2
      const headBefore = redis.headOf(timeouts)
      if (delayMs < 0) {
        redis.drop(timeouts, found.entry)
        if (parse(found.entry)?.inOrder) redis.pull(order, found.entry)
      } else {
        redis.put(timeouts, found.entry, newDue)
      }
      const headAfter = redis.headOf(timeouts)
      const sameTime = redis.schedule(timeouts).filter(({ score }) => score === headAfter?.score)
      // of several that are due in one millisecond another one was announced
      const isAlone = headAfter?.entry === found.entry && sameTime.length === 1
      if (headBefore === found || isAlone) redis.announceHead(channel, timeouts)
      return delayMs < 0 ? 0 : newDue
    },
  }),

  transfer: operation(transfer, {
    weight: 8,
    draw: fc.record({
      client: fc.constantFrom('A', 'B'),
      // past the end of the lease too, and before its beginning: the clock was set back
      wait: fc.oneof({ weight: 6, arbitrary: fc.nat({ max: 30 }) }, fc.constantFrom(draws.LEASE / 2, draws.LEASE, -10)),
      limit: fc.oneof({ weight: 3, arbitrary: fc.constant(1000) }, fc.nat({ max: 3 })),
      budgetUs: fc.constantFrom(PLENTY, PLENTY, 0),
      announce: fc.boolean(),
      renew: fc.boolean(),
      bytes: fc.constantFrom(PLENTY, PLENTY, PLENTY, 1, 50),
    }),
    run(world, { wait, ...drawn }) {
      world.now += wait
      const { queue, now: nowMs } = world
      return {
        keys: queue,
        args: {
          channel: queue.channel,
          nowMs,
          leaseMs: draws.LEASE,
          leastLeaseMs: 1,
          subscribersPerLeaseMs: 1,
          idleMs: draws.IDLE,
          largeHead: '',
          largeFirst: '',
          buckets: true,
          ...drawn,
        },
      }
    },
    compare: ({ workedUs: _, ...reply }) => reply,
    apply(redis, { timeouts, order, destination, quarantine, leader }, args, reply) {
      const { channel, nowMs, budgetUs, limit, client, leaseMs, idleMs, announce, renew, bytes } = args
      const setAside = (reason: string, entry: string) => {
        redis.list(quarantine).push(`${reason} ${nowMs} ${entry}`)
        redis.drop(timeouts, entry)
        redis.pull(order, entry)
      }

      // without time to work, or with few bytes, only the server knows how far it got; but it got somewhere
      const isShort = budgetUs === 0 || bytes < PLENTY
      const asked = reply as { moved: number; malformed: number; negative: number } | undefined
      const negative = redis
        .schedule(timeouts)
        .filter(({ score }) => score < 0)
        .slice(0, isShort ? (asked?.negative ?? 1) : 100)
      for (const { entry } of negative) setAside('negative-due', entry)

      const due = redis.schedule(timeouts).filter(({ score }) => score >= 0 && score <= nowMs)
      let work = due.slice(0, limit)
      const least = bytes < PLENTY && negative.length > 0 ? 0 : 1
      if (isShort && asked !== undefined) work = work.slice(0, Math.max(least, asked.moved + asked.malformed))
      const messages = work.filter(({ entry }) => parse(entry) !== null)
      let isDisordered = false
      for (const { entry } of work) {
        const payload = parse(entry)?.payload
        if (payload === undefined) {
          setAside('malformed', entry)
          continue
        }
        redis.list(destination).push(payload)
        redis.drop(timeouts, entry)
        if (!parse(entry)?.inOrder) continue
        isDisordered ||= redis.list(order)[0] !== entry
        redis.pull(order, entry)
      }
      const isOrphan = (element: string | undefined) =>
        element !== undefined && redis.scoreOf(timeouts, element) === null
      let orphans = 0
      while (isDisordered && orphans < (budgetUs === 0 ? 1 : 100) && isOrphan(redis.list(order)[0])) {
        redis.list(quarantine).push(`order-orphan ${nowMs} ${redis.list(order).shift()}`)
        orphans++
      }

      const isBelowLeft = (redis.schedule(timeouts)[0]?.score ?? 0) < 0
      const next = isBelowLeft ? nowMs : (redis.schedule(timeouts).find(({ score }) => score >= 0)?.score ?? null)
      const lease = redis.leases.get(leader)
      const isHeld = lease !== undefined && lease.until > nowMs && lease.until <= nowMs + leaseMs
      let [holder, until] = isHeld ? [lease.client, lease.until] : [undefined, 0]
      const worked = work.length + negative.length > 0
      const renews = renew && holder === client
      let isKnown = false
      // the only subscriber takes a lease while more is due
      if (next !== null && next <= nowMs && (holder ?? client) === client) {
        isKnown = holder === client && !renews && until - nowMs >= leaseMs / 2
        if (!isKnown) {
          ;[holder, until] = [client, nowMs + leaseMs]
          redis.leases.set(leader, { client, until })
        }
      } else if (!worked) {
        isKnown = holder !== undefined && (holder !== client || (!renews && next !== null && next < until))
      }
      if ((announce || renews || worked) && !isKnown)
        redis.publish(channel, next === null ? nowMs + idleMs : Math.max(next, until))
      return {
        moved: messages.length,
        next,
        now: nowMs,
        latenessMs: messages[0] === undefined ? 0 : nowMs - messages[0].score,
        malformed: work.length - messages.length,
        negative: negative.length,
        subscribers: redis.subscribers,
        orderError: '',
        leader: holder === undefined ? 'none' : holder === client ? 'self' : 'other',
        leaseUntil: until,
        orphans,
        quarantineError: '',
        postponed: 0,
        largeHead: '',
        largeFirst: '',
        promoted: 0,
        wheelError: '',
      }
    },
  }),

  poll: operation(poll, {
    draw: fc.record({ count: draws.count, bytes: draws.bytes, ordered: fc.boolean() }),
    run: ({ queue }, args) => ({ keys: queue, args: { ...args, budgetUs: PLENTY } }),
    apply(redis, { timeouts, order }, { count, bytes, ordered }) {
      const taken: string[] = []
      const list = redis.list(order)
      if (ordered) {
        while (taken.length < count && !isFull(taken, bytes) && list.length > 0) {
          const entry = list.shift()!
          if (redis.drop(timeouts, entry)) taken.push(entry)
        }
        return taken.map(raw)
      }
      const first = redis.schedule(timeouts).slice(0, count)
      for (const entry of upToBytes(
        first.map(({ entry }) => entry),
        bytes,
      )) {
        redis.drop(timeouts, entry)
        if (parse(entry)?.inOrder !== false) redis.pull(order, entry)
        taken.push(entry)
      }
      return taken.map(raw)
    },
  }),

  pollLast: operation(pollLast, {
    weight: 3,
    draw: fc.record({ ordered: fc.boolean(), far: fc.boolean() }),
    run: ({ queue, other }, { ordered, far }) => ({
      keys: { ...queue, target: (far ? other : queue).destination },
      args: { ordered },
    }),
    apply(redis, { timeouts, order, target, quarantine }, { ordered }) {
      for (;;) {
        const entry = ordered ? redis.list(order).at(-1) : redis.schedule(timeouts).at(-1)?.entry
        if (entry === undefined) return null
        const parsed = parse(entry)
        if (ordered || parsed === null || parsed.inOrder) redis.pull(order, entry, 'right')
        if (!redis.drop(timeouts, entry)) continue
        if (parsed !== null) {
          redis.list(target).unshift(parsed.payload)
          return raw(parsed.payload)
        }
        redis.list(quarantine).push(`malformed ${Date.now()} ${entry}`)
      }
    },
  }),

  find: operation(find, {
    weight: 2,
    draw: fc.record({ payload: draws.payload, page: draws.page, ordered: fc.boolean(), remove: fc.boolean() }),
    run({ queue }, { payload, page, ordered, remove }) {
      const tail = Buffer.concat([lengthOf(raw(payload)), raw(payload)])
      return { keys: queue, args: { tail, ...page, ordered, remove } }
    },
    apply(redis, { timeouts, order }, { tail, from, page, bytes, ordered, remove }) {
      const all = ordered ? redis.list(order) : redis.schedule(timeouts).map(({ entry }) => entry)
      const seen = upToBytes(all.slice(from, from + page), bytes)
      const found = seen.find((entry) => parse(entry)?.payload === text(tail).slice(8))
      if (found !== undefined && remove) {
        redis.drop(timeouts, found)
        redis.pull(order, found)
      }
      const isLast = seen.length < page && !isFull(seen, bytes)
      return { found: found !== undefined, next: found !== undefined || isLast ? null : from + seen.length }
    },
  }),

  filterSchedule: operation(filterSchedule, {
    weight: 2,
    draw: fc.record({
      behind: fc.option(fc.record({ which: draws.which, moved: fc.boolean() })),
      page: draws.count,
      bytes: draws.bytes,
      ordered: fc.boolean(),
      remove: fc.constantFrom('matches', 'others', 'nothing'),
      budgetUs: fc.constantFrom(PLENTY, 0),
      payloads: fc.uniqueArray(draws.payload, { minLength: 1, maxLength: 3 }),
    }),
    run({ redis, queue }, { behind, payloads, ...drawn }) {
      const after = behind === null ? undefined : draws.pick(redis.schedule(queue.timeouts), behind.which)
      const args = {
        ...drawn,
        // an entry that got another due time since the last page
        afterScore: after === undefined ? '' : String(after.score - (behind?.moved ? 1 : 0)),
        after: raw(after?.entry ?? ''),
        payloads: payloads.map(raw),
      }
      return { keys: queue, args }
    },
    apply(redis, { timeouts, order }, { afterScore, after, page, bytes, ordered, remove, budgetUs, payloads }) {
      const schedule = redis.schedule(timeouts)
      const at = schedule.findIndex(({ entry, score }) => entry === text(after) && String(score) === afterScore)
      const below = afterScore === '' ? 0 : schedule.filter(({ score }) => score < Number(afterScore)).length
      const all = schedule.slice(at === -1 ? below : at + 1).slice(0, page)
      const count = upToBytes(
        all.map(({ entry }) => entry),
        bytes,
      ).length
      const seen = all.slice(0, count)

      let [removed, behind] = [0, { afterScore, after: raw(text(after)) }]
      const found = new Set<number>()
      for (const [index, { entry, score }] of seen.entries()) {
        const parsed = parse(entry)
        const position = payloads.findIndex((payload) => text(payload) === parsed?.payload)
        const concerned = parsed !== null && (parsed.inOrder || !ordered)
        if (concerned && position !== -1) found.add(position)
        if (!concerned || remove === 'nothing' || (remove === 'matches') !== (position !== -1)) {
          behind = { afterScore: String(score), after: raw(entry) }
          continue
        }
        removed++
        redis.drop(timeouts, entry)
        if (parsed.inOrder) redis.pull(order, entry)
        if (budgetUs === 0) {
          const over = all.length < page && index === all.length - 1
          return { removed, next: over ? null : behind, found: [...found] }
        }
      }
      return { removed, next: all.length < page && count === all.length ? null : behind, found: [...found] }
    },
  }),

  stats: operation(stats, {
    draw: fc.constant(null),
    run: ({ queue, now }) => ({ keys: queue, args: { channel: queue.channel, nowMs: now } }),
    apply: (redis: Keyspace, { timeouts, destination, quarantine }, { nowMs }) => ({
      now: nowMs,
      pending: redis.schedule(timeouts).length,
      overdue: redis.schedule(timeouts).filter(({ score }) => score <= nowMs).length,
      nextDue: redis.schedule(timeouts)[0]?.score ?? null,
      delivered: redis.list(destination).length,
      quarantined: redis.list(quarantine).length,
      subscribers: redis.subscribers,
      more: null,
    }),
  }),
}
