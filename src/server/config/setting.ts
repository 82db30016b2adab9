import { isIP } from 'node:net'
import { parseJournalUrl } from './journal-options.js'

/** One setting of the service: its kind, its default, and a sentence about it. */
export interface Setting<T> {
  /** What a value looks like, for the help. */
  readonly form: string
  readonly about: string
  readonly initial: T
  /** The value can contain a password or a key: it is never shown, and can be read from a file. */
  readonly isSecret: boolean
  /** A flag without a value means true. */
  readonly isSwitch: boolean
  /** @throws Mistake */
  read(text: string): T
}

/** A value is not valid for its setting. The message says what is valid, and never repeats the value, which can be secret. */
export class Mistake extends Error {}

interface More {
  readonly isSecret?: boolean
}

/** Any text but the empty one. */
export function text<T extends string | undefined>(
  about: string,
  form: string,
  initial: T,
  more: More = {},
): Setting<string | T> {
  return setting<string | T>(about, form, initial, more, (given) => {
    if (given === '') throw new Mistake('expected a text, got an empty one')
    return given
  })
}

export function url<T extends string | undefined>(
  about: string,
  schemes: readonly string[],
  initial: T,
): Setting<string | T> {
  const forms = schemes.map((scheme) => `${scheme}://…`).join(', ')
  return setting<string | T>(about, '<url>', initial, { isSecret: true }, (given) => {
    const parsed = URL.canParse(given) ? new URL(given) : undefined
    if (parsed === undefined || !schemes.includes(parsed.protocol.slice(0, -1))) throw new Mistake(`expected ${forms}`)
    assertRedisParts(parsed)
    return given
  })
}

/** Checks that the library makes too, but only while the service starts, and one mistake at a time. */
function assertRedisParts(given: URL): void {
  const { pathname, port, search, hash } = given
  if (port === '0') throw new Mistake('expected a port of 1 to 65535')
  if (!/^\/?\d{0,6}$/.test(pathname)) throw new Mistake('expected the number of a database behind the /')
  if (hash !== '') throw new Mistake('expected each # of a password as %23')
  if (search !== '') throw new Mistake('expected no query')
  assertEncoded(given)
}

function assertEncoded({ username, password }: URL): void {
  for (const part of [username, password]) {
    try {
      decodeURIComponent(part)
    } catch {
      throw new Mistake('expected each % of a user or password as %25')
    }
  }
}

/** An HTTP proxy. */
export function proxyUrl(about: string): Setting<string | undefined> {
  return setting<string | undefined>(about, '<url>', undefined, { isSecret: true }, (given) => {
    const parsed = URL.canParse(given) ? new URL(given) : undefined
    if (parsed === undefined || !['http:', 'https:'].includes(parsed.protocol) || parsed.port === '0')
      throw new Mistake('expected http://[user:password@]host[:port] or https://…')
    if (parsed.pathname !== '/' || parsed.search !== '' || parsed.hash !== '')
      throw new Mistake('expected nothing behind the host and the port')
    assertEncoded(parsed)
    return given
  })
}

/** The database of the journal, or `off`. */
export function journalUrl(about: string): Setting<string | undefined> {
  return setting<string | undefined>(about, '<url>|off', undefined, { isSecret: true }, (given) => {
    if (given === 'off') return given
    try {
      parseJournalUrl(given)
      return given
    } catch {
      throw new Mistake('expected sqlite:<path>, postgres://…, mysql://… or off')
    }
  })
}

/** Nodes of one cluster. */
export function urls(about: string, schemes: readonly string[]): Setting<readonly string[]> {
  return alike(about, schemes, 'expected no database: a cluster has only 0')
}

/** Sentinels of one master. */
export function sentinels(about: string, schemes: readonly string[]): Setting<readonly string[]> {
  return alike(about, schemes, 'expected no database: a sentinel has none')
}

