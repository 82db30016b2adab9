/** The Redis that the whole run shares. Tests use unique names on it and delete exactly their own keys. */
import { Redis } from 'ioredis'

let shared: Redis | undefined
const names = new Set<string>()
let counter = 0

/** The URL that `npm test` found or started. */
export function redisUrl(): string {
  const url = process.env.REDIS_URL
  if (!url) throw new Error('REDIS_URL is not set: run the tests with `npm test`, which finds or starts a Redis')
  return url
}

/** One plain client for looking at raw state; it is opened before the first test and closed after the last. */
export function rawClient(): Redis {
  shared ??= new Redis(redisUrl(), { protocol: 2 })
  return shared
}

/** A queue name that no other test and no other run uses; its keys are deleted when the run ends. */
export function uniqueName(prefix = 'queue'): string {
  const name = `test:${prefix}:${process.pid}:${(counter++).toString(36)}${Math.random().toString(36).slice(2, 8)}`
  names.add(name)
  return name
}

/** Every key that a queue of this name can leave behind. */
export function keysOf(name: string): string[] {
  return [
    name,
    `redisson_delay_queue:{${name}}`,
    `redisson_delay_queue_timeout:{${name}}`,
    `redelayed:quarantine:{${name}}`,
    `redelayed:leader:{${name}}`,
    `redelayed:wheel:{${name}}`,
    `redelayed:horizon:{${name}}`,
  ]
}

export async function deleteKeysOf(name: string): Promise<void> {
  names.delete(name)
  await rawClient().del(...keysOf(name))
}

/** For the hooks: opens the shared client, so that it does not look like a leak of the first test that uses it. */
export async function openShared(): Promise<void> {
  if (process.env.REDIS_URL) await rawClient().ping()
}

/** For the hooks: deletes what `uniqueName` gave out and closes the shared client. */
export async function closeShared(): Promise<void> {
  if (shared === undefined) return
  for (const name of names) await deleteKeysOf(name)
  await shared.quit()
  shared = undefined
}
