/** The reply of a command; strings are bytes, one per UTF-16 unit. */
export type Reply = null | number | string | Status | RedisError | readonly Reply[]

export class Status {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** An error as the server says it, with its code. */
export class RedisError extends Error {}

export const OK = new Status('OK')
const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'
const SYNTAX = 'ERR syntax error'

/** The changes that the checks of a simulation observe. */
export interface Observer {
  onPushed?(key: string, element: string): void
  onPopped?(key: string, element: string): void
  onFieldAdded?(key: string, field: string, value: string): void
  onFieldRemoved?(key: string, field: string): void
}

/** Members by score and, within one score, by bytes. */
class SortedSet {
  readonly scores = new Map<string, number>()
  #order: string[] | undefined

  get members(): readonly string[] {
    this.#order ??= [...this.scores.keys()].sort((a, b) => this.scoreOf(a) - this.scoreOf(b) || (a < b ? -1 : 1))
    return this.#order
  }

  scoreOf(member: string): number {
    return this.scores.get(member) ?? NaN
  }

  set(member: string, score: number): void {
    this.scores.set(member, score)
    this.#order = undefined
  }

  delete(member: string): boolean {
    this.#order = undefined
    return this.scores.delete(member)
  }
}

type Value = string[] | Map<string, string> | SortedSet | string

type Command = (store: Store, args: readonly string[]) => Reply

/** The data of a server and the commands on it that scripts and clients of ours send. */
export class Store {
  readonly observer: Observer
  readonly #now: () => number
  readonly #keys = new Map<string, { value: Value; expires?: number }>()
  /** Lists that got elements since the last look. */
  readonly pushed = new Set<string>()

  /** `now`: epoch milliseconds. */
  constructor(now: () => number, observer: Observer = {}) {
    this.#now = now
    this.observer = observer
  }

  /** Throws a `RedisError`. */
  run(command: string, args: readonly string[]): Reply {
    const known = COMMANDS[command]
    if (known === undefined) throw new RedisError(`ERR unknown command '${command}'`)
    return known(this, args)
  }

  static knows(command: string): boolean {
    return command in COMMANDS
  }

