/** The scripts that work on whole keys: those of a delayed queue together, or one list. */
import fc from 'fast-check'
import type { QueueKeys } from '../../../src/keys.js'
import { copy, expire, expireTime, persist, rename } from '../../../src/store/scripts.js'
import { HOUR } from './keyspace.js'
import { operation, type World } from './operation.js'

const object = fc.constantFrom('delayed queue', 'list')
const target = { object, self: fc.nat({ max: 9 }).map((n) => n === 0), replace: fc.boolean() }

function keysOf(queue: QueueKeys, drawn: string): { first: string; second: string } {
  if (drawn === 'list') return { first: queue.destination, second: queue.destination }
  return { first: queue.timeouts, second: queue.order }
}

function toOther({ queue, other }: World, drawn: { object: string; self: boolean; replace: boolean }) {
  const to = drawn.self ? queue : other
  const { first: newFirst, second: newSecond } = keysOf(to, drawn.object)
  return {
    keys: { ...keysOf(queue, drawn.object), newFirst, newSecond },
    args: { replace: drawn.replace, channel: drawn.object === 'list' ? '' : to.channel },
  }
}

export const objectOperations = {
  rename: operation(rename, {
    draw: fc.record(target),
    run: toOther,
    apply(redis, { first, second, newFirst, newSecond }, { replace, channel }) {
      if (!redis.exists(first, second)) return -1
      if (!replace && redis.exists(newFirst, newSecond)) return 0
      if (first === newFirst) return 1
      redis.rename(first, newFirst)
      if (second !== first) redis.rename(second, newSecond)
      if (channel !== '') redis.announceHead(channel, newFirst)
      return 1
    },
  }),

  copy: operation(copy, {
    weight: 2,
    draw: fc.record(target),
    run: toOther,
    apply(redis, { first, second, newFirst, newSecond }, { replace, channel }) {
      if (!redis.exists(first, second) || first === newFirst) return false
      if (!replace && redis.exists(newFirst, newSecond)) return false
      redis.copy(first, newFirst)
      if (second !== first) redis.copy(second, newSecond)
      if (channel !== '') redis.announceHead(channel, newFirst)
      return true
    },
  }),

  expire: operation(expire, {
    weight: 2,
    draw: fc.record({
      object,
      hours: fc.integer({ min: -1, max: 24 }).filter((hours) => hours !== 0),
      absolute: fc.boolean(),
      condition: fc.constantFrom('always', 'unset', 'set', 'greater', 'less'),
    }),
    run({ redis, queue }, { object, hours, absolute, condition }) {
      const keys = keysOf(queue, object)
      // the milliseconds between two calls would decide which is the greater
      if ([keys.first, keys.second].some((key) => redis.expiryOf(key) === hours)) return null
      return { keys, args: { millis: hours * HOUR + (absolute ? Date.now() : 0), absolute, condition } }
    },
    apply(redis, { first, second }, { millis, absolute, condition }) {
      if (!redis.exists(first, second)) return false
      const present = redis.expiryOf(redis.exists(first) ? first : second)
      const wanted = Math.round((millis - (absolute ? Date.now() : 0)) / HOUR)
      const conditions: Record<string, boolean> = {
        always: true,
        unset: present === null,
        set: present !== null,
        greater: present !== null && wanted > present,
        less: present === null || wanted < present,
      }
      if (!conditions[condition]) return false
      for (const key of [first, second]) redis.setExpiry(key, wanted)
      return true
    },
  }),

  persist: operation(persist, {
    draw: object,
    run: ({ queue }, drawn) => ({ keys: keysOf(queue, drawn), args: {} }),
    apply(redis, { first, second }) {
      const expiring = [first, second].filter((key) => redis.expiryOf(key) !== null)
      for (const key of expiring) redis.setExpiry(key, null)
      return expiring.length > 0
    },
  }),

  expireTime: operation(expireTime, {
    draw: fc.constantFrom('timeouts' as const, 'order' as const, 'destination' as const),
    run: ({ queue }, key) => ({ keys: { key: queue[key] }, args: {} }),
    compare: (time) => (time < 0 ? time : `in ${Math.round((time - Date.now()) / HOUR)} hours`),
    apply(redis, { key }) {
      if (!redis.exists(key)) return -2
      return redis.expiryOf(key) === null ? -1 : `in ${redis.expiryOf(key)} hours`
    },
  }),
}
