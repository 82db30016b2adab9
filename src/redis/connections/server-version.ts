import type { Redis } from 'ioredis'
import { UnsupportedServerError } from '../../errors.js'

const OLDEST_MAJOR = 5

/** Refuses servers older than 5.0, and gives what the server says of itself. A user who may not call INFO is trusted. */
export async function assertVersion(redis: Redis): Promise<string | undefined> {
  let info: string
  try {
    info = await redis.info('server')
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return undefined
    throw error
  }
  const version = /^redis_version:(\d+)\.(\S+)/m.exec(info)
  if (version !== null && Number(version[1]) < OLDEST_MAJOR) {
    throw new UnsupportedServerError(`Redis ${version[1]}.${version[2]} is too old; 5.0 or later is needed`)
  }
  return info
}

/** Who the server says it is in its INFO: `master` or `slave`. */
export function roleIn(info: string): string {
  return /^role:(\w+)/m.exec(info)?.[1] ?? 'server without a role'
}

/** Whether the INFO is of a server older than 6.2; one that says nothing is trusted. */
export function isBefore62(info: string | undefined): boolean {
  const [, major, minor] = /^redis_version:(\d+)\.(\d+)/m.exec(info ?? '') ?? []
  return major !== undefined && Number(major) * 100 + Number(minor) < 602
}

/** What a reliable queue meets on a server older than that. */
export function tooOldForReliable(): UnsupportedServerError {
  return new UnsupportedServerError('a reliable queue needs Redis 6.2 or later, or Valkey; nothing was sent')
}
