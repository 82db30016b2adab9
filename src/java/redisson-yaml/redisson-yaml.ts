import { readFileSync } from 'node:fs'
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import type { Codec } from '../../codecs/codec.js'
import type { ConnectOptions, HostAndPort } from '../../redis/options.js'
import { InvalidArgumentError, UnsupportedOperationError, describe, inQuotes, inWords } from '../../errors.js'
import { quoted } from '../../text.js'
import { identityMapper, type NameMapper } from '../../keys.js'
import { onlyKnown, type Tuning } from '../../options.js'
import { parseAddress, type Address } from './address.js'
import { codecFor } from './codec-classes.js'
import { reasonToIgnore } from './ignored-settings.js'
import { natMapOf } from './nat-map.js'
import { Section } from './section.js'
import { TLS_SETTINGS, tlsOptions } from './tls.js'
import { substitute, type Variables } from './variables.js'
import { readTree } from './yaml-tree.js'

/** Options that a Redisson file lacks, or that replace its settings; tuning options too. */
export interface RedissonYamlOptions extends Tuning {
  /** Codecs by the name of the Java class in the file, for codecs of your own or with class declarations. */
  readonly codecs?: Readonly<Record<string, Codec>> | undefined
  /** Name mappers by the name of the Java class in the file. */
  readonly nameMappers?: Readonly<Record<string, NameMapper>> | undefined
  /** TLS options in place of the file's `ssl…` settings; needed if it names stores that only Java can read. */
  readonly tls?: TlsOptions | undefined
  /** The user name in place of the file's; needed if the file names a `credentialsResolver`. */
  readonly username?: string | undefined
  /** The password in place of the file's. */
  readonly password?: string | undefined
  /** Further ioredis options. */
  readonly ioredis?: Readonly<Record<string, unknown>> | undefined
  /** The values of `${NAME}`. Default: the environment. */
  readonly variables?: Variables | undefined
  /** Called once for each setting that is ignored. Default: `process.emitWarning`. */
  readonly onWarning?: ((warning: string) => void) | undefined
}

const OWN = [
  'codecs',
  'nameMappers',
  'tls',
  'username',
  'password',
  'ioredis',
  'variables',
  'onWarning',
] as const satisfies readonly (keyof RedissonYamlOptions)[]

/** The settings of the file, as options of `createClient`. */
export interface RedissonConfig extends ConnectOptions, Tuning {
  readonly codec: Codec
  readonly nameMapper: NameMapper
}

const MODES = [
  'singleServerConfig',
  'sentinelServersConfig',
  'clusterServersConfig',
  'replicatedServersConfig',
  'masterSlaveServersConfig',
] as const
type Mode = (typeof MODES)[number]
/** The settings of the mode, and those at the top. */
type Both = readonly [server: Section, config: Section]

/** Reads a file of Redisson, or its text. `tuning` names the options of `createClient` that may be combined with it. */
export function readRedissonYaml(
  pathOrText: string | URL,
  options: RedissonYamlOptions,
  tuning: readonly string[],
): RedissonConfig {
  onlyKnown('options', options, [...OWN, ...tuning])
  const variables = options.variables ?? process.env
  const config = new Section(readTree(textOf(pathOrText), (text, path) => substitute(text, path, variables)))
  const mode = modeOf(config)
  const server = config.section(mode) as Section
  const warn = options.onWarning ?? ((text: string) => process.emitWarning(text, 'RedissonYamlWarning'))

  const { addresses, where } = place(mode, server)
  // from Redisson 4.0 on these are at the top
  const both: Both = [server, config]
  const target = {
    ...where,
    ...credentials(both, addresses, options),
    ...security(both, mode, addresses, options.tls, warn),
    ...numbers(server),
    codec: codecFor(config, options.codecs ?? {}),
    nameMapper: mapperOf(both, options.nameMappers ?? {}),
  }
  const extras = { ...natMapOf(mode, server), ...socket(both), ...target.ioredis, ...options.ioredis }
  for (const section of both) refuse(section)
  for (const section of both) ignoreRest(section, warn)
  const chosen = Object.fromEntries(tuning.map((name) => [name, options[name as keyof Tuning]]))
  const given = Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== undefined))
  return { ...target, ioredis: extras, ...given }
}

