import { RedelayedError } from 'redelayed'
import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { messageFor } from '../../console/shown-message.js'
import { cursorText, readCursor } from '../../topics/cursor.js'
import { timeOf, type NewMessage, type Pushed } from '../../topics/new-message.js'
import { traced } from '../../topics/trace.js'
import { changedBody } from '../../topics/topic.js'
import { MOST_SHARDS } from '../../topics/topic-settings.js'
import { isBlind } from '../api-keys.js'
import { assertMayFind } from '../authorize.js'
import { assertEndpoint, wrongEndpoints } from '../own-endpoint.js'
import { Lines, readAlsoLines, requestLimit } from '../content.js'
import type { App, Context } from '../context.js'
import { BadRequest, problemOf, type Problem } from '../problem.js'
import * as schemas from '../schemas.js'
import { JsonBudget, readJson } from '../strict-json.js'
import { isSet } from './topics.js'

const tags = ['messages']
const message = Compile(schemas.MessageInput)

/** The routes of messages: push, get, change, remove. */
export function messageRoutes(app: App, { topics, settings, metrics, endpoints, answers }: Context): void {
  const bodyLimit = requestLimit(settings)

  app.post(
    '/v1/topics/:topic/messages',
    {
      config: { scope: 'push' },
      bodyLimit,
      schema: {
        tags,
        operationId: 'pushMessage',
        summary: 'Push a message; 200 if a message with its id exists and stays, or was postponed',
        params: schemas.TopicParams,
        headers: schemas.PushHeaders,
        body: schemas.MessageInput,
        response: { 200: schemas.PushedOutput, 201: schemas.PushedOutput },
      },
    },
    async (request, reply) => {
      const { topic } = request.params
      const key = request.headers['idempotency-key']
      const given = request.body as NewMessage
      const check = (): Promise<void> => assertEndpoint(endpoints, request.apiKey, given)
      const own = traced(given, request.headers)
      let pushed: Pushed | RedelayedError | undefined
      if (key === undefined) {
        await check()
        ;[pushed] = await topics.pusher.push(topic, [own])
      } else {
        const once = await topics.pusher.pushOnce(topic, own, { key, owner: request.apiKey.id, request: given, check })
        if (once.isRepeated) void reply.header('Idempotency-Replayed', 'true')
        pushed = once.pushed
      }
      if (pushed === undefined || pushed instanceof RedelayedError) {
        metrics.pushed.inc({ outcome: 'refused' })
        throw pushed ?? new Error('there is no result')
      }
      metrics.pushed.inc({ outcome: pushed.outcome })
      void reply.header('Location', `/v1/topics/${encodeURIComponent(topic)}/messages/${encodeURIComponent(pushed.id)}`)
      return reply.code(pushed.outcome === 'kept' || pushed.outcome === 'postponed' ? 200 : 201).send(pushed)
    },
  )

  void app.register(async (scope) => {
    readAlsoLines(scope, settings.maxBatch)
    batchRoute(scope, { topics, settings, metrics, endpoints })
  })

  app.get(
    '/v1/topics/:topic/messages/:id',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getMessage',
        summary: 'A message or a dead letter',
        params: schemas.MessageParams,
        querystring: schemas.BodyQuery,
        response: { 200: schemas.MessageOutput },
      },
    },
    async ({ params: { topic, id }, query: { maxBody }, apiKey }) => {
      answers.assertRoom()
      const found = await (await topics.open(topic)).get(id)
      return messageFor({ isBlind: isBlind(apiKey), maxBody }, found)
    },
  )

  app.patch(
    '/v1/topics/:topic/messages/:id',
    {
      config: { scope: 'push' },
      bodyLimit,
      schema: {
        tags,
        operationId: 'changeMessage',
        summary: 'Change the time, priority or body of a message that no consumer has',
        params: schemas.MessageParams,
        body: schemas.MessageChange,
        response: { 200: schemas.MessageOutput },
      },
    },
    async (request) => {
      answers.assertRoom()
      const { delay, dueAt, priority, body } = request.body
      if (delay !== undefined && dueAt !== undefined)
        throw new BadRequest('invalid-message', 'dueAt: expected one of delay and dueAt')
      const change = {
        delay,
        priority,
        dueAt: dueAt === undefined ? undefined : timeOf('dueAt', dueAt),
        body: 'body' in request.body ? changedBody(body) : undefined,
      }
      const topic = await topics.open(request.params.topic)
      const changed = await topic.change(request.params.id, change, settings.maxMessageBytes)
      return messageFor({ isBlind: isBlind(request.apiKey), maxBody: undefined }, changed)
    },
  )

  app.delete(
    '/v1/topics/:topic/messages/:id',
    {
      config: { scope: 'push' },
      schema: {
        tags,
        operationId: 'removeMessage',
        summary: 'Remove a message that no consumer has, or by force any message',
        params: schemas.MessageParams,
        querystring: Type.Object({ force: schemas.Flag }),
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const topic = await topics.open(request.params.topic)
      await topic.remove(request.params.id, isSet(request.query.force))
      return reply.code(204).send(null)
    },
  )

  for (const [path, isDead] of [
    ['messages', false],
    ['dead-letters', true],
  ] as const) {
    app.get(
      `/v1/topics/:topic/${path}`,
      {
        config: { scope: 'read' },
        schema: {
          tags,
          operationId: isDead ? 'listDeadLetters' : 'listMessages',
          summary: `The ${isDead ? 'dead letters' : 'messages'} by priority and time, in pages; pushes and receives meanwhile can make some come twice or not at all`,
          params: schemas.TopicParams,
          querystring: isDead ? schemas.DeadLettersQuery : schemas.MessagesQuery,
          response: { 200: schemas.MessagePage },
        },
      },
      async (request, reply) => {
        answers.reserve(request, reply)
        const { params, query, apiKey } = request
        const { cursor, limit = 100, maxBody } = query
        const state = 'state' in query ? (query.state as 'visible' | 'delayed' | 'inFlight' | undefined) : undefined
        const bizKey = 'bizKey' in query ? (query.bizKey as string | undefined) : undefined
        const topic = await topics.open(params.topic)
        const reader = { isBlind: isBlind(apiKey), maxBody }
        if (bizKey !== undefined) {
          if (!topics.hasJournal) throw new BadRequest('no-journal', 'only a journal finds messages by bizKey')
          assertMayFind(apiKey, bizKey)
          const after = cursor === undefined ? null : String(readCursor(cursor, ['string'])[0])
          const { messages, next } = await topic.listWithBizKey(
            { bizKey, after, limit },
            (each) => state === undefined || each.state === state,
            (each) => messageFor(reader, each),
          )
          return { messages, ...(next !== undefined && { cursor: cursorText([next]) }) }
        }
        const [shard, skip] = cursor === undefined ? [0, 0] : readCursor(cursor, [{ most: MOST_SHARDS - 1 }, 'number'])
        const page = await topic.list({ state, isDead, shard: Number(shard), skip: Number(skip), limit }, (each) =>
          messageFor(reader, each),
        )
        return { messages: page.messages, ...(page.next && { cursor: cursorText([page.next.shard, page.next.skip]) }) }
      },
    )
  }
}

