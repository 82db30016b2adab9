import { readFileSync } from 'node:fs'
import { RedelayedError } from 'redelayed'
import { parse } from 'yaml'
import {
  flagOf,
  SETTING_NAMES,
  SETTINGS,
  variableOf,
  type ServerSettings,
  type SettingName,
} from './server-settings.js'
import { Mistake, type Setting } from './setting.js'

/** The configuration cannot be used. `problems` has all that is wrong with it, a line each. */
export class ConfigError extends RedelayedError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const count = problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`
    super('ERR_CONFIG', `the configuration has ${count}:\n${problems.map((line) => `  ${line}`).join('\n')}`)
    this.problems = problems
  }
}

/** A text that was given for a setting, and where. */
interface Given {
  readonly where: string
  readonly text: string
}

type Found = Map<SettingName, Given>

export interface Sources {
  /** What stands after the name of the program. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * The settings of flags, environment and configuration file; a flag goes before a variable, and that before the file.
 *
 * @throws ConfigError with all mistakes
 */
export function loadSettings({ args = [], env = {} }: Sources): ServerSettings {
  const problems: string[] = []
  const flags = new Map(fromFlags(args, problems))
  const variables = fromEnvironment(env, problems)
  const path = flags.get('config')?.text ?? env['REDELAYED_CONFIG']
  const lines = path === undefined || path === '' ? new Map() : fromFile(path, problems)
  const given = (name: SettingName): Given | undefined =>
    (flags as Found).get(name) ?? variables.get(name) ?? (lines as Found).get(name)
  // the name by which many programs and hosts know it, where no other Redis is given
  const url = env['REDIS_URL']
  if (url && !given('redis') && !given('redisCluster')) variables.set('redis', { where: 'REDIS_URL', text: url })
  const values = SETTING_NAMES.map((name) => {
    const found = given(name)
    return [name, found === undefined ? SETTINGS[name].initial : valueOf(SETTINGS[name], found, problems)] as const
  })
  const settings = Object.fromEntries(values) as unknown as ServerSettings
  if (settings.redis !== undefined && settings.redisCluster.length > 0)
    problems.push('redis and redis-cluster: give one of them')
  if (settings.maxBodiesBytes < Math.max(settings.maxBatchBytes, 2 * settings.maxMessageBytes))
    problems.push('max-bodies-bytes: expected at least max-batch-bytes, and twice max-message-bytes')
  if (settings.readOnly && settings.redis === undefined && settings.redisCluster.length === 0)
    problems.push('read-only: give the Redis to look at, with redis, redis-cluster or REDIS_URL')
  if (problems.length > 0) throw new ConfigError(problems)
  return Object.freeze(settings)
}

function valueOf(setting: Setting<unknown>, { where, text }: Given, problems: string[]): unknown {
  try {
    return setting.read(text)
  } catch (thrown) {
    if (!(thrown instanceof Mistake)) throw thrown
    problems.push(`${where}: ${thrown.message}`)
    return setting.initial
  }
}

const BY_FLAG = new Map(SETTING_NAMES.map((name) => [flagOf(name), name]))

/** The setting that a word names, and whether the word names a file that has its value. */
function settingOf(word: string): { readonly name: SettingName; readonly isFile: boolean } | undefined {
  const name = BY_FLAG.get(word)
  if (name !== undefined) return { name, isFile: false }
  const secret = BY_FLAG.get(word.replace(/-file$/, ''))
  return secret !== undefined && SETTINGS[secret].isSecret ? { name: secret, isFile: true } : undefined
}

/** Variables that begin as ours and are none: a misspelt one would have no effect, in silence. */
export function unknownVariables(env: NonNullable<Sources['env']>): string[] {
  const known = new Set(['REDELAYED_CONFIG'])
  for (const name of SETTING_NAMES) {
    known.add(variableOf(name))
    if (SETTINGS[name].isSecret) known.add(`${variableOf(name)}_FILE`)
  }
  return Object.keys(env).filter((name) => name.startsWith('REDELAYED_') && !known.has(name))
}

function fromFlags(args: readonly string[], problems: string[]): Map<SettingName | 'config', Given> {
  const found = new Map<SettingName | 'config', Given>()
  const note = (name: SettingName | 'config', given: Given | undefined): void => {
    if (given === undefined) return
    if (found.has(name)) problems.push(`${given.where}: given twice`)
    found.set(name, given)
  }
  for (let at = 0; at < args.length; at++) {
    const [, word = '', assigned] = /^--([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(args[at] ?? '') ?? []
    const where = `--${word}`
    const negated = word.startsWith('no-') ? settingOf(word.slice(3)) : undefined
    if (negated !== undefined && SETTINGS[negated.name].isSwitch && assigned === undefined) {
      note(negated.name, { where, text: 'false' })
      continue
    }
    const known = word === 'config' ? ({ name: word, isFile: false } as const) : settingOf(word)
    if (known === undefined) {
      problems.push(word === '' ? `argument ${at + 1}: expected a flag` : `${where}: there is no such setting`)
      continue
    }
    const isSwitch = known.name !== 'config' && SETTINGS[known.name].isSwitch
    const next = args[at + 1]
    const isAlone = assigned === undefined && (next === undefined || next.startsWith('--'))
    if (isAlone && !isSwitch) {
      problems.push(`${where}: expected a value`)
      continue
    }
    const text = assigned ?? (isAlone ? 'true' : (args[++at] ?? ''))
    note(known.name, known.isFile ? contentOf({ where, text }, problems) : { where, text })
  }
  return found
}

function fromEnvironment(env: NonNullable<Sources['env']>, problems: string[]): Found {
  const found: Found = new Map()
  for (const name of SETTING_NAMES) {
    const variable = variableOf(name)
    const [text, path] = [env[variable], SETTINGS[name].isSecret ? env[`${variable}_FILE`] : undefined]
    if (text !== undefined && path !== undefined) problems.push(`${variable} and ${variable}_FILE: give one of them`)
    const given =
      path === undefined
        ? text && { where: variable, text }
        : contentOf({ where: `${variable}_FILE`, text: path }, problems)
    if (given) found.set(name, given)
  }
  return found
}

function fromFile(path: string, problems: string[]): Found {
  const found: Found = new Map()
  let content: unknown
  try {
    content = parse(readFileSync(path, 'utf8'))
  } catch (thrown) {
    problems.push(`config: ${path} cannot be read: ${firstLineOf(thrown)}`)
    return found
  }
  if (content === null || content === undefined) return found
  if (typeof content !== 'object' || Array.isArray(content)) {
    problems.push(`config: ${path}: expected lines such as "port: 8080"`)
    return found
  }
  for (const [word, value] of Object.entries(content)) {
    const where = `${path}: ${word}`
    const known = settingOf(word)
    if (known === undefined) problems.push(`${where}: there is no such setting`)
    else {
      const text = textOf(value)
      if (text === undefined) problems.push(`${where}: expected a text, a number, true, false or a list of texts`)
      else {
        const given = known.isFile ? contentOf({ where, text }, problems) : { where, text }
        if (given !== undefined) found.set(known.name, given)
      }
    }
  }
  return found
}

function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    const texts = value.map(textOf)
    return texts.every((each) => each !== undefined) ? texts.join(',') : undefined
  }
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** What stands in a file of secrets, without the line end that editors add. */
function contentOf({ where, text }: Given, problems: string[]): Given | undefined {
  try {
    return { where, text: readFileSync(text, 'utf8').replace(/\r?\n$/, '') }
  } catch (thrown) {
    problems.push(`${where}: ${text} cannot be read: ${firstLineOf(thrown)}`)
    return undefined
  }
}

function firstLineOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return message.split('\n', 1)[0] ?? ''
}
