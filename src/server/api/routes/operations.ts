import { Type, type Static } from 'typebox'
import type { App, Context } from '../context.js'
import { BadRequest } from '../problem.js'

const PING_MS = 2_000
/** Everybody may ask whether the service is ready, and must not keep the connections to SQL busy by it. */
const FRESH_MS = 1_000

/** For those who run the service: is it alive, can it work, what does it measure. */
export function operationRoutes(app: App, { topics, metrics, waits }: Context): void {
  const tags = ['operations']
  const status = Type.Object({ status: Type.String() })
  const readiness = Type.Object({
    status: Type.String(),
    journal: Type.Optional(Type.Enum(['ok', 'unavailable'], { description: 'Whether the SQL database answers' })),
  })

  let asked: { readonly at: number; readonly answer: Promise<Static<typeof readiness>> } | undefined
  const askBoth = async (): Promise<Static<typeof readiness>> => {
    await within(PING_MS, topics.ping())
    if (!topics.hasJournal) return { status: 'ok' }
    const journal = await within(PING_MS, topics.pingJournal()).then(
      () => 'ok' as const,
      () => 'unavailable' as const,
    )
    return { status: 'ok', journal }
  }

  app.get(
    '/livez',
    {
      schema: { tags, operationId: 'isAlive', summary: 'The process answers', security: [], response: { 200: status } },
    },
    async () => ({ status: 'ok' }),
  )

  app.get(
    '/readyz',
    {
      schema: {
        tags,
        operationId: 'isReady',
        summary:
          'Redis answers, and the service is not stopping; without its journal a service still delivers, so it is ready',
        security: [],
        response: { 200: readiness },
      },
    },
    async () => {
      if (waits.isLeaving) throw new BadRequest('shutting-down', 'the service is stopping')
      if (asked === undefined || performance.now() - asked.at > FRESH_MS)
        asked = { at: performance.now(), answer: askBoth() }
      return asked.answer
    },
  )

  app.get(
    '/metrics',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'metrics',
        summary: 'Prometheus metrics',
        response: { 200: { description: 'Metrics', content: { 'text/plain': { schema: Type.String() } } } },
      },
    },
    async (request, reply) => {
      if (!request.apiKey.topics.includes('*')) throw new BadRequest('forbidden', 'the metrics are of all topics')
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
