import { DeadLetters } from '../../console/dead-letters.js'
import type { Doctor } from '../../console/doctor.js'
import type { DueMessages } from '../../console/due-messages.js'
import type { HeldTopics } from '../../console/held-topics.js'
import { MessageSearch } from '../../console/message-search.js'
import { cursorText, readCursor } from '../../topics/cursor.js'
import { covers, type ApiKey } from '../api-keys.js'
import { assertCovers, assertMayFind } from '../authorize.js'
import type { App, Context } from '../context.js'
import { BadRequest, redisProblem } from '../problem.js'
import * as schemas from '../schemas.js'
import { doctorRoute } from './doctor.js'

interface Parts {
  readonly due: DueMessages
  readonly held: HeldTopics
  readonly doctor: Doctor
}

/** The search for messages in all topics by id, state or time; and the doctor. */
export function searchRoutes(app: App, { topics }: Context, { due, held, doctor }: Parts): void {
  const tags = ['page']
  const search = new MessageSearch(topics, due, new DeadLetters(topics), held)
  const namesOf = async (key: ApiKey, topic: string | undefined): Promise<string[]> => {
    if (topic === undefined) return (await topics.list()).map(({ name }) => name).filter((name) => covers(key, name))
    assertCovers(key, topic)
    return [(await topics.open(topic)).name]
  }

  app.get(
    '/v1/messages',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'searchMessages',
        summary: 'The messages that match, by time; in-flight messages and dead letters by topic',
        querystring: schemas.MessageSearchQuery,
        response: { 200: schemas.MessagesFound },
      },
    },
    async ({ query: { topic, cursor, limit = 100, ...filter }, apiKey }) => {
      if (filter.bizKey !== undefined && !topics.hasJournal)
        throw new BadRequest('no-journal', 'only a journal finds messages by bizKey')
      assertMayFind(apiKey, filter.bizKey)
      return search.find(await namesOf(apiKey, topic), filter, limit, cursor)
    },
  )

  app.get(
    '/v1/agenda/messages',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'listAgenda',
        summary: 'The messages that become visible between two times, the earliest first, in pages',
        querystring: schemas.AgendaMessagesQuery,
        response: { 200: schemas.AgendaMessages },
      },
    },
    async ({ query, apiKey }) => {
      const { topic, cursor, limit = 100, from: begin = 0, to = 8_640_000_000_000_000 } = query
      const [from, skip] = cursor === undefined ? [begin, 0] : readCursor(cursor, ['number', 'number'])
      const place = { from: Math.max(begin, Number(from)), skip: Number(skip) }
      const page = await due.list(await namesOf(apiKey, topic), place, to, limit).catch(redisProblem)
      const { messages, next, complete } = page
      return { messages, complete, ...(next !== undefined && { cursor: cursorText([next.from, next.skip]) }) }
    },
  )

  doctorRoute(app, doctor)
}
