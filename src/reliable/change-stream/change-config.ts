import { InvalidArgumentError } from '../../errors.js'
import { durationMs, type Duration } from '../../duration.js'
import { boolean, integer, oneOf, onlyKnown } from '../../options.js'

/** The changes that a queue keeps. */
export interface ChangesConfig {
  /**
   * `'recent'`: the latest changes, read or not. `'groups'`: the changes that a group has not acknowledged; at
   * `maxLength` entries the queue refuses to add messages, with a `ChangesBehindError`.
   */
  readonly keep: 'recent' | 'groups'
  /** The most entries; each script call makes one. 100 to 100,000,000; default 10,000 for `'recent'`, else 1,000,000. */
  readonly maxLength?: number | undefined
  /** The greatest age of a change in milliseconds, with `'recent'`. At least 1,000. The default of `maxLength` is then 1,000,000. */
  readonly maxAge?: Duration | undefined
  /** Whether the queue keeps headers and payloads too. Default false. */
  readonly payloads?: boolean | undefined
}

/** The stored configuration: durations are milliseconds. */
export interface StoredChangesConfig extends ChangesConfig {
  readonly maxAge?: number | undefined
}

const [LEAST_LENGTH, MOST_LENGTH] = [100, 100_000_000]
const STORED = /^([gr]),(\d{1,16}),(\d{0,16}),([01]),~?[\w-]{0,32}$/

/** The setting in the scripts' format, without the epoch; `''` for none. */
export function changesText(what: string, config: ChangesConfig | false): string {
  if (config === false) return ''
  onlyKnown(what, config, ['keep', 'maxLength', 'maxAge', 'payloads'])
  const keep = oneOf(`${what}.keep`, config.keep, ['recent', 'groups'])
  const { maxAge, payloads = false } = config
  if (maxAge !== undefined && keep === 'groups') {
    throw new InvalidArgumentError(`${what}.maxAge`, "no maxAge together with keep: 'groups'", maxAge)
  }
  const isShort = keep === 'recent' && maxAge === undefined
  const maxLength = integer(
    `${what}.maxLength`,
    config.maxLength ?? (isShort ? 10_000 : 1_000_000),
    LEAST_LENGTH,
    MOST_LENGTH,
  )
  const age = maxAge === undefined ? '' : String(durationMs(`${what}.maxAge`, maxAge, 1_000))
  const records = Number(boolean(`${what}.payloads`, payloads))
  return `${keep === 'groups' ? 'g' : 'r'},${maxLength},${age},${records}`
}

/** Reads the stored setting; `undefined` if the scripts do not accept it. */
export function readChangesText(text: string): StoredChangesConfig | undefined {
  const [, keep, maxLength, maxAge, payloads] = STORED.exec(text) ?? []
  const length = Number(maxLength)
  if (keep === undefined || length < 1 || length > MOST_LENGTH || !Number.isSafeInteger(Number(maxAge)))
    return undefined
  return {
    keep: keep === 'g' ? 'groups' : 'recent',
    maxLength: length,
    ...(maxAge !== '' && { maxAge: Number(maxAge) }),
    payloads: payloads === '1',
  }
}
