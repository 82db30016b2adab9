import { queueKeys } from '../keys.js'
import type { Server } from './access.js'
import { accessTo, NEEDED, wordsOf } from './needed-commands.js'
import { isRefusal, type Refusals } from './refusals.js'

/** The rights that the connected user lacks. */
export interface AclState {
  readonly user: string
  /** Commands that every user needs, then those for single purposes. */
  readonly missing: readonly string[]
  readonly missingFor: readonly { readonly purpose: string; readonly commands: readonly string[] }[]
}

/** The command rules of a user from ACL GETUSER, and the commands of the categories in them. */
export interface AclRules {
  readonly rules: string
  readonly categories: Readonly<Record<string, readonly string[]>>
}

/** Sample keys, because only the command matters here. */
const SAMPLE = queueKeys('redelayed:doctor')

export async function inspectAcl(
  server: Server,
  isCluster: boolean,
  refusals: Refusals,
): Promise<AclState | undefined> {
  const user = await userOf(server, refusals)
  if (user === undefined) return undefined
  const may = (await byDryRun(server, user)) ?? (await byRules(server, user, refusals))
  if (may === undefined) return undefined
  const groups = await Promise.all(
    NEEDED.filter(({ onlyInCluster }) => isCluster || onlyInCluster !== true).map(async ({ purpose, commands }) => {
      const allowed = await Promise.all(commands.map((command) => may(wordsOf(command, SAMPLE))))
      return { purpose, commands: commands.filter((_, i) => allowed[i] === false).map(({ name }) => name) }
    }),
  )
  const of = (needed: boolean) =>
    groups.filter(
      ({ purpose, commands }) => commands.length > 0 && (purpose === null || purpose === 'a cluster') === needed,
    )
  return {
    user,
    missing: of(true).flatMap(({ commands }) => commands),
    missingFor: of(false).map(({ purpose, commands }) => ({ purpose: purpose ?? '', commands })),
  }
}

/** The keys and the channel of a queue that the user may not access; `undefined` if the server has no dry run. */
export async function deniedKeys(server: Server, user: string, name: string): Promise<string[] | undefined> {
  const denied = await Promise.all(
    accessTo(queueKeys(name)).map(async (words) => {
      const outcome = await dryRun(server, user, words)
      return outcome === 'key' ? [words[1] ?? ''] : outcome === undefined ? undefined : []
    }),
  )
  return denied.includes(undefined) ? undefined : denied.flatMap((keys) => keys ?? [])
}

type May = (words: readonly string[]) => Promise<boolean>

/** `undefined` before Redis 6, which has no users and permits every command. */
async function userOf(server: Server, refusals: Refusals): Promise<string | undefined> {
  try {
    return String(await server.ask('ACL', 'WHOAMI'))
  } catch (error) {
    if (!isRefusal(error)) throw error
    if (!/unknown command/i.test(error.message)) refusals.note('the rights of the user (ACL WHOAMI)', error.message)
    return undefined
  }
}

async function byDryRun(server: Server, user: string): Promise<May | undefined> {
  if ((await dryRun(server, user, ['PING'])) === undefined) return undefined
  return async (words) => (await dryRun(server, user, words)) !== 'command'
}

/**
 * Whether the user is denied the command, a key of it, or nothing; `undefined` if the server has no dry run. A command that the server
 * lacks counts as allowed.
 */
async function dryRun(
  server: Server,
  user: string,
  words: readonly string[],
): Promise<'nothing' | 'command' | 'key' | undefined> {
  try {
    const verdict = String(await server.ask('ACL', 'DRYRUN', user, ...words))
    if (verdict === 'OK') return 'nothing'
    return / to access /.test(verdict) ? 'key' : 'command'
  } catch (error) {
    if (!isRefusal(error)) throw error
    return /Command '.*' not found/i.test(error.message) ? 'nothing' : undefined
  }
}

/** The most rules, far above the number of commands, because the rules are read once for each command. */
const MAX_RULES = 20_000

/** Evaluates the rules in this process: before Redis 7, or when the dry run is refused. */
async function byRules(server: Server, user: string, refusals: Refusals): Promise<May | undefined> {
  const what = 'the rights of the user (ACL DRYRUN, ACL GETUSER)'
  const reply = await refusals.unlessRefused(what, server.ask('ACL', 'GETUSER', user))
  if (!Array.isArray(reply)) return undefined
  const rules = String(reply[reply.indexOf('commands') + 1]).slice(0, MAX_RULES)
  const categories: Record<string, readonly string[]> = {}
  for (const [, name = ''] of rules.matchAll(/[+-]@(\w+)/g)) {
    if (name === 'all') continue
    const members = await refusals.unlessRefused(what, server.ask('ACL', 'CAT', name))
    if (!Array.isArray(members)) return undefined
    categories[name] = members.map(String)
  }
  const acl: AclRules = { rules, categories }
  return async (words) => allowedBy(acl, words)
}

/** Whether the rules allow a command; the last matching rule decides. */
export function allowedBy({ rules, categories }: AclRules, words: readonly string[]): boolean {
  const command = (words[0] ?? '').toLowerCase()
  const withSubcommand = `${command}|${(words[1] ?? '').toLowerCase()}`
  const isMeant = (name: string): boolean => {
    if (name === '@all') return true
    const members = name.startsWith('@') ? (categories[name.slice(1)] ?? []) : [name]
    return members.includes(command) || members.includes(withSubcommand)
  }
  let allowed = false
  for (const rule of rules.toLowerCase().split(/\s+/)) if (isMeant(rule.slice(1))) allowed = rule.startsWith('+')
  return allowed
}
