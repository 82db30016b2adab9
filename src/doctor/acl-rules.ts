/** The command rules of a user from ACL GETUSER, and the commands of the categories in them. */
export interface AclRules {
  readonly rules: string
  readonly categories: Readonly<Record<string, readonly string[]>>
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