  /** All keys with their values, for comparison. */
  dump(): Record<string, unknown> {
    const dumped: Record<string, unknown> = {}
    for (const key of [...this.#keys.keys()].sort()) {
      const value = this.#entry(key)?.value
      if (value === undefined) continue
      if (value instanceof SortedSet) {
        dumped[key] = value.members.flatMap((member) => [member, scoreText(value.scoreOf(member))])
      } else if (value instanceof Map) dumped[key] = Object.fromEntries([...value].sort(([a], [b]) => (a < b ? -1 : 1)))
      else dumped[key] = value
    }
    return dumped
  }

  #entry(key: string): { value: Value; expires?: number } | undefined {
    const entry = this.#keys.get(key)
    if (entry?.expires === undefined || entry.expires > this.#now()) return entry
    this.#keys.delete(key)
    return undefined
  }

  list(key: string): string[] | undefined {
    const value = this.#entry(key)?.value
    if (value === undefined || Array.isArray(value)) return value
    throw new RedisError(WRONG_TYPE)
  }

  hash(key: string): Map<string, string> | undefined {
    const value = this.#entry(key)?.value
    if (value === undefined || value instanceof Map) return value
    throw new RedisError(WRONG_TYPE)
  }

  sortedSet(key: string): SortedSet | undefined {
    const value = this.#entry(key)?.value
    if (value === undefined || value instanceof SortedSet) return value
    throw new RedisError(WRONG_TYPE)
  }

  string(key: string): string | undefined {
    const value = this.#entry(key)?.value
    if (value === undefined || typeof value === 'string') return value
    throw new RedisError(WRONG_TYPE)
  }

  has(key: string): boolean {
    return this.#entry(key) !== undefined
  }

  put<V extends Value>(key: string, value: V): V {
    this.#keys.set(key, { value })
    return value
  }

  delete(key: string): boolean {
    const had = this.has(key)
    this.#keys.delete(key)
    return had
  }

  /** An empty value is no key. */
  drop(key: string, isEmpty: boolean): void {
    if (isEmpty) this.#keys.delete(key)
  }

  rename(from: string, to: string): void {
    const entry = this.#entry(from)
    if (entry === undefined) throw new RedisError('ERR no such key')
    this.#keys.delete(from)
    this.#keys.set(to, entry)
    if (Array.isArray(entry.value)) this.pushed.add(to)
  }

  typeOf(key: string): string {
    const value = this.#entry(key)?.value
    if (value === undefined) return 'none'
    if (Array.isArray(value)) return 'list'
    if (value instanceof Map) return 'hash'
    return value instanceof SortedSet ? 'zset' : 'string'
  }

  expiresAt(key: string): number | undefined {
    return this.#entry(key)?.expires
  }

  /** Whether there was such a key. */
  expireAt(key: string, at: number | undefined): boolean {
    const entry = this.#entry(key)
    if (entry === undefined) return false
    if (at === undefined) delete entry.expires
    else entry.expires = at
    return true
  }

  get now(): number {
    return this.#now()
  }

  /** Adds at one end, first argument first. */
  push(key: string, elements: readonly string[], end: 'left' | 'right'): number {
    const list = this.list(key) ?? this.put(key, [])
    for (const element of elements) {
      if (end === 'left') list.unshift(element)
      else list.push(element)
      this.observer.onPushed?.(key, element)
    }
    this.pushed.add(key)
    return list.length
  }

  /** Takes up to `count` from one end. */
  pop(key: string, count: number, end: 'left' | 'right'): string[] {
    const list = this.list(key)
    if (list === undefined) return []
    const taken: string[] = []
    while (taken.length < count && list.length > 0) taken.push((end === 'left' ? list.shift() : list.pop()) ?? '')
    this.drop(key, list.length === 0)
    for (const element of taken) this.observer.onPopped?.(key, element)
    return taken
  }
}

function integer(text: string | undefined): number {
  if (text === undefined || !/^-?\d+$/.test(text)) throw new RedisError('ERR value is not an integer or out of range')
  return Number(text)
}

function scoreOf(text: string | undefined): number {
  const infinite = /^([+-]?)inf$/i.exec(text ?? '')
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity
  const score = text === undefined || text.trim() === '' ? NaN : Number(text)
  if (Number.isNaN(score)) throw new RedisError('ERR value is not a valid float')
  return score
}

function scoreText(score: number): string {
  if (Number.isFinite(score)) return String(score)
  return score > 0 ? 'inf' : '-inf'
}

/** A bound of a range of scores, as a test. */
function bounds(min: string | undefined, max: string | undefined): (score: number) => boolean {
  const [low, high] = [min, max].map((text = '') => {
    const exclusive = text.startsWith('(')
    try {
      return { exclusive, at: scoreOf(exclusive ? text.slice(1) : text) }
    } catch {
      throw new RedisError('ERR min or max is not a float')
    }
  }) as [{ exclusive: boolean; at: number }, { exclusive: boolean; at: number }]
  return (score) =>
    (low.exclusive ? score > low.at : score >= low.at) && (high.exclusive ? score < high.at : score <= high.at)
}

function range<T>(list: readonly T[], from: number, to: number): T[] {
  const start = Math.max(from < 0 ? list.length + from : from, 0)
  return list.slice(start, Math.max((to < 0 ? list.length + to : to) + 1, start))
}

function need(args: readonly string[], least: number, name: string): void {
  if (args.length < least) throw new RedisError(`ERR wrong number of arguments for '${name}' command`)
}

function withScores(set: SortedSet, members: readonly string[]): string[] {
  return members.flatMap((member) => [member, scoreText(set.scoreOf(member))])
}

const COMMANDS: Readonly<Record<string, Command>> = {
  TYPE: (store, [key = '']) => new Status(store.typeOf(key)),
  EXISTS: (store, keys) => keys.filter((key) => store.has(key)).length,
  DEL: (store, keys) => keys.filter((key) => store.delete(key)).length,
  UNLINK: (store, keys) => keys.filter((key) => store.delete(key)).length,
  RENAME: (store, [from = '', to = '']) => (store.rename(from, to), OK),
  PTTL: (store, [key = '']) => {
    if (!store.has(key)) return -2
    const at = store.expiresAt(key)
    return at === undefined ? -1 : Math.ceil(at - store.now)
  },
  PEXPIRETIME: (store, [key = '']) => (store.has(key) ? (store.expiresAt(key) ?? -1) : -2),
  PEXPIRE: (store, [key = '', ms]) => (store.expireAt(key, Math.floor(store.now) + integer(ms)) ? 1 : 0),
  PERSIST: (store, [key = '']) => (store.expiresAt(key) !== undefined && store.expireAt(key, undefined) ? 1 : 0),
  GET: (store, [key = '']) => store.string(key) ?? null,
  GETRANGE: (store, [key = '', first = '', last = '']) =>
    (store.string(key) ?? '').slice(Number(first), Number(last) + 1),
  SET: (store, [key = '', value = '', ...options]) => {
    const flags = options.map((option) => option.toUpperCase())
    if (flags.includes('NX') && store.has(key)) return null
    store.put(key, value)
    const px = flags.indexOf('PX')
    if (px >= 0) store.expireAt(key, Math.floor(store.now) + integer(options[px + 1]))
    return OK
  },
  HGET: (store, [key = '', field = '']) => store.hash(key)?.get(field) ?? null,
  HMGET: (store, [key = '', ...fields]) => {
    need(fields, 1, 'hmget')
    const hash = store.hash(key)
    return fields.map((field) => hash?.get(field) ?? null)
  },
  HSET: (store, [key = '', ...pairs]) => {
    if (pairs.length === 0 || pairs.length % 2 === 1) need([], 1, 'hset')
    const hash = store.hash(key) ?? store.put(key, new Map<string, string>())
    let added = 0
    for (let at = 0; at < pairs.length; at += 2) {
      const [field = '', value = ''] = pairs.slice(at, at + 2)
      if (!hash.has(field)) {
        added++
        store.observer.onFieldAdded?.(key, field, value)
      }
      hash.set(field, value)
    }
    return added
  },
  HDEL: (store, [key = '', ...fields]) => {
    need(fields, 1, 'hdel')
    const hash = store.hash(key)
    if (hash === undefined) return 0
    const removed = fields.filter((field) => hash.delete(field))
    for (const field of removed) store.observer.onFieldRemoved?.(key, field)
    store.drop(key, hash.size === 0)
    return removed.length
  },
  HEXISTS: (store, [key = '', field = '']) => (store.hash(key)?.has(field) === true ? 1 : 0),
  HLEN: (store, [key = '']) => store.hash(key)?.size ?? 0,
  HSTRLEN: (store, [key = '', field = '']) => store.hash(key)?.get(field)?.length ?? 0,
  HKEYS: (store, [key = '']) => [...(store.hash(key)?.keys() ?? [])],
  HGETALL: (store, [key = '']) => [...(store.hash(key)?.entries() ?? [])].flat(),
  LLEN: (store, [key = '']) => store.list(key)?.length ?? 0,
  LINDEX: (store, [key = '', at]) => store.list(key)?.at(integer(at)) ?? null,
  LRANGE: (store, [key = '', from, to]) => range(store.list(key) ?? [], integer(from), integer(to)),
  LPUSH: (store, [key = '', ...elements]) => (need(elements, 1, 'lpush'), store.push(key, elements, 'left')),
  RPUSH: (store, [key = '', ...elements]) => (need(elements, 1, 'rpush'), store.push(key, elements, 'right')),
  LPOP: (store, [key = '', count]) => pop(store, key, count, 'left'),
  RPOP: (store, [key = '', count]) => pop(store, key, count, 'right'),
  LSET: (store, [key = '', at, element = '']) => {
    const list = store.list(key)
    if (list === undefined) throw new RedisError('ERR no such key')
    const place = integer(at) < 0 ? list.length + integer(at) : integer(at)
    if (place < 0 || place >= list.length) throw new RedisError('ERR index out of range')
    list[place] = element
    return OK
  },
  LTRIM: (store, [key = '', from, to]) => {
    const list = store.list(key)
    if (list === undefined) return OK
    const kept = range(list, integer(from), integer(to))
    list.splice(0, list.length, ...kept)
    store.drop(key, list.length === 0)
    return OK
  },
  LREM: (store, [key = '', count, element = '']) => {
    const list = store.list(key)
    const most = integer(count)
    if (list === undefined) return 0
    let removed = 0
    while (most === 0 || removed < Math.abs(most)) {
      const at = most < 0 ? list.lastIndexOf(element) : list.indexOf(element)
      if (at < 0) break
      list.splice(at, 1)
      removed++
    }
    store.drop(key, list.length === 0)
    return removed
  },
  LPOS: (store, [key = '', element = '', ...options]) => {
    if (options.length > 0) throw new RedisError(SYNTAX)
    const at = store.list(key)?.indexOf(element) ?? -1
    return at < 0 ? null : at
  },
  LMOVE: (store, [from = '', to = '', out = '', into = '']) => {
    store.list(to)
    const [element] = store.pop(from, 1, endOf(out))
    if (element === undefined) return null
    store.push(to, [element], endOf(into))
    return element
  },
  LMPOP: (store, args) => {
    const { keys, end, count } = manyPop(args)
    for (const key of keys) {
      const taken = store.pop(key, count, end)
      if (taken.length > 0) return [key, taken]
    }
    return null
  },
  ZADD: (store, [key = '', ...args]) => {
    const flags = new Set<string>()
    while (/^(nx|xx)$/i.test(args[0] ?? '')) flags.add((args.shift() ?? '').toUpperCase())
    if (args.length === 0 || args.length % 2 === 1) throw new RedisError(SYNTAX)
    const pairs: [number, string][] = []
    for (let at = 0; at < args.length; at += 2) pairs.push([scoreOf(args[at]), args[at + 1] ?? ''])
    const existing = store.sortedSet(key)
    if (existing === undefined && flags.has('XX')) return 0
    const set = existing ?? store.put(key, new SortedSet())
    let added = 0
    for (const [score, member] of pairs) {
      const has = set.scores.has(member)
      if (has ? flags.has('NX') : flags.has('XX')) continue
      if (!has) added++
      set.set(member, score)
    }
    store.drop(key, set.scores.size === 0)
    return added
  },
  ZREM: (store, [key = '', ...members]) => {
    need(members, 1, 'zrem')
    const set = store.sortedSet(key)
    if (set === undefined) return 0
    const removed = members.filter((member) => set.delete(member)).length
    store.drop(key, set.scores.size === 0)
    return removed
  },
  ZREMRANGEBYRANK: (store, [key = '', from, to]) => {
    const set = store.sortedSet(key)
    if (set === undefined) return 0
    const members = range(set.members, integer(from), integer(to))
    for (const member of members) set.delete(member)
    store.drop(key, set.scores.size === 0)
    return members.length
  },
  ZCARD: (store, [key = '']) => store.sortedSet(key)?.scores.size ?? 0,
  ZCOUNT: (store, [key = '', min, max]) => {
    const fits = bounds(min, max)
    return [...(store.sortedSet(key)?.scores.values() ?? [])].filter(fits).length
  },
  ZSCORE: (store, [key = '', member = '']) => {
    const score = store.sortedSet(key)?.scores.get(member)
    return score === undefined ? null : scoreText(score)
  },
  ZMSCORE: (store, [key = '', ...members]) => {
    const scores = store.sortedSet(key)?.scores
    return members.map((member) => {
      const score = scores?.get(member)
      return score === undefined ? null : scoreText(score)
    })
  },
  ZRANK: (store, [key = '', member = '']) => {
    const at = store.sortedSet(key)?.members.indexOf(member) ?? -1
    return at < 0 ? null : at
  },
  ZRANGE: (store, [key = '', from, to, ...options]) => {
    if (options.some((option) => option.toUpperCase() !== 'WITHSCORES')) throw new RedisError(SYNTAX)
    const set = store.sortedSet(key)
    const members = range(set?.members ?? [], integer(from), integer(to))
    return set !== undefined && options.length > 0 ? withScores(set, members) : members
  },
  ZRANGEBYSCORE: (store, [key = '', min, max, ...options]) => {
    const fits = bounds(min, max)
    let [offset, count, scored] = [0, Infinity, false]
    for (let at = 0; at < options.length; at++) {
      const option = options[at]?.toUpperCase()
      if (option === 'WITHSCORES') scored = true
      else if (option === 'LIMIT') {
        offset = integer(options[++at])
        count = integer(options[++at])
        if (count < 0) count = Infinity
      } else throw new RedisError(SYNTAX)
    }
    const set = store.sortedSet(key)
    if (set === undefined) return []
    const members = set.members.filter((member) => fits(set.scoreOf(member))).slice(offset, offset + count)
    return scored ? withScores(set, members) : members
  },
}

function pop(store: Store, key: string, count: string | undefined, end: 'left' | 'right'): Reply {
  const taken = store.pop(key, count === undefined ? 1 : integer(count), end)
  if (taken.length === 0) return null
  return count === undefined ? (taken[0] ?? null) : taken
}

export function endOf(text: string): 'left' | 'right' {
  return text.toUpperCase() === 'RIGHT' ? 'right' : 'left'
}

/** The elements that LMPOP and, after its timeout, BLMPOP take. */
export function manyPop(args: readonly string[]): { keys: readonly string[]; end: 'left' | 'right'; count: number } {
  const many = integer(args[0])
  const [end = '', , count = '1'] = args.slice(many + 1)
  return { keys: args.slice(1, many + 1), end: endOf(end), count: integer(count) }
}
