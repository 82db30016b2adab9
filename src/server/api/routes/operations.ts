import { Type } from 'typebox'
import type { App, Context } from '../context.js'
import { BadRequest } from '../problem.js'
import { healthRoutes } from './health.js'

const PING_MS = 2_000

/** The routes for operators: health checks and metrics. */
export function operationRoutes(app: App, { topics, metrics, waits }: Context): void {
  healthRoutes(app, waits, async () => {
    await within(PING_MS, topics.ping())
    if (!topics.hasJournal) return { status: 'ok' }
    const journal = await within(PING_MS, topics.pingJournal()).then(
      () => 'ok' as const,
      () => 'unavailable' as const,
    )
    return { status: 'ok', journal }
  })

  app.get(
    '/metrics',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['operations'],
        operationId: 'metrics',
        summary: 'Prometheus metrics',
        response: { 200: { description: 'Metrics', content: { 'text/plain': { schema: Type.String() } } } },
      },
    },
    async (request, reply) => {
      if (!request.apiKey.topics.includes('*'))
        throw new BadRequest('forbidden', 'the metrics need a key for all topics')
      const text = await metrics.text(topics)
      return reply.header('Content-Type', metrics.registry.contentType).send(text)
    },
  )
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new BadRequest('redis-unavailable', `no answer within ${ms} ms`)), ms)
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}