function batchRoute(
  app: App,
  { topics, settings, metrics, endpoints }: Pick<Context, 'topics' | 'settings' | 'metrics' | 'endpoints'>,
): void {
  app.post(
    '/v1/topics/:topic/messages/batch',
    {
      config: { scope: 'push' },
      bodyLimit: settings.maxBatchBytes,
      schema: {
        tags,
        operationId: 'pushMessages',
        summary: 'Push many messages, as JSON or as lines of JSON; each is accepted or refused by itself',
        params: schemas.TopicParams,
        consumes: ['application/json', 'application/x-ndjson'],
        response: { 200: schemas.BatchOutput },
      },
    },
    async (request) => {
      const budget = new JsonBudget()
      const read = itemsOf(request.body, settings.maxBatch).map((item) => checked(item, budget))
      const wrong = await wrongEndpoints(endpoints, request.apiKey, read.filter(isMessage))
      const items = read.map((item) => (isMessage(item) ? (wrong.get(item.endpoint ?? '') ?? item) : item))
      const good: NewMessage[] = []
      for (const item of items) if (isMessage(item)) good.push(traced(item, request.headers))
      const pushed = good.length === 0 ? [] : await topics.pusher.push(request.params.topic, good)
      let at = 0
      const results = items.map((item) => shown(isMessage(item) ? pushed[at++] : item))
      const outcomes = new Map<string, number>()
      for (const result of results) {
        const outcome = 'problem' in result ? 'refused' : result.outcome
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
      for (const [outcome, count] of outcomes) metrics.pushed.inc({ outcome }, count)
      return { results, failed: outcomes.get('refused') ?? 0 }
    },
  )
}

function isMessage(item: NewMessage | Error): item is NewMessage {
  return !(item instanceof Error)
}

/** The messages of a body: a list, `{ messages }`, or lines. */
function itemsOf(body: unknown, most: number): readonly unknown[] {
  const list = body instanceof Lines ? body.lines : Array.isArray(body) ? body : listIn(body)
  if (!Array.isArray(list) || list.length === 0)
    throw new BadRequest('invalid-request', 'expected an array of messages, or { "messages": [...] }')
  if (list.length > most)
    throw new BadRequest('invalid-request', `expected at most ${most} messages, got ${list.length}`)
  return list as unknown[]
}

function listIn(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Object.keys(body).join() !== 'messages') return undefined
  return (body as { messages: unknown }).messages
}

/** @throws BadRequest the lines have too many values together: then none is accepted */
function checked(item: unknown, budget: JsonBudget): NewMessage | BadRequest {
  try {
    const value = item instanceof Buffer ? readJson(item, budget) : item
    if (message.Check(value)) return value
    const [first] = message.Errors(value)
    return new BadRequest('invalid-request', `message${first?.instancePath ?? ''} ${first?.message ?? 'is wrong'}`)
  } catch (thrown) {
    if (thrown instanceof BadRequest && !budget.isSpent) return thrown
    throw thrown
  }
}

function shown(result: Pushed | Error | undefined): Pushed | { problem: Problem } {
  return result === undefined || result instanceof Error ? { problem: problemOf(result) } : result
}
