import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../../../test/support/redis-server.js'
import { makeKey, type Scope } from '../../../api/api-keys.js'
import { loadSettings } from '../../../config/load-settings.js'
import { startService, type Service } from '../../../service/service.js'
import { eventually } from '../../support/eventually.js'
import { LosableRedis } from '../../support/losable-redis.js'
import { ALL, HIDDEN, LONG_ID, LONG_WORD, MARKUP } from './hostile.js'

/** The folder of the built page. */
export const PAGE_FOLDER = fileURLToPath(new URL('../../../dist/ui', import.meta.url))
const HOUR_MS = 3_600_000

interface Answer {
  readonly id: string
  readonly messages: readonly { readonly id: string; readonly lease: string }[]
  readonly counts: { readonly total: number; readonly dead: number; readonly delayed: number }
  readonly state: string
  readonly dueAt: number
  readonly enabled: boolean
  readonly paused: readonly string[]
  readonly url: string
  readonly secret: string
  readonly description: string
  readonly endpoints: readonly { readonly id: string; readonly url: string; readonly enabled: boolean }[]
  readonly settings: { readonly endpoint: string | null }
  readonly deadLetters: readonly { readonly diedAt: number }[]
  readonly restores: readonly { readonly dryRun: boolean; readonly state: string; readonly topic: string | null }[]
}

export type Ask = (method: string, path: string, body?: unknown) => Promise<Answer>

/** A service with a Redis and a journal of its own, and data of every kind that the page shows. */
export interface Stage {
  readonly url: string
  /** May do everything. */
  readonly key: string
  /** An endpoint that answers 500. */
  readonly endpoint: string
  ask: Ask
  readonly redis: Pick<LosableRedis, 'kill' | 'startAgain'>
  addKey(scopes: readonly Scope[], topics?: readonly string[], hidePayloads?: boolean): string
  /** Ends the service; the Redis, its data and the port stay. */
  stopService(): Promise<void>
  startService(): Promise<void>
  stop(): Promise<void>
}

export async function setStage(): Promise<Stage> {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-page-'))
  const redis = await LosableRedis.start(['--appendonly', 'yes', '--appendfsync', 'always'])
  const receiver = await startReceiver()
  const receiverPort = (receiver.address() as AddressInfo).port
  const apiKeys = join(dir, 'api-keys')
  const first = makeKey()
  const lines = [first.line]
  const writeKeys = (): void => writeFileSync(apiKeys, lines.map((line) => `${line}\n`).join(''))
  writeKeys()
  const settings = {
    ...loadSettings({ env: {} }),
    redis: redis.url,
    journal: `sqlite:${join(dir, 'journal.db')}`,
    port: await freePort(),
    ...{
      dataDir: dir,
      apiKeys,
      logLevel: 'silent' as const,
      maxMessageBytes: 16 * 1_048_576,
      webhookNetworks: ['127.0.0.0/8'],
      webhookPorts: [receiverPort],
    },
  }
  let service: Service | undefined = await startService(settings, '0.0.0', PAGE_FOLDER)
  const { url } = service
  const ask: Ask = async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${first.key}`,
        connection: 'close',
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return (text === '' ? {} : JSON.parse(text)) as Answer
  }
  const endpoint = await fill(ask, receiverPort)
  const stopService = async (): Promise<void> => {
    await service?.close()
    service = undefined
  }
  return {
    ...{ url, endpoint, ask, redis, stopService },
    key: first.key,
    addKey(scopes, topics, hidePayloads) {
      const { key, line } = makeKey(scopes, topics, hidePayloads)
      lines.push(line)
      writeKeys()
      return key
    },
    async startService() {
      service = await startService(settings, '0.0.0', PAGE_FOLDER)
    },
    async stop() {
      await stopService()
      await redis.stop()
      receiver.closeAllConnections()
      await new Promise((resolve) => receiver.close(resolve))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Fails each webhook, with an answer that attacks pages that show it. */
async function startReceiver(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.statusCode = 500
      response.end(ALL)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

async function fill(ask: Ask, receiverPort: number): Promise<string> {
  const push = (topic: string, ...messages: object[]) => ask('POST', `/v1/topics/${topic}/messages/batch`, { messages })

  await push(
    'orders',
    ...Array.from({ length: 40 }, (_, at) => ({
      id: `order:${7_300 + at}`,
      bizKey: `customer-${at % 7}`,
      delay: at < 6 ? 0 : Math.round(((at - 5) / 36) * HOUR_MS),
      priority: at % 3,
      headers: { source: 'shop', 'content-version': '2' },
      body: {
        order: 7_300 + at,
        customer: { id: at % 7, name: 'Ada Lovelace' },
        lines: [{ sku: `A-${at}`, count: 2 }],
      },
    })),
  )
  await push('reminders', ...Array.from({ length: 20 }, (_, at) => ({ delay: (at + 1) * 4 * HOUR_MS, body: at })))
  await push('purged', { id: 'p1', delay: HOUR_MS }, { id: 'p2', delay: HOUR_MS })
  await push('failing', { id: 'rejected', body: 1 }, { id: 'rejected-too', body: 2 })
  await ask('POST', '/v1/topics/reminders/pause', {})
  await push('carts.abandoned', { id: 'cart-1', delay: 90_000, body: { cart: 1 } })

  // hostile wherever a client can write: ids, keys, headers, bodies, reasons; names of topics as long as allowed
  await push(
    'hostile',
    {
      id: MARKUP,
      bizKey: HIDDEN,
      delay: HOUR_MS,
      headers: { [`x-${'h'.repeat(200)}`]: ALL, evil: MARKUP },
      body: { [MARKUP]: ALL },
    },
    { id: HIDDEN.replace('\0', ''), delay: HOUR_MS, body: ALL },
    { id: LONG_ID, bizKey: 'k'.repeat(500), delay: HOUR_MS, body: LONG_WORD.slice(0, 400_000) },
    { id: 'long-body', delay: HOUR_MS, body: LONG_WORD },
    { id: 'dies', body: ALL },
  )
  await push('t'.repeat(128), { id: 'x', delay: HOUR_MS })
  for (const topic of ['hostile', 'failing']) {
    const { messages } = await ask('POST', `/v1/topics/${topic}/receive`, { max: 10, wait: 5_000 })
    const leases = messages.map(({ lease }) => lease)
    await ask('POST', '/v1/leases/negative-acknowledge', {
      leases,
      reject: true,
      error: topic === 'hostile' ? ALL.slice(0, 500) : 'no such customer',
    })
  }

  const url = `http://127.0.0.1:${receiverPort}/hook`
  const { id: endpoint } = await ask('POST', '/v1/endpoints', { url, description: `Billing ${MARKUP}` })
  await ask('PUT', '/v1/topics/hooks', { endpoint, deliveryLimit: 2, retryDelays: [1] })
  await push('hooks', ...Array.from({ length: 4 }, (_, at) => ({ id: `hook-${at}`, body: { at } })))
  await eventually(async () => {
    const { counts } = await ask('GET', '/v1/topics/hooks')
    if (counts.dead < 4) throw new Error(`${counts.dead} of 4 webhooks are dead letters`)
  }, 60_000)
  return endpoint
}
