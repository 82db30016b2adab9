import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { redisUrl } from '../../../../test/support/redis.js'
import { makeKey, type Scope } from '../../api/api-keys.js'
import { loadSettings } from '../../config/load-settings.js'
import type { ServerSettings } from '../../config/server-settings.js'
import { startService, type Service } from '../../service/service.js'

/** A message in an answer. */
export interface AnsweredMessage {
  readonly id: string
  readonly lease: string
  readonly leasedUntil: number
  readonly attempt: number
  readonly state: string
  readonly status: string
  readonly body: unknown
}

/** The JSON fields of all answers: each test says which of them it expects. */
export interface AnswerBody extends AnsweredMessage {
  readonly code: string
  readonly requestId: string
  readonly outcome: string
  readonly dueAt: number
  readonly bodyBase64: string
  readonly failures: readonly { readonly reason: string }[]
  readonly secret: string
  readonly enabled: boolean
  readonly disabled: { readonly reason: string } | null
  readonly deliveries: readonly object[]
  readonly flow: readonly { readonly change: string }[]
  readonly messages: readonly AnsweredMessage[]
  readonly results: readonly {
    readonly id?: string
    readonly topic?: string
    readonly dueAt?: number
    readonly outcome?: string
    readonly problem?: { code: string }
  }[]
  readonly errors?: readonly { readonly path: string; readonly message: string }[]
  readonly failed: number
  readonly topics: readonly { readonly name: string }[]
  readonly settings: object
  readonly counts: { readonly total: number }
  readonly cursor: string
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>
}

/** The answer of the service. */
export interface Answer {
  readonly status: number
  readonly body: AnswerBody
  readonly headers: Headers
}

export interface Ask {
  readonly key?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
  /** A raw body, instead of JSON. */
  readonly raw?: string | Uint8Array
}

/** A service of one test, on the Redis of the run, with a key that may do everything. */
export interface TestService {
  readonly service: Service
  readonly url: string
  readonly key: string
  readonly keysPath: string
  /** A topic that no other test uses; it is deleted at the end. */
  topic(name?: string): string
  ask(method: string, path: string, body?: unknown, how?: Ask): Promise<Answer>
  /** One more key, from now on. */
  addKey(scopes: readonly Scope[], topics?: readonly string[], hidePayloads?: boolean): string
  stop(): Promise<void>
}

let count = 0

export async function startTestService(
  given: Partial<ServerSettings> = {},
  pageFolder = join(tmpdir(), 'redelayed-no-page'),
): Promise<TestService> {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-service-'))
  const keysPath = join(dir, 'api-keys')
  const made = [makeKey()]
  const write = (): void => writeFileSync(keysPath, made.map(({ line }) => `${line}\n`).join(''))
  write()
  const settings = {
    ...loadSettings({ env: { REDIS_URL: given.redis ?? redisUrl() } }),
    ...{ port: 0, dataDir: dir, apiKeys: keysPath, logLevel: 'silent' as const },
    ...given,
  }
  const service = await startService(settings, '0.0.0', pageFolder)
  const key = made[0]?.key ?? ''
  const topics: string[] = []

  const ask = async (method: string, path: string, body?: unknown, how: Ask = {}): Promise<Answer> => {
    const hasBody = body !== undefined || how.raw !== undefined
    const response = await fetch(service.url + path, {
      method,
      headers: {
        authorization: `Bearer ${how.key ?? key}`,
        // no test leaves connections open
        connection: 'close',
        ...(hasBody && { 'content-type': 'application/json' }),
        ...how.headers,
      },
      ...(hasBody && { body: (how.raw ?? JSON.stringify(body)) as string }),
      ...(how.signal && { signal: how.signal }),
    })
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('content-type') ?? '')
    const json = (isJson && text !== '' ? JSON.parse(text) : text) as AnswerBody
    return { status: response.status, body: json, headers: response.headers }
  }
  return {
    service,
    url: service.url,
    key,
    keysPath,
    topic(given) {
      const name = given ?? `test-${process.pid}-${Date.now().toString(36)}-${count++}`
      topics.push(name)
      return name
    },
    ask,
    addKey(scopes, of, hidePayloads) {
      const one = makeKey(scopes, of, hidePayloads)
      made.push(one)
      write()
      return one.key
    },
    async stop() {
      await Promise.all(topics.map((name) => ask('DELETE', `/v1/topics/${name}?force`).catch(() => undefined)))
      await service.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
