import type { FastifyReply } from 'fastify'
import { RedelayedError } from 'redelayed'
import { Type } from 'typebox'
import { NOTHING_RESTORED, sumOf } from '../../journal/restore-result.js'
import { TopicError } from '../../topics/errors.js'
import type { NewMessage } from '../../topics/new-message.js'
import { traced } from '../../topics/trace.js'
import { covers, type ApiKey } from '../api-keys.js'
import { assertCovers } from '../authorize.js'
import { requestLimit } from '../content.js'
import type { App, Context } from '../context.js'
import { BadRequest } from '../problem.js'
import { receive } from '../receive.js'
import * as schemas from '../schemas.js'
import { isSet } from './topics.js'

/** Some of these GET routes change something, so they must not answer HEAD. */
const GET = { method: 'GET', exposeHeadRoute: false } as const
/** The default wait of a client. */
const WAIT_MS = 30_000
/** The most topics searched for an id at once. */
const AT_ONCE = 20

/** The paths and words of another delay service, for programs that use them. They work like the service's own paths. */
export function legacyRoutes(app: App, context: Context): void {
  const { topics, settings, metrics } = context
  const tags = ['legacy']

  app.post(
    '/push',
    {
      config: { scope: 'push' },
      bodyLimit: requestLimit(settings),
      schema: {
        tags,
        operationId: 'legacyPush',
        summary: 'As POST /v1/topics/{topic}/messages',
        body: schemas.LegacyPush,
        response: { 200: schemas.PushedOutput },
      },
    },
    async (request) => {
      const { topic, ttl, ...message } = request.body
      assertCovers(request.apiKey, topic)
      const [pushed] = await topics.pusher.push(topic, [
        traced<NewMessage>({ ...message, timeToLive: ttl }, request.headers),
      ])
      if (pushed === undefined || pushed instanceof RedelayedError) {
        metrics.pushed.inc({ outcome: 'refused' })
        throw pushed ?? new Error('there is no result')
      }
      metrics.pushed.inc({ outcome: pushed.outcome })
      return pushed
    },
  )

  app.route({
    ...GET,
    url: '/delete',
    config: { scope: 'push' },
    schema: {
      tags,
      operationId: 'legacyDelete',
      summary: 'As DELETE /v1/topics/{topic}/messages/{id}, in all topics of the key or in one',
      querystring: schemas.LegacyDelete,
      response: { 200: schemas.LegacyDeleted },
    },
    handler: async (request) => {
      const { id, topic, force } = request.query
      const removed: string[] = []
      const inFlight: string[] = []
      let refused: TopicError | undefined
      for await (const name of topicsOf(request.apiKey, topic, async (each) => {
        try {
          await (await topics.open(each)).remove(id, isSet(force))
          return true
        } catch (thrown) {
          if (!(thrown instanceof TopicError)) throw thrown
          // without a named topic, one of them may have just been deleted
          const isGone = thrown.code === 'ERR_TOPIC_NOT_FOUND' && topic === undefined
          if (thrown.code === 'ERR_MESSAGE_IN_FLIGHT') inFlight.push(each)
          if (thrown.code !== 'ERR_MESSAGE_NOT_FOUND' && !isGone) refused = thrown
          return false
        }
      }))
        removed.push(name)
      if (removed.length === 0)
        throw refused ?? new TopicError('ERR_MESSAGE_NOT_FOUND', 'no topic has a message with this id')
      return { id, topics: removed, ...(inFlight.length > 0 && { inFlight: inFlight.sort() }) }
    },
  })

  for (const url of ['/reStore', '/reStore/:id'] as const)
    app.route({
      ...GET,
      url,
      config: { scope: 'admin' },
      schema: {
        tags,
        operationId: url === '/reStore' ? 'legacyRestoreAll' : 'legacyRestore',
        summary: 'Put back what the journal has and Redis lacks, in all topics of the key or in one',
        ...(url !== '/reStore' && { params: Type.Object({ id: schemas.MessageParams.properties.id }) }),
        querystring: schemas.LegacyRestore,
        response: { 200: schemas.LegacyRestored },
      },
      handler: async (request) => {
        const { topic, expire } = request.query
        const { id } = request.params as { id?: string }
        const ids = id === undefined ? {} : { ids: [id] }
        let total = NOTHING_RESTORED
        const restore = async (name: string): Promise<true> => {
          const found = topic === undefined ? await topics.openIfThere(name) : await topics.open(name)
          if (found === undefined) return true // deleted a moment ago
          const own = await found.restore({ expired: isSet(expire), ...ids })
          total = sumOf(total, own)
          return true
        }
        if (!topics.hasJournal) throw new BadRequest('no-journal', 'there is nothing to restore from')
        if (topic !== undefined) assertCovers(request.apiKey, topic)
        await topics.restoreNames()
        for await (const _ of topicsOf(request.apiKey, topic, restore));
        return total
      },
    })

  app.route({
    ...GET,
    url: '/get/:topic',
    config: { scope: 'consume' },
    schema: {
      tags,
      operationId: 'legacyGet',
      summary: 'As POST /v1/topics/{topic}/receive for one message; 204 if there is none',
      params: schemas.TopicParams,
      querystring: schemas.LegacyGet,
      response: { 200: schemas.LegacyMessage, 204: Type.Null() },
    },
    handler: async (request, reply) => {
      const { ack, wait = WAIT_MS } = request.query
      const { topic } = request.params
      const { messages, isGone } = await receive(context, request, reply, { topic, max: 1, wait })
      const [message] = messages
      if (message === undefined || isGone()) return nothing(reply)
      const { id, lease, attempt, priority, dueAt, leasedUntil: _, ...content } = message
      let status: 'inFlight' | 'handled' = 'inFlight'
      if (ack === 'auto') {
        const [answer = 'lost'] = await topics.leases.acknowledge([lease])
        metrics.leases.inc({ operation: 'acknowledge', answer })
        if (answer === 'ok') status = 'handled' // if the lease was lost, the queue delivers the message again
      } else void reply.header('Redelayed-Lease', lease)
      return reply.send({ id, topic, status, attempt, priority, dueAt, ...content })
    },
  })

  /** The topics for which `does` returns true, out of the named one or all topics of the key. */
  async function* topicsOf(
    key: ApiKey,
    named: string | undefined,
    does: (topic: string) => Promise<boolean>,
  ): AsyncGenerator<string, void> {
    if (named !== undefined) assertCovers(key, named)
    const names = named === undefined ? (await topics.matching('*')).filter((each) => covers(key, each)) : [named]
    for (let from = 0; from < names.length; from += AT_ONCE) {
      const some = names.slice(from, from + AT_ONCE)
      const done = await Promise.all(some.map(does))
      yield* some.filter((_, at) => done[at])
    }
  }
}

function nothing(reply: FastifyReply): FastifyReply {
  return reply.code(204).send(null)
}
