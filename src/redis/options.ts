import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import type { RedisOptions } from 'ioredis'
import { InvalidArgumentError, inWords } from '../errors.js'
import { boolean, integer, nonEmptyString } from '../options.js'

export interface HostAndPort {
  /** The host's name or address. */
  readonly host: string
  /** The port. 1 to 65535; default 6379, and 26379 for a sentinel. */
  readonly port?: number | undefined
}

/**
 * A client of the user: ioredis 5.9 or later, single node, Sentinel or Cluster. A structural type, because ioredis's types differ between
 * majors.
 */
export interface IoredisClient {
  readonly status: string
  readonly isCluster: boolean
  readonly options: object
  duplicate(...args: never[]): unknown
  on(event: string, listener: () => void): unknown
}

/** The way to Redis: exactly one of `url`, `host`, `sentinels`, `cluster`, `replicated` or `redis`. */
export interface ConnectOptions {
  /**
   * `redis://[user[:password]@]host[:port][/database]`, `rediss://` for TLS. The package does not read the environment: pass
   * `process.env.REDIS_URL` yourself.
   */
  readonly url?: string | URL | undefined
  /** The server's name or address. Default `'127.0.0.1'`. */
  readonly host?: string | undefined
  /** The port of `host`. 1 to 65535; default 6379. */
  readonly port?: number | undefined
  /** The user name of Redis's ACL. Default: the server's default user. */
  readonly username?: string | undefined
  /** The password. Default: none. */
  readonly password?: string | undefined
  /** The number of the database; a cluster has only 0. 0 to 1,000,000; default 0. */
  readonly db?: number | undefined
  /** `true` for TLS with the system's authorities, or options for `tls.connect`. Default: TLS only with `rediss://`. */
  readonly tls?: boolean | TlsOptions | undefined
  /** The sentinels to ask for the master called `name`. */
  readonly sentinels?: readonly HostAndPort[] | undefined
  /** The name of the master, with `sentinels`. */
  readonly name?: string | undefined
  /** The user name for the sentinels themselves. Default: none. */
  readonly sentinelUsername?: string | undefined
  /** The password for the sentinels themselves. Default: none. */
  readonly sentinelPassword?: string | undefined
  /** Some nodes of a cluster; the client discovers the others. */
  readonly cluster?: readonly (HostAndPort | string | URL)[] | undefined
  /** A master and its replicas without sentinels, as some hosted services offer: the client uses the node whose role is master. */
  readonly replicated?: readonly (HostAndPort | string | URL)[] | undefined
  /** Further ioredis options, such as `family`, `natMap` or `connectionName`; the package overrides those that it relies on. */
  readonly ioredis?: Readonly<Record<string, unknown>> | undefined
  /** Your own ioredis client. The package sends commands on it and leaves it open at shutdown; other connections use its options. */
  readonly redis?: IoredisClient | undefined
}

export const CONNECT_OPTIONS = [
  'url',
  'host',
  'port',
  'username',
  'password',
  'db',
  'tls',
  'sentinels',
  'name',
  'sentinelUsername',
  'sentinelPassword',
  'cluster',
  'replicated',
  'ioredis',
  'redis',
] as const satisfies readonly (keyof ConnectOptions)[]

export interface Node {
  readonly host: string
  readonly port: number
}

/** The checked options in ioredis's form. */
export type Target =
  | { readonly kind: 'single'; readonly redis: RedisOptions }
  | { readonly kind: 'cluster'; readonly nodes: Node[]; readonly redis: RedisOptions }
  | { readonly kind: 'replicated'; readonly nodes: Node[]; readonly redis: RedisOptions }
  | { readonly kind: 'borrowed'; readonly client: IoredisClient }

const WAYS = ['url', 'host', 'sentinels', 'cluster', 'replicated', 'redis'] as const

/** Checks the connection options. Its errors never contain passwords. */
export function resolveTarget(options: ConnectOptions): Target {
  const ways = WAYS.filter((way) => options[way] !== undefined)
  if (ways.length > 1) {
    throw new InvalidArgumentError('options', `one of ${WAYS.join(', ')}`, inWords(ways.join(' and ')))
  }
  if (options.redis !== undefined) return { kind: 'borrowed', client: borrowed(options.redis) }
  const redis: RedisOptions = { ...options.ioredis, ...credentials(options) }
  if (options.ioredis?.['keyPrefix']) refuseKeyPrefix(options.ioredis['keyPrefix'])
  if (options.cluster !== undefined) {
    const nodes = nodesOf('cluster', options.cluster, redis, options.tls)
    if (redis.db) throw new InvalidArgumentError('db', '0 with a cluster', redis.db)
    return { kind: 'cluster', nodes, redis }
  }
  if (options.replicated !== undefined) {
    const nodes = nodesOf('replicated', options.replicated, redis, options.tls)
    return { kind: 'replicated', nodes, redis }
  }
  if (options.sentinels !== undefined) {
    const sentinels = nonEmptyList('sentinels', options.sentinels).map((node) => hostAndPort('sentinels', node, 26379))
    const name = nonEmptyString('name', options.name)
    return {
      kind: 'single',
      redis: {
        // without these ioredis would ignore `tls` here; `options` can exempt the sentinels
        ...(redis.tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: redis.tls }),
        ...redis,
        sentinels,
        name,
        sentinelUsername: options.sentinelUsername,
        sentinelPassword: options.sentinelPassword,
      },
    }
  }
  if (options.url !== undefined) {
    return { kind: 'single', redis: { ...redis, ...parseUrl(options.url, redis, options.tls) } }
  }
  return {
    kind: 'single',
    redis: { ...redis, ...hostAndPort('options', { host: options.host ?? '127.0.0.1', port: options.port }, 6379) },
  }
}

