import { DeadLetters, type DeadLetterReader } from '../../console/dead-letters.js'
import { covers, isBlind, type ApiKey } from '../api-keys.js'
import { assertCovers } from '../authorize.js'
import type { App, Context } from '../context.js'
import * as schemas from '../schemas.js'

/** So many dead letters are moved or deleted by one request. */
const BULK = 1_000

/** The dead letters of all topics: found by what they have in common, and moved back or deleted together. */
export function deadLetterRoutes(app: App, { topics }: Context): void {
  const tags = ['dead letters']
  const deadLetters = new DeadLetters(topics)
  const readerOf = (key: ApiKey): DeadLetterReader => ({
    covers: (name) => covers(key, name),
    isBlind: isBlind(key),
  })

  app.get(
    '/v1/dead-letters',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'searchDeadLetters',
        summary: 'The dead letters that match, by topic and time, in pages',
        querystring: schemas.DeadLetterSearch,
        response: { 200: schemas.DeadLetterList },
      },
    },
    async ({ query: { cursor, limit = 100, ...filter }, apiKey }) => {
      if (filter.topic !== undefined) assertCovers(apiKey, filter.topic)
      const own = readerOf(apiKey)
      const [page, matched] = await Promise.all([
        deadLetters.list(filter, own, limit, cursor),
        cursor === undefined ? deadLetters.count(filter, own) : null,
      ])
      return { ...page, deadLetters: [...page.deadLetters], matched }
    },
  )

  for (const what of ['redrive', 'delete'] as const) {
    app.post(
      `/v1/dead-letters/${what}`,
      {
        config: { scope: 'admin', bodyIsOptional: true },
        schema: {
          tags,
          operationId: `${what}MatchingDeadLetters`,
          summary:
            what === 'redrive'
              ? 'Move back the dead letters that match, up to 1,000 by one request; they begin anew'
              : 'Delete the dead letters that match, up to 1,000 by one request',
          body: schemas.BulkInput,
          response: { 200: schemas.BulkOutput },
        },
      },
      async ({ body: { dryRun = false, cursor, ...filter }, apiKey }) => {
        if (filter.topic !== undefined) assertCovers(apiKey, filter.topic)
        return deadLetters.carryOut(dryRun ? 'count' : what, filter, readerOf(apiKey), BULK, cursor)
      },
    )
  }
}