/** URLs that differ in host and port only. */
function alike(about: string, schemes: readonly string[], noDatabase: string): Setting<readonly string[]> {
  const one = url(about, schemes, undefined)
  return setting<readonly string[]>(about, '<url,url,…>', [], { isSecret: true }, (given) => {
    const all = given.split(',').map((each) => one.read(each.trim()) ?? '')
    const [first, ...others] = all.map((each) => new URL(each))
    const isOther = ({ protocol, username, password }: URL): boolean =>
      protocol !== first?.protocol || username !== first.username || password !== first.password
    if (others.some(isOther)) throw new Mistake('expected the same scheme, user and password in all of them')
    if ([first, ...others].some((each) => /[1-9]/.test(each?.pathname ?? ''))) throw new Mistake(noDatabase)
    return all
  })
}

/** Whole numbers, with commas between them. */
export function wholes(
  about: string,
  initial: readonly number[],
  least: number,
  most: number,
): Setting<readonly number[]> {
  const one = whole(about, least, least, most)
  return setting<readonly number[]>(about, '<number,number,…>', initial, {}, (given) =>
    given.split(',').map((each) => one.read(each.trim())),
  )
}

/** Networks such as `10.1.0.0/16`, with commas between them. */
export function networkList(about: string): Setting<readonly string[]> {
  return setting<readonly string[]>(about, '<network,…>', [], {}, (given) => {
    const all = given.split(',').map((each) => each.trim())
    for (const each of all) {
      const [, address = '', bits = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(each) ?? []
      // an address with a zone (fe80::1%eth0) is not a network
      if (isIP(address) === 0 || address.includes('%') || Number(bits) > (isIP(address) === 4 ? 32 : 128))
        throw new Mistake('expected networks such as 10.1.0.0/16 or fd00::/8')
    }
    return all
  })
}

export function oneOf<T extends string>(about: string, allowed: readonly T[], initial: T): Setting<T> {
  return setting(about, allowed.join('|'), initial, {}, (given) => {
    const found = allowed.find((each) => each === given)
    if (found === undefined) throw new Mistake(`expected ${allowed.join(' or ')}`)
    return found
  })
}

export function onOff(about: string, initial: boolean): Setting<boolean> {
  const read = (given: string): boolean => {
    if (['true', 'on', 'yes', '1'].includes(given)) return true
    if (['false', 'off', 'no', '0'].includes(given)) return false
    throw new Mistake('expected true or false')
  }
  return { ...setting(about, 'true|false', initial, {}, read), isSwitch: true }
}

export function whole(about: string, initial: number, least: number, most: number): Setting<number> {
  return setting(about, '<number>', initial, {}, (given) =>
    within(/^\d{1,15}$/.test(given) ? Number(given) : NaN, least, most, String),
  )
}

const UNITS = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])
const SIZES = new Map([
  ['b', 1],
  ['kb', 1_024],
  ['mb', 1_048_576],
  ['gb', 1_073_741_824],
])

/** A whole number of milliseconds: `1500`, `1500ms`, `1.5s`, `5m`, `2h`, `7d`; units as in the library's `Duration`. */
export function duration(about: string, initial: number, least: number, most: number): Setting<number> {
  return setting(about, '<30s>', initial, {}, (given) => within(scaled(given, UNITS), least, most, (ms) => `${ms} ms`))
}

/** A number of bytes: `65536`, `64kb`, `1mb`. */
export function size(about: string, initial: number, least: number, most: number): Setting<number> {
  return setting(about, '<1mb>', initial, {}, (given) =>
    within(scaled(given, SIZES), least, most, (bytes) => `${bytes} bytes`),
  )
}

function scaled(given: string, units: ReadonlyMap<string, number>): number {
  const [, digits = '', unit = ''] = /^(\d{1,15}(?:\.\d{1,6})?)([a-z]*)$/i.exec(given) ?? []
  const factor = unit === '' ? 1 : (units.get(unit.toLowerCase()) ?? NaN)
  return digits === '' ? NaN : Math.round(Number(digits) * factor * 1e4) / 1e4
}

function within(value: number, least: number, most: number, show: (value: number) => string): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new Mistake(`expected ${show(least)} to ${show(most)}`)
}

function setting<T>(
  about: string,
  form: string,
  initial: T,
  { isSecret = false }: More,
  read: (text: string) => T,
): Setting<T> {
  return { about, form, initial, isSecret, isSwitch: false, read }
}