function credentials(options: ConnectOptions): RedisOptions {
  const redis: RedisOptions = {}
  if (options.username !== undefined) redis.username = nonEmptyString('username', options.username)
  if (options.password !== undefined) {
    if (typeof options.password !== 'string')
      throw new InvalidArgumentError('password', 'a string', inWords(`a ${typeof options.password}`))
    redis.password = options.password
  }
  if (options.db !== undefined) redis.db = integer('db', options.db, 0, 1_000_000)
  if (options.tls !== undefined) {
    if (typeof options.tls === 'object' && options.tls !== null) redis.tls = { ...options.tls }
    else if (boolean('tls', options.tls)) redis.tls = {}
  }
  return redis
}

/** Reads the URL. A part that both the URL and the options give is an error, because the client must not guess. */
function parseUrl(given: string | URL, already: RedisOptions, tls: ConnectOptions['tls']): RedisOptions {
  let url: URL
  try {
    url = new URL(given)
  } catch {
    throw new InvalidArgumentError(
      'url',
      'redis://host:port/database or rediss://…, user and password before the host',
      inWords('something else'),
    )
  }
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new InvalidArgumentError('url', 'the scheme redis:// or rediss://', inWords('another'))
  }
  const redis: RedisOptions = hostAndPort(
    'url',
    {
      host: hostOf(url) || '127.0.0.1',
      port: url.port === '' ? undefined : Number(url.port),
    },
    6379,
  )
  if (url.username !== '') redis.username = unescaped('user', url.username)
  if (url.password !== '') redis.password = unescaped('password', url.password)
  const database = url.pathname.slice(1)
  if (database !== '') {
    if (!/^\d{1,6}$/.test(database))
      throw new InvalidArgumentError('database in url', 'a number', inWords('something else'))
    redis.db = Number(database)
  }
  if (url.search !== '') throw new InvalidArgumentError('url', 'no query; use the options instead', inWords('one'))
  if (url.hash !== '')
    throw new InvalidArgumentError('url', 'every # of a password escaped as %23', inWords('a bare one'))
  if (url.protocol === 'rediss:') {
    if (tls === false) throw new InvalidArgumentError('tls', 'true or options with a rediss:// URL', tls)
    if (already.tls === undefined) redis.tls = {}
  }
  for (const part of ['username', 'password', 'db'] as const) {
    if (redis[part] !== undefined && already[part] !== undefined) {
      throw new InvalidArgumentError(part, 'it either in the url or in the options', inWords('both'))
    }
  }
  return redis
}

/** The host of a URL; an IPv6 address without its brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

function unescaped(what: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new InvalidArgumentError(`${what} in url`, 'every percent sign escaped as %25', inWords('one that is not'))
  }
}

/** The nodes, and the other parts of their URLs, which apply to all nodes and so must be equal. */
function nodesOf(
  what: string,
  list: readonly (HostAndPort | string | URL)[],
  redis: RedisOptions,
  tls: ConnectOptions['tls'],
): Node[] {
  let common: RedisOptions | undefined
  const nodes = nonEmptyList(what, list).map((node) => {
    if (typeof node !== 'string' && !(node instanceof URL)) return hostAndPort(what, node, 6379)
    const { host = '127.0.0.1', port = 6379, ...shared } = parseUrl(node, redis, tls)
    if (shared.db === 0) delete shared.db // a URL need not name the database
    common ??= shared
    if (!isDeepStrictEqual(common, shared)) {
      throw new InvalidArgumentError(
        what,
        'the same scheme, user, password and database in all URLs',
        inWords('different ones'),
      )
    }
    return { host, port }
  })
  Object.assign(redis, common)
  return nodes
}

function hostAndPort(what: string, node: HostAndPort, defaultPort: number): Node {
  return {
    host: nonEmptyString(`${what}.host`, node.host),
    port: integer(`${what}.port`, node.port ?? defaultPort, 1, 65_535),
  }
}

function nonEmptyList<T>(what: string, list: readonly T[]): readonly T[] {
  if (!Array.isArray(list) || list.length === 0) throw new InvalidArgumentError(what, 'a non-empty array', list)
  return list as readonly T[]
}

function borrowed(client: IoredisClient): IoredisClient {
  const isClient =
    isObject(client) &&
    isObject(client.options) &&
    typeof client.duplicate === 'function' &&
    typeof client.status === 'string'
  if (!isClient) throw new InvalidArgumentError('redis', 'an ioredis client', client)
  const { keyPrefix, redisOptions } = client.options as { keyPrefix?: unknown; redisOptions?: { keyPrefix?: unknown } }
  if (keyPrefix) refuseKeyPrefix(keyPrefix)
  if (redisOptions?.keyPrefix) refuseKeyPrefix(redisOptions.keyPrefix)
  return client
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Refuses a `keyPrefix`: ioredis would prefix keys, but not channels nor Redisson's names, so announcements would be lost silently. */
function refuseKeyPrefix(keyPrefix: unknown): never {
  throw new InvalidArgumentError(
    'keyPrefix',
    'none on the ioredis client; use the nameMapper option instead',
    keyPrefix,
  )
}
