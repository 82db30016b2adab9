import type { Redis } from 'ioredis'
import { ConnectionError, UnsupportedServerError } from '../../errors.js'

const OLDEST_MAJOR = 5

/** Refuses sentinels and servers older than 5.0, and resolves with their INFO. Without the right to call INFO the version is not checked. */
export async function assertVersion(redis: Redis): Promise<string | undefined> {
  let info: string
  try {
    info = await redis.info('server')
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return undefined
    throw error
  }
  if (/^redis_mode:sentinel/m.test(info)) {
    throw new ConnectionError(
      'this is a sentinel and not a Redis: give its address in `sentinels`, with `name`',
      'not-applied',
    )
  }
  const version = /^redis_version:(\d+)\.(\S+)/m.exec(info)
  if (version !== null && Number(version[1]) < OLDEST_MAJOR) {
    throw new UnsupportedServerError(`Redis ${version[1]}.${version[2]} is too old; 5.0 or later is needed`)
  }
  return info
}

/** The role in the server's INFO: `master` or `slave`. */
export function roleIn(info: string): string {
  return /^role:(\w+)/m.exec(info)?.[1] ?? 'server without a role'
}

/** The `run_id` in INFO, which each server process has for itself. */
export function runIdIn(info: string | undefined): string | undefined {
  return info === undefined ? undefined : /^run_id:(\w+)/m.exec(info)?.[1]
}

/** Whether the INFO is of a server older than 6.2; false for an unknown version. */
export function isBefore62(info: string | undefined): boolean {
  const [, major, minor] = /^redis_version:(\d+)\.(\d+)/m.exec(info ?? '') ?? []
  return major !== undefined && Number(major) * 100 + Number(minor) < 602
}

/** The error of a reliable queue on a server older than 6.2. */
export function tooOldForReliable(): UnsupportedServerError {
  return new UnsupportedServerError('a reliable queue needs Redis 6.2 or later, or Valkey; nothing was sent')
}
