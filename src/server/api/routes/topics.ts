import { Type, type Static } from 'typebox'
import { DeadLetters } from '../../console/dead-letters.js'
import type { Pauses } from '../../console/pauses.js'
import type { Sampler } from '../../console/sampler.js'
import { cursorText, readCursor } from '../../topics/cursor.js'
import { MOST_PURGED, purgeMatching, type PurgeFilter } from '../../topics/purge-matching.js'
import type { TopicRecord } from '../../topics/registry.js'
import { covers } from '../api-keys.js'
import type { App, Context } from '../context.js'
import { BadRequest, redisProblem } from '../problem.js'
import * as schemas from '../schemas.js'

type Sort = NonNullable<Static<typeof schemas.TopicsQuery>['sort']>

/** The most topics of a page whose messages are counted, by a script each. */
const MOST_COUNTED = 200

/** The routes of topics: create, get, pause, purge, delete. */
export function topicRoutes(
  app: App,
  { topics, endpoints, dispatcher }: Context,
  { pauses, sampler }: { readonly pauses: Pauses; readonly sampler: Sampler },
): void {
  const tags = ['topics']
  const params = schemas.TopicParams
  const deadLetters = new DeadLetters(topics)
  const purgeDead = async (topic: string, { state, bizKey, dueFrom, dueTo }: PurgeFilter, cursor?: string) => {
    if (state !== undefined) return { purged: 0 }
    const filter = { topic, bizKey, since: dueFrom, until: dueTo }
    const reader = { covers: () => true, isBlind: false }
    const { done, cursor: next } = await deadLetters.carryOut('delete', filter, reader, MOST_PURGED, cursor)
    return { purged: done, ...(next !== undefined && { cursor: next }) }
  }
  const endpointOf = async (name: string): Promise<string | null> => {
    const topic = await topics.openIfThere(name)
    return topic?.settings.endpoint ?? null
  }

  app.put(
    '/v1/topics/:topic',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        operationId: 'putTopic',
        summary: 'Create a topic or replace its settings; omitted settings get their defaults',
        params,
        body: schemas.TopicInput,
        response: { 200: schemas.TopicOutput, 201: schemas.TopicOutput },
      },
    },
    async (request, reply) => {
      const { endpoint } = request.body
      if (endpoint) {
        await endpoints.get(endpoint)
        // endpoints belong to all topics: a key that gives one to a topic gets webhooks signed with its secret
        if (!request.apiKey.topics.includes('*') && endpoint !== (await endpointOf(request.params.topic)))
          throw new BadRequest('forbidden', 'only a key for all topics may give a topic another endpoint')
      }
      const { topic, createdAt, isNew } = await topics.put(request.params.topic, request.body)
      void dispatcher.refresh()
      void reply.code(isNew ? 201 : 200)
      return { name: topic.name, createdAt, settings: topic.settings }
    },
  )

  app.get(
    '/v1/topics/:topic',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getTopic',
        summary: 'The settings of a topic and the counts of its messages',
        params,
        response: { 200: schemas.TopicOutput },
      },
    },
    async (request) => {
      const { topic, createdAt } = await topics.get(request.params.topic)
      const [counts, [paused = []]] = await Promise.all([topic.counts(), pauses.of([topic]).catch(redisProblem)])
      return { name: topic.name, createdAt, settings: topic.settings, counts, paused }
    },
  )

  app.delete(
    '/v1/topics/:topic',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        operationId: 'deleteTopic',
        summary: 'Delete a topic without messages, or by force with them',
        params,
        querystring: Type.Object({ force: schemas.Flag }),
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      await topics.delete(request.params.topic, isSet(request.query.force))
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/v1/topics',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'listTopics',
        summary: 'The topics of the key, by name or by a count, in pages',
        querystring: schemas.TopicsQuery,
        response: { 200: schemas.TopicPage },
      },
    },
    async ({ query: { cursor, limit: wanted = 100, search = '', counts, sort = 'name' }, apiKey }) => {
      const limit = counts === undefined ? wanted : Math.min(wanted, MOST_COUNTED)
      const fitting = (await topics.list()).filter(({ name }) => has(name, search) && covers(apiKey, name))
      const order = await orderBy(sort)
      // sorted by name, all topics have the same count
      const [place, after] = cursor === undefined ? [Infinity, ''] : readCursor(cursor, ['number', 'string'])
      const rest = fitting
        .map((each) => ({ ...each, most: order.of(each.name) }))
        .filter(({ name, most }) => most < Number(place) || (most === place && name > String(after)))
        .sort((a, b) => b.most - a.most || (a.name < b.name ? -1 : 1))
      const page = rest.slice(0, limit)
      const last = page.at(-1)
      return {
        topics: counts === undefined ? page.map(shown) : await counted(page),
        ...(last !== undefined && rest.length > limit && { cursor: cursorText([last.most, last.name]) }),
        ...(order.complete !== undefined && { complete: order.complete }),
      }
    },
  )

  /** The figure that sorts topics; 0 for a topic that the background scan has not reached yet. */
  const orderBy = async (sort: Sort): Promise<{ of: (name: string) => number; complete?: boolean }> => {
    if (sort === 'name') return { of: () => 0 }
    const { topics: all, total } = await sampler.read()
    const key = sort === 'oldest' ? 'oldestMs' : sort
    const most = new Map(all.map((each) => [each.topic, each[key]]))
    return { of: (name) => most.get(name) ?? 0, complete: all.length >= total }
  }

  const counted = async (page: readonly { name: string; record: TopicRecord }[]) => {
    const opened = await Promise.all(page.map(({ name }) => topics.openIfThere(name)))
    const there = opened.filter((topic) => topic !== undefined)
    const [counts, paused] = await Promise.all([
      Promise.all(there.map((topic) => topic.counts())),
      pauses.of(there).catch(redisProblem),
    ])
    const found = new Map(there.map(({ name }, at) => [name, { counts: counts[at], paused: paused[at] ?? [] }]))
    return page.map((each) => ({ ...shown(each), ...found.get(each.name) }))
  }

  for (const verb of ['pause', 'resume'] as const) {
    app.post(
      `/v1/topics/:topic/${verb}`,
      {
        config: { scope: 'admin', bodyIsOptional: true },
        schema: {
          tags,
          operationId: `${verb}Topic`,
          summary: verb === 'pause' ? 'Pause a topic: consumers get no messages, or pushes are refused' : 'End a pause',
          params,
          body: schemas.PauseInput,
          response: { 200: Type.Object({ what: Type.String() }) },
        },
      },
      async (request) => {
        const { what = 'receive' } = request.body
        if (what === 'push') await topics.pausePushes(request.params.topic, verb === 'pause')
        else await (await topics.open(request.params.topic))[verb](what)
        return { what }
      },
    )
  }

  app.post(
    '/v1/topics/:topic/purge',
    {
      config: { scope: 'admin', bodyIsOptional: true },
      schema: {
        tags,
        operationId: 'purgeTopic',
        summary:
          'Remove all messages, in-flight ones too, or all dead letters; or those with given ids; or up to 1,000 that match',
        params,
        body: schemas.PurgeInput,
        response: { 200: schemas.PurgeOutput },
      },
    },
    async ({ params: { topic: name }, body: { what = 'messages', ids, cursor, ...filter } }) => {
      const topic = await topics.open(name)
      const isFiltered = Object.keys(filter).length > 0
      // a cursor without its filter must not remove all messages
      if (cursor !== undefined && !isFiltered)
        throw new BadRequest('invalid-cursor', 'repeat the filter of the request that returned the cursor')
      if (ids !== undefined && isFiltered)
        throw new BadRequest('invalid-request', `ids: expected none beside ${Object.keys(filter).join()}`)
      if (!isFiltered) return { purged: await topic.purge(what, ids) }
      if (what === 'dead-letters') return purgeDead(name, filter, cursor)
      if (filter.bizKey !== undefined && !topics.hasJournal)
        throw new BadRequest('no-journal', 'only a journal finds messages by bizKey')
      return purgeMatching(topic, filter, cursor)
    },
  )
}

/** Whether a name contains a part, in upper or lower case. */
function has(name: string, part: string): boolean {
  return name.toLowerCase().includes(part.toLowerCase())
}

function shown({ name, record }: { name: string; record: TopicRecord }) {
  return { name, createdAt: record.createdAt, settings: record.settings }
}

/** True for `?force` and `?force=true`. */
export function isSet(flag: boolean | '' | undefined): boolean {
  return flag === true || flag === ''
}
