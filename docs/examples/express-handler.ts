// Reminders over HTTP with Express: add one with a delay, look at it, cancel it. After SIGTERM what is under way is finished.
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type ErrorRequestHandler, type Router } from 'express'
import { ConnectionError, InvalidArgumentError, ShutdownError, createClient, type ReliableQueue } from 'redelayed'
import { log, uniqueName, until, url } from './support.js'

interface Reminder {
  text: string
}

function routes(reminders: ReliableQueue<Reminder>): Router {
  const router = express.Router().use(express.json())

  router.post('/', async (request, response) => {
    const { text, delay } = (request.body ?? {}) as { text?: unknown; delay?: unknown }
    if (typeof text !== 'string' || typeof delay !== 'number') {
      response.status(400).json({ error: 'expected a text, and a delay in milliseconds' })
      return
    }
    const { id } = await reminders.add({ text }, { delay })
    response.status(202).location(`${request.baseUrl}/${id}`).json({ id })
  })

  router.get('/:id', async ({ params: { id } }, response) => {
    const found = await reminders.get(id)
    if (found === null) response.status(404).json({ error: 'sent, cancelled, or never there' })
    else response.json({ id, text: found.payload.text, state: found.state, visibleAt: new Date(found.visibleAt) })
  })

  router.delete('/:id', async ({ params: { id } }, response) => {
    if (await reminders.cancel(id)) response.sendStatus(204)
    else if (await reminders.contains(id)) response.status(409).json({ error: 'it is being sent' })
    else response.status(404).json({ error: 'sent, cancelled, or never there' })
  })
  return router
}

const onError: ErrorRequestHandler = (error, _request, response, next) => {
  if (error instanceof InvalidArgumentError) response.status(400).json({ error: 'not an id, or not a delay' })
  else if (error instanceof ConnectionError) response.status(503).json({ error: 'try again later' })
  else next(error)
}

const client = createClient({ url })
const reminders = client.getReliableQueue<Reminder>(uniqueName('express'))
const post = new EventEmitter() // stands for what sends the reminders
const worker = client.createWorker(
  reminders,
  async ({ text }, { signal }) => {
    log(`sending "${text}"`)
    post.emit('sending')
    await once(post, 'sent', { signal })
  },
  { concurrency: 10, shutdownTimeout: 10_000 },
)

const server: Server = express().use('/reminders', routes(reminders)).use(onError).listen(0, '127.0.0.1')
await once(server, 'listening')
const closed = once(process, 'SIGTERM').then(async () => {
  log('SIGTERM: no more requests, no more messages')
  const served = once(server, 'close')
  server.close() // waits for the requests under way
  await Promise.all([served, worker.close()]) // and for the handlers
  await client.shutdown()
})

// From here on it is its own user.
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/reminders`

async function call(
  method: string,
  path = '',
  body?: object,
): Promise<{ status: number; body: Record<string, string> }> {
  const json = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(`${base}${path}`, { method, ...json })
  const text = await response.text()
  log(`${method} /reminders${path} -> ${response.status} ${text}`)
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : {} }
}

try {
  const tea = await call('POST', '', { text: 'tea', delay: 60_000 })
  assert.equal(tea.status, 202)
  assert.equal((await call('GET', `/${tea.body['id']}`)).body['state'], 'delayed')
  assert.equal((await call('DELETE', `/${tea.body['id']}`)).status, 204)
  assert.equal((await call('GET', `/${tea.body['id']}`)).status, 404)
  assert.equal((await call('DELETE', `/${tea.body['id']}`)).status, 404)

  const sending = once(post, 'sending')
  const ada = await call('POST', '', { text: 'call Ada', delay: 200 })
  await sending
  assert.equal((await call('GET', `/${ada.body['id']}`)).body['state'], 'inFlight')
  assert.equal((await call('DELETE', `/${ada.body['id']}`)).status, 409)
  const sent = until(worker, ({ id }) => id === ada.body['id'])
  post.emit('sent')
  await sent
  assert.equal((await call('GET', `/${ada.body['id']}`)).status, 404)

  assert.equal((await call('POST', '', { text: 'tea' })).status, 400)
  assert.equal((await call('POST', '', { text: 'tea', delay: -1 })).status, 400)
  assert.equal(worker.counts.completed, 1)
} finally {
  await reminders.clear()
  process.kill(process.pid, 'SIGTERM')
  await closed
}
await assert.rejects(call('GET', '/any'), 'the server is closed')
await assert.rejects(reminders.size(), ShutdownError)
