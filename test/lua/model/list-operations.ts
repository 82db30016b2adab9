/** The scripts that work on lists of delivered elements. */
import fc from 'fast-check'
import { contains, drain, move, filterList } from '../../../src/store/scripts.js'
import { raw } from '../support.js'
import * as draws from './draws.js'
import { isFull, text, upToBytes } from './keyspace.js'
import { operation } from './operation.js'

export const listOperations = {
  contains: operation(contains, {
    draw: fc.record({ element: draws.payload, page: draws.page }),
    run: ({ queue }, { element, page }) => ({ keys: queue, args: { element: raw(element), ...page } }),
    apply(redis, { destination }, { element, from, page, bytes }) {
      const list = redis.list(destination).slice(from, from + page)
      const seen = upToBytes(list, bytes)
      const at = seen.indexOf(text(element))
      const isLast = list.length < page && !isFull(seen, bytes)
      return { index: at === -1 ? null : from + at, next: at !== -1 || isLast ? null : from + seen.length }
    },
  }),

  drain: operation(drain, {
    draw: fc.record({ count: draws.count, bytes: draws.bytes, right: fc.boolean() }),
    run: ({ queue }, args) => ({ keys: queue, args }),
    apply(redis, { destination }, { count, bytes, right }) {
      const list = redis.list(destination)
      if (right) list.reverse()
      const taken = list.splice(0, upToBytes(list.slice(0, count), bytes).length)
      if (right) list.reverse()
      return taken.map(raw)
    },
  }),

  move: operation(move, {
    draw: fc.record({ count: draws.count, exactly: fc.boolean(), far: fc.boolean() }),
    run: ({ queue, other }, { far, ...args }) => ({
      keys: { source: queue.destination, target: (far ? other : queue).destination },
      args,
    }),
    apply(redis, { source, target }, { count, exactly }) {
      const list = redis.list(source)
      const moved = exactly && list.length < count ? [] : list.splice(0, count)
      redis.list(target).push(...moved)
      return moved.map(raw)
    },
  }),

  filterList: operation(filterList, {
    weight: 2,
    draw: fc.record({
      skip: fc.nat({ max: 4 }),
      page: draws.count,
      bytes: draws.bytes,
      retain: fc.boolean(),
      elements: fc.uniqueArray(draws.payload, { minLength: 1, maxLength: 3 }),
    }),
    run: ({ queue }, { elements, ...drawn }) => ({
      keys: queue,
      args: { ...drawn, mark: raw('in no list'), elements: elements.map(raw) },
    }),
    apply(redis, { destination }, { skip, page, bytes, retain, elements }) {
      const list = redis.list(destination)
      const end = Math.max(0, list.length - skip)
      const all = list.slice(Math.max(0, end - page), end).reverse()
      const seen = upToBytes(all, bytes)
      const position = (element: string) => elements.findIndex((wanted) => text(wanted) === element)
      const kept = retain ? seen.filter((element) => position(element) !== -1) : seen
      list.splice(end - seen.length, seen.length, ...kept.toReversed())
      // what was read in the same step shows that nothing follows
      const isLast = all.length < page && seen.length === all.length
      return {
        removed: seen.length - kept.length,
        next: isLast ? null : skip + kept.length,
        found: [...new Set(seen.map(position))].filter((at) => at !== -1),
      }
    },
  }),
}
