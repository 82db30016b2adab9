import type { AuditLog } from '../audit-log.js'
import { cursorText, readCursor } from '../../topics/cursor.js'
import { assertCovers } from '../authorize.js'
import type { App } from '../context.js'
import * as schemas from '../schemas.js'
import { placeOf } from './endpoints.js'

/** The audit log: records and lists administrative requests. */
export function auditRoutes(app: App, audit: AuditLog): void {
  // before the answer, so that its reader finds the entry; if the entry fails, the answer is sent anyway
  app.addHook('onSend', (request, reply, _, done) => {
    const { apiKey, method, url, id, routeOptions } = request
    const status = reply.statusCode
    if (routeOptions.config.scope !== 'admin' || (status >= 400 && status < 500)) {
      done()
      return
    }
    const entry = { key: apiKey.id, method, path: url, status, requestId: id }
    request.log.info(entry, 'administration')
    void audit
      .add({ at: Date.now(), ...entry })
      .catch((error: unknown) => request.log.error(error, 'an administrative request is not in the audit log'))
      .then(() => done())
  })

  app.get(
    '/v1/audit',
    {
      config: { scope: 'admin' },
      schema: {
        tags: ['operations'],
        operationId: 'listAudit',
        summary: 'The last administrative requests of all instances, the newest first, in pages',
        querystring: schemas.PageQuery,
        response: { 200: schemas.AuditPage },
      },
    },
    async ({ query: { cursor, limit = 100 }, apiKey }) => {
      assertCovers(apiKey, '*')
      const [before] = cursor === undefined ? [undefined] : readCursor(cursor, ['string'])
      const { entries, next } = await audit.list(limit, placeOf(before))
      return { entries, ...(next !== undefined && { cursor: cursorText([next]) }) }
    },
  )
}
