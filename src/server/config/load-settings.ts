import { accessSync, constants, readFileSync } from 'node:fs'
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

/** The configuration is invalid. `problems` has a line for each mistake. */
export class ConfigError extends RedelayedError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const count = problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`
    super('ERR_CONFIG', `the configuration has ${count}:\n${problems.map((line) => `  ${line}`).join('\n')}`)
    this.problems = problems
  }
}

/** The text given for a setting, and where it came from. */
interface Given {
  readonly where: string
  readonly text: string
}

type Found = Map<SettingName, Given>

export interface Sources {
  /** The arguments after the name of the program. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Whether the file of the API keys must exist, as for starting the service. Default false. */
  readonly needsFiles?: boolean
  /** The settings that are used: the others keep their defaults, and only these are checked. Default: all. */
  readonly only?: readonly SettingName[]
}

/**
 * Loads the settings from flags, the environment and the configuration file, in this order of precedence.
 *
 * @throws ConfigError with all mistakes
 */
export function loadSettings({ args = [], env = {}, needsFiles = false, only }: Sources): ServerSettings {
  const problems: string[] = []
  const flags = new Map(fromFlags(args, problems))
  const variables = fromEnvironment(env, problems)
  const path = flags.get('config')?.text ?? env['REDELAYED_CONFIG']
  if (flags.get('config')?.text === '') problems.push('--config: expected a value')
  const lines = path === undefined || path === '' ? new Map() : fromFile(path, problems)
  const isUsed = (name: SettingName): boolean => only?.includes(name) ?? true
  const given = (name: SettingName): Given | undefined =>
    isUsed(name) ? ((flags as Found).get(name) ?? variables.get(name) ?? (lines as Found).get(name)) : undefined
  // the name that many programs and hosts use, if no other Redis is given
  const url = env['REDIS_URL']
  if (url && !given('redis') && !given('redisCluster')) variables.set('redis', { where: 'REDIS_URL', text: url })
  const values = SETTING_NAMES.map((name) => {
    const found = given(name)
    return [name, found === undefined ? SETTINGS[name].initial : valueOf(SETTINGS[name], found, problems)] as const
  })
  const settings = Object.fromEntries(values) as unknown as ServerSettings
  if (settings.redis !== undefined && settings.redisCluster.length > 0)
    problems.push('redis and redis-cluster: give one of them')
  if (settings.redisSentinels.length > 0) {
    if (settings.redisCluster.length > 0) problems.push('redis-sentinels and redis-cluster: give one of them')
    else if (given('redis') === undefined)
      problems.push('redis-sentinels: give the name of the master as the host of redis, such as redis://:password@name')
    else if (!namesMaster(settings.redis))
      problems.push('redis: expected the name of the master without a port, with redis-sentinels')
  }
  if (settings.maxBodiesBytes < Math.max(settings.maxBatchBytes, 2 * settings.maxMessageBytes))
    problems.push('max-bodies-bytes: expected at least max-batch-bytes, and twice max-message-bytes')
  const hasRedis = given('redis') !== undefined || given('redisCluster') !== undefined
  if (settings.readOnly && !hasRedis)
    problems.push('read-only: give the Redis to look at, with redis, redis-cluster or REDIS_URL')
  // a given mode needs a journal, and a service on a given Redis has none by default
  const mode = given('journalMode')
  const isMode = mode !== undefined && !problems.some((line) => line.startsWith(`${mode.where}: `))
  if (isMode && settings.journalMode !== 'off' && hasRedis && !given('journal') && !settings.readOnly)
    problems.push(`${mode.where}: there is no journal: give journal, or off`)
  const keys = given('apiKeys')
  if (needsFiles && keys !== undefined && keys.text !== '') assertReadable(keys, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return Object.freeze(settings)
}

const WHERE = ['redis', 'redisCluster', 'redisSentinels', 'journal'] as const
type Where = (typeof WHERE)[number]

/**
 * The addresses of Redis and the journal that the service would use with this environment; it ignores other variables.
 *
 * @throws ConfigError with all mistakes
 */
export function whereabouts(env: NonNullable<Sources['env']>): Pick<ServerSettings, Where> {
  const names = WHERE.flatMap((name) => [variableOf(name), `${variableOf(name)}_FILE`])
  const own = [...names, 'REDIS_URL', 'REDELAYED_CONFIG'].map((name) => [name, env[name]] as const)
  return loadSettings({ env: Object.fromEntries(own), only: WHERE })
}

/**
 * The addresses that flags name, whatever the environment has.
 *
 * @throws ConfigError with all mistakes
 */
export function whereaboutsOf(
  flags: Readonly<Partial<Record<Where, string | undefined>>>,
): Pick<ServerSettings, Where> {
  const args = WHERE.flatMap((name) => (flags[name] === undefined ? [] : [`--${flagOf(name)}=${flags[name]}`]))
  return loadSettings({ args, only: WHERE })
}

/** Whether the host of a URL, if it is valid, can be the name of a master. */
function namesMaster(url: string | undefined): boolean {
  if (url === undefined) return true
  const { hostname, port } = new URL(url)
  try {
    return decodeURIComponent(hostname) !== '' && port === ''
  } catch {
    return false
  }
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

/** The setting that a word names, and whether the word names a file with its value. */
function settingOf(word: string): { readonly name: SettingName; readonly isFile: boolean } | undefined {
  const name = BY_FLAG.get(word)
  if (name !== undefined) return { name, isFile: false }
  const secret = BY_FLAG.get(word.replace(/-file$/, ''))
  return secret !== undefined && SETTINGS[secret].isSecret ? { name: secret, isFile: true } : undefined
}

/** Variables with our prefix that are not settings: a misspelt one would silently have no effect. */
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
    if (text && path) problems.push(`${variable} and ${variable}_FILE: give one of them`)
    const given = path
      ? contentOf({ where: `${variable}_FILE`, text: path }, problems)
      : text && { where: variable, text }
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
        if (given !== undefined && found.has(known.name)) problems.push(`${where}: given twice`)
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

/** The content of a file of secrets, without the line end that editors add. */
function contentOf({ where, text }: Given, problems: string[]): Given | undefined {
  try {
    return { where, text: readFileSync(text, 'utf8').replace(/\r?\n$/, '') }
  } catch (thrown) {
    problems.push(`${where}: ${text} cannot be read: ${firstLineOf(thrown)}`)
    return undefined
  }
}

function assertReadable({ where, text }: Given, problems: string[]): void {
  try {
    accessSync(text, constants.R_OK)
  } catch (thrown) {
    problems.push(`${where}: ${text} cannot be read: ${firstLineOf(thrown)}`)
  }
}

function firstLineOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return message.split('\n', 1)[0] ?? ''
}
