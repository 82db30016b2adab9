// Notifications to other people's servers: repeated for a day while these fail, then dead letters with their history.
// `--real` waits as long as it says; without it the day takes two and a half seconds.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RejectMessage, createClient, type HandlerContext } from 'redelayed'
import { log, uniqueName, until, url } from './support.js'

const BACKOFF = ['15s', '3m', '10m', '30m', '1h', '2h', '6h', '15h'] as const
const DELIVERIES = BACKOFF.length + 1 // the first, and one after each wait

interface Notification {
  target: string
  event: string
}

async function notify({ target, event }: Notification, { message, signal }: HandlerContext): Promise<void> {
  const response = await fetch(target, {
    method: 'POST',
    // a notification can come twice, and its id is the same each time
    headers: { 'content-type': 'application/json', 'idempotency-key': message.id },
    body: JSON.stringify({ event }),
    signal, // aborted after the worker's `timeout`
  })
  await response.body?.cancel()
  if (response.status === 410) throw new RejectMessage('the subscription is gone') // a dead letter at once
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
}

// Three servers of others: one is down for three requests, one for ever, and one has unsubscribed.
const requests: Record<string, { key: unknown; at: number }[]> = { '/shaky': [], '/down': [], '/gone': [] }
const receiver = createServer((request, response) => {
  const seen = requests[request.url ?? ''] ?? []
  seen.push({ key: request.headers['idempotency-key'], at: performance.now() })
  request.resume()
  response.writeHead(request.url === '/gone' ? 410 : request.url === '/shaky' && seen.length > 3 ? 204 : 503).end()
}).listen(0, '127.0.0.1')
await once(receiver, 'listening')
const base = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`

const backoff = process.argv.includes('--real') ? BACKOFF : BACKOFF.map(inShort)
const client = createClient({ url })
const notifications = client.getReliableQueue<Notification>(uniqueName('webhooks'))
const worker = client.createWorker(notifications, notify, { backoff, concurrency: 10, timeout: 10_000 })

worker.on('settled', ({ id, attempt, outcome, error }) => {
  const wait = outcome === 'failed' && attempt < DELIVERIES ? `, again after ${BACKOFF[attempt - 1]}` : ''
  log(`${id}, attempt ${attempt}: ${outcome}${error === undefined ? '' : ` (${error.message})`}${wait}`)
})

try {
  const ended = Promise.all([
    until(worker, ({ id, outcome }) => id === 'shaky' && outcome === 'completed'),
    until(worker, ({ id, outcome }) => id === 'gone' && outcome === 'rejected'),
    until(worker, ({ id, attempt }) => id === 'down' && attempt === DELIVERIES),
  ])
  for (const id of ['shaky', 'gone', 'down']) {
    await notifications.add({ target: `${base}/${id}`, event: 'paid' }, { id, deliveryLimit: DELIVERIES })
  }
  await ended

  const dead = new Map<string, number>()
  for await (const { id, failures } of notifications.deadLetters.listAll()) {
    dead.set(id, failures.length)
    log(`dead letter: ${id}`)
    for (const { attempt, at, reason } of failures) console.log(`            ${attempt}. ${at.toISOString()} ${reason}`)
  }

  assert.deepEqual(Object.fromEntries(dead), { gone: 1, down: DELIVERIES })
  assert.equal(await notifications.size(), 0)
  assert.deepEqual(count(requests), { '/shaky': 4, '/down': DELIVERIES, '/gone': 1 })
  for (const [path, seen] of Object.entries(requests)) {
    for (const { key } of seen) assert.equal(`/${String(key)}`, path)
  }
  if (backoff !== BACKOFF) {
    requests['/down']?.forEach(({ at }, index, all) => {
      const waited = at - (all[index - 1]?.at ?? -Infinity)
      assert.ok(waited > Number(backoff[index - 1] ?? 0) - 5, `attempt ${index + 1} came after ${waited} ms already`)
    })
  }
} finally {
  await notifications.clear()
  await notifications.deadLetters.clear()
  await client.shutdown()
  receiver.close()
}

/** An hour in a tenth of a second. */
function inShort(delay: string): number {
  const unit = { s: 1_000, m: 60_000, h: 3_600_000 }[delay.at(-1) ?? ''] ?? NaN
  return Math.ceil((Number.parseInt(delay, 10) * unit) / 36_000)
}

function count(lists: Record<string, unknown[]>): Record<string, number> {
  return Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, list.length]))
}
