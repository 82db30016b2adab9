import { Type, type Static } from 'typebox'
import type { App, Waits } from '../context.js'
import { BadRequest } from '../problem.js'

/** How long an answer of readiness is reused: the route needs no key and must not keep connections busy. */
const FRESH_MS = 1_000

const readiness = Type.Object({
  status: Type.String(),
  journal: Type.Optional(Type.Enum(['ok', 'unavailable'], { description: 'Whether the SQL database answers' })),
})
export type Readiness = Static<typeof readiness>

/** The health checks: whether the service is alive, and whether it is ready. */
export function healthRoutes(app: App, waits: Waits, ask: () => Promise<Readiness>): void {
  const tags = ['operations']
  const status = Type.Object({ status: Type.String() })
  let asked: { readonly at: number; readonly answer: Promise<Readiness> } | undefined

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
          'Redis answers, and the service is not stopping; an unavailable journal does not count, as the service still delivers',
        security: [],
        response: { 200: readiness },
      },
    },
    async () => {
      if (waits.isLeaving) throw new BadRequest('shutting-down', 'the service is stopping')
      if (asked === undefined || performance.now() - asked.at > FRESH_MS)
        asked = { at: performance.now(), answer: ask() }
      return asked.answer
    },
  )
}
