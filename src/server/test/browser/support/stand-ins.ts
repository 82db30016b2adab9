import type { BrowserContext } from 'playwright-core'

const now = Date.now()
const counts = { total: 60, visible: 6, delayed: 54, inFlight: 0, dead: 6 }
const message = {
  topic: 'orders',
  id: 'order:7300',
  bizKey: 'customer-0',
  state: 'visible',
  dueAt: now - 5_000,
  createdAt: now - 9_000,
  attempts: 0,
  priority: 0,
  size: 120,
}

const overview = {
  at: now,
  redis: { state: 'ready', version: '7.0.15', usedMemory: 1.3e6, maxMemory: 0 },
  journal: { mode: 'sync', kind: 'sqlite', lagMs: 12, pending: 0 },
  instances: 1,
  topics: 7,
  counts,
  oldestDue: { topic: 'orders', id: 'order:7300', dueAt: now - 5_000, overdueMs: 5_000 },
  rates: { pushed: 1.5, delivered: 1, acknowledged: 1, failed: 0.2, dead: 0 },
  lateness: { p50: 3, p99: 40 },
  series: Array.from({ length: 90 }, (_, at) => ({
    at: now - (90 - at) * 10_000,
    pushed: 1,
    delivered: 2,
    acknowledged: 2,
    failed: 0,
  })),
  busiest: [{ topic: 'orders', counts, oldestMs: 5_000, paused: [] }],
  problems: [{ severity: 'warning', code: 'topic-paused', text: 'The topic reminders is paused', topic: 'reminders' }],
}

/** Answers for paths that the service does not have. As each of them lands in the service, its line here is of no use any more. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  '/v1/overview': overview,
  '/v1/agenda': {
    ...{ at: now, from: now, to: now + 3_600_000, bucketMs: 60_000, overdue: 6, later: 20, exact: true },
    buckets: Array.from({ length: 60 }, (_, at) => ({
      from: now + at * 60_000,
      to: now + (at + 1) * 60_000,
      count: at % 7,
    })),
  },
  '/v1/agenda/messages': { messages: [message] },
  '/v1/messages': { messages: [message], source: 'journal', complete: true },
  '/v1/dead-letters': {
    deadLetters: [
      {
        topic: 'hooks',
        id: 'hook-0',
        diedAt: now,
        attempts: 2,
        reason: 'the endpoint answered 500',
        endpoint: null,
        lastAnswer: null,
      },
    ],
    matched: 1,
  },
  '/v1/instances': [
    {
      id: 'a',
      host: 'here',
      pid: 1,
      version: '0.0.0',
      startedAt: now,
      seenAt: now,
      connections: 1,
      waiting: 0,
      eventLoopMs: 1,
      memory: 9e7,
    },
  ],
  '/v1/doctor': {
    at: now,
    findings: [{ severity: 'warning', code: 'persistence', message: 'Redis keeps nothing', advice: 'Switch on AOF.' }],
  },
}

/** Stands in for the paths of the console that this service lacks, and returns them. */
export async function standIn(context: BrowserContext, url: string): Promise<string[]> {
  const { paths } = (await (await fetch(`${url}/openapi.json`, { headers: { connection: 'close' } })).json()) as {
    paths: Record<string, { get?: unknown }>
  }
  const missing = Object.keys(ANSWERS).filter((path) => paths[path]?.get === undefined)
  for (const path of missing) {
    const isIt = ({ pathname }: URL): boolean => pathname === path
    await context.route(isIt, (route) =>
      route.request().method() === 'GET' ? route.fulfill({ json: ANSWERS[path] }) : route.fallback(),
    )
  }
  return missing
}
