import { nameOfKey, TELLING_PATTERN } from '../../keys.js'
import type { Server } from './access.js'

const KEYS_PER_SCAN = '1000'

/** The names of all delayed queues, in order; a SCAN blocks a server no longer than any other command. */
export async function discoverQueues(
  masters: readonly Server[],
  onProgress: (keys: number) => void,
): Promise<string[]> {
  const names = new Set<string>()
  for (const server of masters) {
    let cursor = '0'
    do {
      const page = await server.ask('SCAN', cursor, 'MATCH', TELLING_PATTERN, 'COUNT', KEYS_PER_SCAN)
      const [next, keys] = page as [string, string[]]
      for (const key of keys) {
        const name = nameOfKey(key)
        if (name !== null) names.add(name)
      }
      cursor = next
      onProgress(names.size)
    } while (cursor !== '0')
  }
  return [...names].sort()
}
