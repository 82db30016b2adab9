import { DeadLetters, type DeadLetterReader } from '../../console/dead-letters.js'
import { covers, isBlind, type ApiKey } from '../api-keys.js'
import { assertCovers, assertMayFind } from '../authorize.js'
import type { App, Context } from '../context.js'
import { BadRequest } from '../problem.js'
import * as schemas from '../schemas.js'

/** The most dead letters that one request moves or deletes. */
const BULK = 1_000
/** The default number of a topic's oldest dead letters that a request moves. */
const OLDEST = 100

/** The dead letters of all topics or of one: search, move back and delete by a filter. */
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
      assertMayFind(apiKey, filter.bizKey)
      const own = readerOf(apiKey)
      const [page, counted] = await Promise.all([
        deadLetters.list(filter, own, limit, cursor),
        cursor === undefined ? deadLetters.count(filter, own) : null,
      ])
      const isWhole = cursor === undefined && page.cursor === undefined
      return {
        ...page,
        deadLetters: [...page.deadLetters],
        matched: counted ?? (isWhole ? page.deadLetters.length : null),
      }
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
              ? 'Move back the dead letters that match, up to 1,000 per request; their attempts begin anew'
              : 'Delete the dead letters that match, up to 1,000 per request',
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

  app.post(
    '/v1/topics/:topic/dead-letters/redrive',
    {
      config: { scope: 'admin', bodyIsOptional: true },
      schema: {
        tags,
        operationId: 'redriveDeadLetters',
        summary:
          'Move dead letters of a topic back, where they begin anew: the oldest, those of some ids, or those that match',
        params: schemas.TopicParams,
        body: schemas.RedriveInput,
        response: { 200: schemas.RedriveOutput },
      },
    },
    async ({ params, body: { count, ids, cursor, dryRun, ...filter }, apiKey }) => {
      const topic = await topics.open(params.topic)
      const given = [...Object.keys(filter), ...(dryRun === undefined ? [] : ['dryRun'])]
      if (ids !== undefined && given.length > 0)
        throw new BadRequest('invalid-request', `ids: expected none beside ${given.join()}`)
      const isFiltered = Object.keys(filter).length > 0 || dryRun === true
      // a cursor without its filter must not move all dead letters
      if (cursor !== undefined && !isFiltered)
        throw new BadRequest('invalid-cursor', 'repeat the filter of the request that returned the cursor')
      if (!isFiltered) return { redriven: await topic.redrive(count ?? OLDEST, ids) }
      const which = { ...filter, topic: topic.name }
      const what = dryRun === true ? 'count' : 'redrive'
      const { done, ...part } = await deadLetters.carryOut(what, which, readerOf(apiKey), count ?? BULK, cursor)
      return { redriven: done, ...part }
    },
  )
}
