// A handler that meets a lock which another process holds does not wait for it: the message is redelivered later, without an
// attempt being counted, and the worker is free for others meanwhile.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { createClient, retryIn } from 'redelayed'
import { log, uniqueName, until, url } from './support.js'

const LOCK_MS = 30_000 // longer than a handler may take: the lock ends by itself when its holder dies
const RELEASE = `
  if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
  return 0`

const redis = new Redis(url)
const client = createClient({ redis }) // the same Redis and connection; the library does not close what it did not open
const name = uniqueName('lock-conflict')
const transfers = client.getReliableQueue<{ account: string }>(name)
const done: string[] = []

const lockOf = (account: string): string => `${name}:lock:${account}`

/** The token to release the lock with, or null while another process has it. */
async function acquire(account: string): Promise<string | null> {
  const token = randomUUID()
  return (await redis.set(lockOf(account), token, 'PX', LOCK_MS, 'NX')) === 'OK' ? token : null
}

/** Only with the token of its holder: it may have ended meanwhile, and another process may hold it by now. */
async function release(account: string, token: string): Promise<boolean> {
  return (await redis.eval(RELEASE, 1, lockOf(account), token)) === 1
}

try {
  const held = await acquire('ada')
  assert.ok(held !== null)
  log("another process holds the lock of ada's account")
  await transfers.addMany(['ada', 'bob', 'eve'].map((account) => ({ id: account, payload: { account } })))

  const worker = client.createWorker(
    transfers,
    async ({ account }) => {
      const token = await acquire(account)
      if (token === null) {
        log(`${account}: locked, again in 100 ms`)
        return retryIn(100)
      }
      try {
        log(`${account}: done`)
        done.push(account)
      } finally {
        await release(account, token)
      }
    },
    { timeout: LOCK_MS / 2 },
  )
  await until(worker, () => worker.counts.completed === 2)
  assert.deepEqual(done, ['bob', 'eve'], 'one worker at a time, and the lock did not hold it up')

  const completed = until(worker, ({ id, outcome }) => id === 'ada' && outcome === 'completed')
  assert.equal(await release('ada', 'not the token'), false)
  assert.equal(await release('ada', held), true)
  log("the lock of ada's account is free")
  const { attempt } = await completed

  assert.deepEqual(done, ['bob', 'eve', 'ada'])
  assert.ok(worker.counts.deferred >= 1)
  assert.equal(attempt, 1, 'meeting the lock was not counted')
} finally {
  await redis.del(lockOf('ada'), lockOf('bob'), lockOf('eve'))
  await transfers.clear()
  await client.shutdown()
  await redis.quit()
}
