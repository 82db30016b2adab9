import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'

/** The rights of a Redis user as a guide gives them, so that tests prove that they are enough. */
export function rightsIn(page: string, user: string): string[] {
  const guide = readFileSync(new URL(`../../../../docs/${page}`, import.meta.url), 'utf8')
  const [, rights] = new RegExp(`ACL SETUSER ${user} on >password ([^\`\\n]+)`).exec(guide) ?? []
  if (rights === undefined) throw new Error(`docs/${page} gives no rights to ${user}`)
  return rights.split(' ')
}

/** The commands, keys and channels that the servers with these URLs refused a user, each once. */
export async function refusedTo(user: string, urls: readonly string[]): Promise<string[]> {
  const refused = new Set<string>()
  for (const url of urls) {
    const admin = new Redis(url)
    const entries = (await admin.call('ACL', 'LOG', 1_000)) as unknown[][]
    await admin.quit()
    for (const entry of entries) {
      const of = (field: string): string => String(entry[entry.indexOf(field) + 1])
      if (of('username') === user) refused.add(`${of('reason')} ${of('object')}`)
    }
  }
  return [...refused].sort()
}
