import { compared, placeOf, type Queues } from '../../console/queues.js'
import { withoutPayloads } from '../../console/shown-look.js'
import { cursorText, readCursor } from '../../topics/cursor.js'
import { isBlind, type ApiKey } from '../api-keys.js'
import { assertCovers } from '../authorize.js'
import type { App } from '../context.js'
import { CommandFailed } from '../../console/library-command.js'
import { commandProblem, redisProblem } from '../problem.js'
import * as schemas from '../queue-schemas.js'

const tags = ['queues']
const CODEC = 'msgpack'

/** The queues of a Redis that libraries use. They are not topics, so a key must be for all topics. */
export function queueRoutes(app: App, queues: Queues): void {
  const assertForAll = (key: ApiKey): void => assertCovers(key, '*')

  app.get(
    '/v1/queues',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'listQueues',
        summary: 'The delayed and reliable queues of this Redis by name with their counts, at most five seconds old',
        querystring: schemas.QueuesQuery,
        response: { 200: schemas.QueuesOutput },
      },
    },
    async ({ query: { search = '', cursor, limit = 100 }, apiKey }) => {
      assertForAll(apiKey)
      const after =
        cursor === undefined ? undefined : (readCursor(cursor, ['string', 'string'], 3_000) as [string, string])
      const { queues: all, at } = await queues.list().catch(commandProblem)
      const fitting = all.filter(({ name }) => name.includes(search))
      const begin = after === undefined ? 0 : fitting.findIndex((one) => compared(placeOf(one), after) > 0)
      const page = begin < 0 ? [] : fitting.slice(begin, begin + limit)
      const last = page.at(-1)
      const hasMore = begin >= 0 && begin + limit < fitting.length
      return {
        ...{ at, total: all.length, queues: page.map((one) => ({ ...one, paused: [...one.paused] })) },
        ...(hasMore && last && { cursor: cursorText(placeOf(last)) }),
      }
    },
  )

  app.get(
    '/v1/queues/:queue',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getQueue',
        summary: 'The next messages of a queue, those that it set aside, and its dead letters; removes nothing',
        params: schemas.QueueParams,
        querystring: schemas.QueueQuery,
        response: { 200: schemas.QueueOutput },
      },
    },
    async ({ params: { queue }, query: { limit = 20, codec = CODEC }, apiKey }) => {
      assertForAll(apiKey)
      const look = await queues.look(queue, { limit, codec }).catch(commandProblem)
      return isBlind(apiKey) ? withoutPayloads(look) : look
    },
  )

  app.get(
    '/v1/queues/:queue/agenda',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getQueueAgenda',
        summary: 'When how many messages of a queue are due',
        params: schemas.QueueParams,
        querystring: schemas.QueueAgendaQuery,
        response: { 200: schemas.QueueAgenda },
      },
    },
    async ({ params: { queue }, query: { from, to, buckets = 60 }, apiKey }) => {
      assertForAll(apiKey)
      return queues.agenda(queue, from, to, buckets).catch((thrown: unknown) => {
        return thrown instanceof CommandFailed ? commandProblem(thrown) : redisProblem(thrown)
      })
    },
  )
}
