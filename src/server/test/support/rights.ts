import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'

/** The rights of a user of Redis as a guide gives them, so that they are proven to be enough. */
export function rightsIn(page: string, user: string): string[] {
  const guide = readFileSync(new URL(`../../../../docs/${page}`, import.meta.url), 'utf8')
  const [, rights] = new RegExp(`ACL SETUSER ${user} on >password ([^\`\\n]+)`).exec(guide) ?? []
  if (rights === undefined) throw new Error(`docs/${page} gives no rights to ${user}`)
  return rights.split(' ')
}

/** What a user was refused by the servers with these URLs: commands, keys and channels, each once. */
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
