import type { FastifyInstance } from 'fastify'
import { READABLE_PAGE_POLICY, readablePage } from '../readable-page.js'

type Swagger = Pick<FastifyInstance, 'get' | 'swagger'>

/** The description of the API, for programs and for people. Neither needs a key. */
export function descriptionRoutes(app: Swagger): void {
  let page: string | undefined
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
  app.get('/docs', { schema: { hide: true } }, async (_, reply) => {
    void reply.header('Content-Security-Policy', READABLE_PAGE_POLICY)
    void reply.header('Referrer-Policy', 'no-referrer')
    page ??= readablePage(app.swagger())
    return reply.type('text/html; charset=utf-8').send(page)
  })
}
