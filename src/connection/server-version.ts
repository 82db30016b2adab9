import type { Redis } from 'ioredis'
import { UnsupportedServerError } from '../errors.js'

const OLDEST_MAJOR = 5

/** Refuses servers older than 5.0. A user who may not call INFO is trusted. */
export async function assertVersion(redis: Redis): Promise<void> {
  let info: unknown
  try {
    info = await redis.info('server')
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return
    throw error
  }
  const version = /^redis_version:(\d+)\.(\S+)/m.exec(String(info))
  if (version !== null && Number(version[1]) < OLDEST_MAJOR) {
    throw new UnsupportedServerError(`Redis ${version[1]}.${version[2]} is too old; 5.0 or later is needed`)
  }
}

/** Who the server says it is in its INFO: `master` or `slave`. */
export function roleIn(info: string): string {
  return /^role:(\w+)/m.exec(info)?.[1] ?? 'server without a role'
}
