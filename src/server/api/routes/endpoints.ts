import type { FastifyBaseLogger } from 'fastify'
import { Type } from 'typebox'
import type { EndpointRecord } from '../../delivery/endpoint-record.js'
import { loggedAnswer, type LoggedDelivery } from '../../delivery/delivery-log.js'
import { newSecret, publicHalf, readSecret } from '../../delivery/webhook-secret.js'
import { cursorText, readCursor } from '../../topics/cursor.js'
import { TopicError } from '../../topics/errors.js'
import { isBlind, type ApiKey } from '../api-keys.js'
import { assertCovers } from '../authorize.js'
import type { App, Context } from '../context.js'
import { BadRequest, redisProblem } from '../problem.js'
import * as schemas from '../schemas.js'
import { isSet } from './topics.js'

const DAY_MS = 86_400_000
/** The most dead letters that a recovery moves at a time. */
const PAGE = 1_000

/** The routes of endpoints. Endpoints belong to all topics, so a key needs all topics. */
export function endpointRoutes(app: App, { endpoints, topics, dispatcher, gate, deliveryLog, answers }: Context): void {
  const tags = ['endpoints']
  const params = schemas.EndpointParams
  const topicsOf = async (id: string): Promise<string[]> =>
    (await topics.list({ fresh: true })).flatMap(({ name, record }) => (record.settings.endpoint === id ? [name] : []))

  const withState = async (id: string, record: EndpointRecord) => {
    const [state, { entries }] = await Promise.all([
      gate.state(id, topics.now()).catch(redisProblem),
      deliveryLog.list(id, 1).catch(redisProblem),
    ])
    const last = entries.map(({ at, outcome, status, error }) => ({ at, outcome, status, error }))[0] ?? null
    return { ...shown(id, record), gate: state, last }
  }

  /** Undoes a failed creation as far as possible; failures are logged. @param before the endpoints that topics had */
  const takeBack = async (
    id: string,
    before: ReadonlyMap<string, string | null>,
    log: FastifyBaseLogger,
  ): Promise<void> => {
    const failed = (error: unknown): void => log.error(error, 'an endpoint that could not be created is left in part')
    for (const [name, endpoint] of before) await topics.setEndpoint(name, endpoint, id).catch(failed)
    await endpoints.remove(id).catch(failed)
  }

  app.addHook('onRequest', async (request) => {
    if (/^\/v1\/(endpoints|deliveries)/.test(request.routeOptions.url ?? '')) assertCovers(request.apiKey, '*')
  })

  app.post(
    '/v1/endpoints',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        operationId: 'createEndpoint',
        summary: 'Create an endpoint; the answer has its secret',
        body: schemas.EndpointInput,
        response: { 201: schemas.EndpointMade },
      },
    },
    async (request, reply) => {
      const { topics: names = [], ...given } = request.body
      if (new Set(names).size < names.length)
        throw new BadRequest('invalid-request', 'topics: expected each topic once')
      const before = new Map<string, string | null>()
      for (const name of names) before.set(name, (await topics.get(name)).topic.settings.endpoint)
      const [id, record] = await endpoints.create(given)
      const tried = new Map<string, string | null>()
      try {
        for (const [name, former] of before) {
          tried.set(name, former)
          await topics.setEndpoint(name, id)
        }
      } catch (thrown) {
        // a topic was deleted meanwhile; no topic may keep an endpoint whose secret was never shown
        await takeBack(id, tried, request.log)
        throw thrown
      } finally {
        void dispatcher.refresh()
      }
      const has = names.length > 0 && { topics: [...names].sort() }
      return reply.code(201).send({ ...shown(id, record), ...secretOf(record), ...has })
    },
  )

  app.get(
    '/v1/endpoints',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'listEndpoints',
        summary: 'The endpoints by id, in pages',
        querystring: schemas.PageQuery,
        response: { 200: schemas.EndpointPage },
      },
    },
    async ({ query: { cursor, limit = 100 } }) => {
      const [after] = cursor === undefined ? [''] : readCursor(cursor, ['string'])
      const all = (await endpoints.list()).filter(([id]) => id > String(after))
      const page = all.slice(0, limit)
      const last = page.at(-1)
      return {
        endpoints: await Promise.all(page.map(([id, record]) => withState(id, record))),
        ...(last !== undefined && all.length > limit && { cursor: cursorText([last[0]]) }),
      }
    },
  )

  app.get(
    '/v1/endpoints/:endpoint',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getEndpoint',
        summary: 'An endpoint and the topics that use it',
        params,
        response: { 200: schemas.EndpointOutput },
      },
    },
    async ({ params: { endpoint } }) => ({
      ...(await withState(endpoint, await endpoints.get(endpoint))),
      topics: await topicsOf(endpoint),
    }),
  )

  app.patch(
    '/v1/endpoints/:endpoint',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        operationId: 'changeEndpoint',
        summary: 'Change an endpoint, or disable it, or enable it again',
        params,
        body: schemas.EndpointChange,
        response: { 200: schemas.EndpointOutput },
      },
    },
    async ({ params: { endpoint }, body }) => {
      const record = await endpoints.update(endpoint, body)
      // another server has neither asked for a pause nor failed
      if (body.enabled === true || body.url !== undefined) await gate.forget(endpoint)
      void dispatcher.refresh()
      return shown(endpoint, record)
    },
  )

  app.delete(
    '/v1/endpoints/:endpoint',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        operationId: 'deleteEndpoint',
        summary: 'Delete an endpoint that no topic uses, or by force any; messages of its topics then wait',
        params,
        querystring: Type.Object({ force: schemas.Flag }),
        response: { 204: Type.Null() },
      },
    },
    async ({ params: { endpoint }, query }, reply) => {
      const names = isSet(query.force) ? [] : await topicsOf(endpoint)
      if (names.length > 0) throw new TopicError('ERR_ENDPOINT_IN_USE', `topics use it, such as ${names[0] ?? ''}`)
      await endpoints.remove(endpoint)
      await Promise.all([gate.forget(endpoint), deliveryLog.forget(endpoint)])
      void dispatcher.refresh()
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/v1/endpoints/:endpoint/secret',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        operationId: 'getEndpointSecret',
        summary: 'The secret of an endpoint',
        params,
        response: { 200: schemas.SecretOutput },
      },
    },
    async ({ params: { endpoint } }) => secretOf(await endpoints.get(endpoint)),
  )

  app.post(
    '/v1/endpoints/:endpoint/rotate-secret',
    {
      config: { scope: 'admin', bodyIsOptional: true },
      schema: {
        tags,
        operationId: 'rotateEndpointSecret',
        summary: 'Give an endpoint another secret; for a while webhooks are signed with both',
        params,
        body: schemas.RotateInput,
        response: { 200: schemas.SecretOutput },
      },
    },
    async ({ params: { endpoint }, body: { scheme, secret = newSecret(scheme), keepPrevious = DAY_MS } }) => {
      const record = await endpoints.rotate(endpoint, secret, keepPrevious)
      void dispatcher.refresh()
      return secretOf(record)
    },
  )

  app.post(
    '/v1/endpoints/:endpoint/test',
    {
      config: { scope: 'admin', bodyIsOptional: true },
      schema: {
        tags,
        operationId: 'testEndpoint',
        summary: 'Send a webhook of the type redelayed.test now and return the answer',
        params,
        body: Type.Object({}, { additionalProperties: false }),
        response: { 200: schemas.TestOutput },
      },
    },
    async ({ params: { endpoint } }) => loggedAnswer(await dispatcher.test(endpoint, await endpoints.get(endpoint))),
  )

  app.post(
    '/v1/endpoints/:endpoint/recover',
    {
      config: { scope: 'admin', bodyIsOptional: true },
      schema: {
        tags,
        operationId: 'recoverEndpoint',
        summary: 'Enable an endpoint, close its breaker, and move the dead letters of its topics back',
        params,
        body: Type.Object({}, { additionalProperties: false }),
        response: { 200: schemas.RecoverOutput },
      },
    },
    async ({ params: { endpoint } }) => {
      await endpoints.update(endpoint, { enabled: true })
      await gate.forget(endpoint)
      void dispatcher.refresh()
      let redriven = 0
      for (const name of await topicsOf(endpoint)) {
        const topic = await topics.open(name)
        // messages that die meanwhile are not part of this call
        for (let left = (await topic.counts()).dead; left > 0;) {
          const moved = await topic.redrive(Math.min(left, PAGE))
          if (moved === 0) break
          left -= moved
          redriven += moved
        }
      }
      return { redriven }
    },
  )

  app.get(
    '/v1/endpoints/:endpoint/deliveries',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'listDeliveries',
        summary: 'The last webhooks of an endpoint with their answers, the newest first, in pages',
        params,
        querystring: schemas.PageQuery,
        response: { 200: schemas.DeliveryPage },
      },
    },
    async ({ params: { endpoint }, query: { cursor, limit = 100 }, apiKey }) => {
      answers.assertRoom()
      await endpoints.get(endpoint)
      const [before] = cursor === undefined ? [undefined] : readCursor(cursor, ['string'])
      const { entries, next } = await deliveryLog.list(endpoint, limit, placeOf(before))
      const deliveries = entries.map((each) => deliveryFor(apiKey, each))
      return { deliveries, ...(next !== undefined && { cursor: cursorText([next]) }) }
    },
  )

  app.get(
    '/v1/deliveries',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'listAllDeliveries',
        summary: 'The last webhooks of all endpoints with their answers, the newest first, in pages',
        querystring: schemas.DeliveriesQuery,
        response: { 200: schemas.DeliveriesPage },
      },
    },
    async ({ query: { cursor, limit = 100, endpoint }, apiKey }) => {
      answers.assertRoom()
      const ids = endpoint === undefined ? (await endpoints.list()).map(([id]) => id) : [endpoint]
      if (endpoint !== undefined) await endpoints.get(endpoint)
      const [place, at] = cursor === undefined ? [undefined, ''] : readCursor(cursor, ['string', 'string'])
      const before = placeOf(place)
      const after = before === undefined ? undefined : { place: before, endpoint: String(at) }
      const found = await deliveryLog.listOf(ids, limit, after)
      return {
        deliveries: found.deliveries.map((each) => deliveryFor(apiKey, each)),
        ...(found.next && { cursor: cursorText([found.next.place, found.next.endpoint]) }),
      }
    },
  )
}

/** A place in a stream, from a cursor. @throws TopicError */
export function placeOf(given: string | number | undefined): string | undefined {
  if (given === undefined || /^\d{1,16}-\d{1,16}$/.test(String(given))) return given?.toString()
  throw new TopicError('ERR_CURSOR', 'this listing did not return this cursor')
}

/** Hides the answer of the endpoint from a key that hides payloads: it can quote the message. */
function deliveryFor<T extends LoggedDelivery>(key: ApiKey, delivery: T): T & { answerHidden?: true } {
  return isBlind(key) ? { ...delivery, answer: '', answerHidden: true } : delivery
}

function shown(id: string, { secrets: _, ...record }: EndpointRecord) {
  return { id, ...record, enabled: record.disabled === null }
}

function secretOf({ secrets }: EndpointRecord): { secret: string; publicKey?: string; previousUntil?: number } {
  const [current, previous] = secrets
  const secret = current?.text ?? ''
  const key = readSecret(secret)
  return {
    secret,
    ...(key.scheme === 'v1a' && { publicKey: publicHalf(key) }),
    ...(typeof previous?.until === 'number' && { previousUntil: previous.until }),
  }
}