const FILE_NAME = /^[^{}]{1,1000}\.(ya?ml|json|conf|txt|properties)$/i

/** A string with settings is the text; any other is the path of a file. */
function textOf(pathOrText: string | URL): string {
  if (typeof pathOrText === 'string' && /[\n{]|:\s/.test(pathOrText)) return pathOrText
  if (typeof pathOrText === 'string' && /^\w+:\/\//.test(pathOrText)) {
    throw new InvalidArgumentError('pathOrText', 'a path, a file URL as an object, or YAML', inWords('a URL'))
  }
  if (typeof pathOrText !== 'string' && !(pathOrText instanceof URL)) {
    throw new InvalidArgumentError('pathOrText', 'a path or YAML', pathOrText)
  }
  try {
    return readFileSync(pathOrText, 'utf8')
  } catch (thrown) {
    const path = String(pathOrText)
    // a string that is not a file name could be settings on one line, which the error of `readFile` would quote
    const shown = FILE_NAME.test(path) ? quoted(path) : describe(path)
    const why = (thrown as NodeJS.ErrnoException).code ?? 'unreadable'
    throw new InvalidArgumentError('pathOrText', 'a file that can be read, or YAML', inWords(`${shown} (${why})`))
  }
}

function modeOf(config: Section): Mode {
  const found = MODES.filter((mode) => config.has(mode))
  const [mode] = found
  if (found.length === 1 && mode !== undefined) return mode
  throw new InvalidArgumentError(
    'the YAML',
    `one of ${MODES.join(', ')}`,
    inWords(found.length === 0 ? 'none' : `${found.length} of them`),
  )
}

function place(mode: Mode, server: Section): { addresses: readonly Address[]; where: ConnectOptions } {
  const one = (name: string): Address => parseAddress(server.at(name), server.required(name))
  const several = (name: string): Address[] => {
    const list = server.list(name) ?? []
    if (list.length === 0) throw new InvalidArgumentError(server.at(name), 'a list of addresses', inWords('nothing'))
    return list.map((text, index) => parseAddress(`${server.at(name)}[${index}]`, text))
  }
  const db = server.number('database')
  const numbered = db === undefined ? {} : { db }
  const node = ({ host, port }: Address): HostAndPort => ({ host, port })
  switch (mode) {
    case 'singleServerConfig':
    case 'masterSlaveServersConfig': {
      const address = one(mode === 'singleServerConfig' ? 'address' : 'masterAddress')
      return { addresses: [address], where: { ...node(address), ...numbered } }
    }
    case 'sentinelServersConfig': {
      const addresses = several('sentinelAddresses')
      const name = server.required('masterName')
      return { addresses, where: { sentinels: addresses.map(node), name, ...numbered } }
    }
    case 'clusterServersConfig': {
      const addresses = several('nodeAddresses')
      return { addresses, where: { cluster: addresses.map(node), ...numbered } }
    }
    case 'replicatedServersConfig': {
      const addresses = several('nodeAddresses')
      return { addresses, where: { replicated: addresses.map(node), ...numbered } }
    }
  }
}

function credentials(
  [server, config]: Both,
  addresses: readonly Address[],
  options: RedissonYamlOptions,
): ConnectOptions {
  // user and password separately; those of an address override the settings, as in Redisson
  const said = [options, ...addresses, read(server), read(config)]
  const username = said.find((place) => place.username !== undefined)?.username
  const password = said.find((place) => place.password !== undefined)?.password
  for (const address of addresses) {
    if (address.username === addresses[0]?.username && address.password === addresses[0]?.password) continue
    throw new InvalidArgumentError(
      server.path,
      'the same user and password in all addresses',
      inWords('different ones'),
    )
  }
  for (const section of [server, config]) {
    const resolver = section.object('credentialsResolver')?.javaClass
    if (resolver === undefined || resolver.endsWith('.DefaultCredentialsResolver')) continue
    if (options.password !== undefined) continue
    const path = section.at('credentialsResolver')
    throw new UnsupportedOperationError(
      `${path}: ${resolver} is Java code; give { username, password } in code instead`,
    )
  }
  if (password?.startsWith('{aes}') === true) {
    throw new UnsupportedOperationError('encrypted passwords are for Redisson PRO; give { password } in code instead')
  }
  if (server.path !== 'sentinelServersConfig') return definedOnly({ username, password })
  const sentinelUsername = server.text('sentinelUsername')
  // as in Redisson: it is set only if it differs
  const sentinelPassword = server.text('sentinelPassword') ?? password
  return definedOnly({ username, password, sentinelUsername, sentinelPassword })
}

function read(section: Section): { username: string | undefined; password: string | undefined } {
  return { username: section.text('username'), password: section.text('password') }
}

function security(
  both: Both,
  mode: Mode,
  addresses: readonly Address[],
  given: TlsOptions | undefined,
  warn: (text: string) => void,
): ConnectOptions {
  const [server] = both
  const secure = addresses.some((address) => address.tls)
  if (!secure) {
    for (const section of both) {
      for (const name of TLS_SETTINGS.filter((setting) => section.take(setting) !== undefined)) {
        warn(`${section.at(name)} is ignored: the addresses are not rediss://`)
      }
    }
    return {}
  }
  if (!addresses.every((address) => address.tls)) {
    throw new InvalidArgumentError(server.path, 'either rediss:// or redis:// in all addresses', inWords('both'))
  }
  const tls = tlsOptions(both, given)
  if (mode !== 'sentinelServersConfig') return { tls }
  return { tls, ioredis: { enableTLSForSentinelMode: true, sentinelTLS: tls } }
}

const REDISSON_PING_MS = 30_000

function numbers(server: Section): Tuning {
  const connectTimeout = server.number('connectTimeout')
  const commandTimeout = server.number('timeout')
  const ping = server.number('pingConnectionInterval')
  // 0 means never in Redisson, but this package always pings; and Redisson's own default, which it writes into
  // every file, must not replace the shorter one here
  const pingInterval = ping === 0 || ping === REDISSON_PING_MS ? undefined : ping
  return definedOnly({ connectTimeout, commandTimeout, pingInterval })
}

function socket(both: Both): Record<string, unknown> {
  const connectionName = both[0].text('clientName')
  const flags = both.map((section) => section.flag('tcpNoDelay'))
  // Redisson writes its defaults, too: a value that differs from the default was set by the user
  const noDelay = flags.includes(false) ? false : flags.find((flag) => flag)
  return definedOnly({ connectionName, noDelay })
}

/** The name mapper of the file: of one at the top and one in the mode, the one that is not Redisson's default. */
function mapperOf(both: Both, given: Readonly<Record<string, NameMapper>>): NameMapper {
  const mappers = both.map((section) => {
    const javaClass = section.object('nameMapper')?.javaClass
    if (javaClass === undefined) return identityMapper
    const known = Object.hasOwn(given, javaClass) ? given[javaClass] : undefined
    if (known !== undefined) return known
    if (javaClass.endsWith('.DefaultNameMapper')) return identityMapper
    throw new UnsupportedOperationError(
      `${section.at('nameMapper')}: ${javaClass} is Java code; give its like: { nameMappers: { ${JSON.stringify(javaClass)}: { map, unmap } } }`,
    )
  })
  return mappers.find((mapper) => mapper !== identityMapper) ?? identityMapper
}

/** Refuses settings that affect where data goes or who may read it, and that this package does not support. */
function refuse(section: Section): void {
  const mapper = section.object('commandMapper')?.javaClass
  if (mapper !== undefined && !mapper.endsWith('.DefaultCommandMapper')) {
    throw new UnsupportedOperationError(`${section.at('commandMapper')}: renamed commands are not supported`)
  }
  if (section.has('secretKey')) {
    throw new UnsupportedOperationError(
      `${section.at('secretKey')}: encrypted passwords are for Redisson PRO; give { password } in code`,
    )
  }
}

function ignoreRest(section: Section, warn: (text: string) => void): void {
  for (const name of section.rest) {
    const reason = reasonToIgnore(name)
    if (reason === undefined)
      throw new InvalidArgumentError(section.path || 'the YAML', 'only settings of Redisson', inQuotes(name))
    warn(`${section.at(name)} is ignored: ${reason}`)
  }
}

function definedOnly<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T
}
