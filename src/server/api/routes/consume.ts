import { readLease } from '../../topics/lease.js'
import type { Received } from '../../topics/topic.js'
import type { LeaseAnswer } from '../../topics/topics.js'
import type { ApiKey } from '../api-keys.js'
import { assertCovers } from '../authorize.js'
import type { App, Context } from '../context.js'
import * as schemas from '../schemas.js'

/** Messages of one answer have at most so many bytes together: as base64 in JSON they still fit into one string. */
const MOST_ANSWER_BYTES = 256 * 1_048_576

/** Messages for consumers: received, acknowledged, given back. */
export function consumeRoutes(app: App, { topics, settings, metrics, waits }: Context): void {
  const tags = ['consume']

  app.post(
    '/v1/topics/:topic/receive',
    {
      config: { scope: 'consume', bodyIsOptional: true },
      schema: {
        tags,
        operationId: 'receiveMessages',
        summary: 'Receive due messages, or wait for the first ones',
        params: schemas.TopicParams,
        body: schemas.ReceiveInput,
        response: { 200: schemas.ReceiveOutput },
      },
    },
    async (request, reply) => {
      const { max = 1, wait = 0, visibilityTimeout } = request.body
      const topic = await topics.open(request.params.topic, { create: true })
      const waiting = waits.begin()
      let received: Received | undefined
      let isGone = false
      const giveBack = async (): Promise<void> => {
        metrics.givenBack.inc(received?.messages.length ?? 0)
        await received
          ?.giveBack()
          .catch((thrown: unknown) => request.log.warn(thrown, 'messages come back when their visibility ends'))
      }
      const { socket } = request.raw
      const leave = (): void => {
        if (isGone || reply.raw.writableFinished) return
        isGone = true
        waiting.abort()
        void giveBack()
      }
      // By the socket: a pipelined answer has none of its own yet. And the client can have hung up while the topic was opened.
      socket.once('close', leave)
      reply.raw.once('finish', () => socket.off('close', leave))
      if (socket.destroyed) leave()
      metrics.waiting.inc()
      try {
        received = await topic.receive({
          max: Math.min(max, Math.max(1, Math.floor(MOST_ANSWER_BYTES / settings.maxMessageBytes))),
          wait: Math.min(wait, settings.maxWait),
          visibilityTimeout,
          signal: waiting.signal,
        })
      } finally {
        metrics.waiting.dec()
        waits.end(waiting)
      }
      if (isGone) await giveBack()
      if (received.messages.length > 0) {
        metrics.received.inc(received.messages.length)
        metrics.lateness.observe(received.latenessMs / 1_000)
      }
      return { messages: [...received.messages] }
    },
  )

  app.post(
    '/v1/leases/acknowledge',
    {
      config: { scope: 'consume' },
      schema: {
        tags,
        operationId: 'acknowledge',
        summary: 'The messages were handled: remove them',
        body: schemas.AcknowledgeInput,
        response: { 200: schemas.LeaseOutput },
      },
    },
    async ({ body: { leases }, apiKey }) => {
      assertOwn(apiKey, leases)
      return answered('acknowledge', await topics.acknowledge(leases))
    },
  )

  app.post(
    '/v1/leases/negative-acknowledge',
    {
      config: { scope: 'consume' },
      schema: {
        tags,
        operationId: 'negativeAcknowledge',
        summary: 'The messages were not handled: redeliver them later',
        body: schemas.NegativeInput,
        response: { 200: schemas.LeaseOutput },
      },
    },
    async ({ body: { leases, ...answer }, apiKey }) => {
      assertOwn(apiKey, leases)
      return answered('negative-acknowledge', await topics.negativeAcknowledge(leases, answer))
    },
  )

  app.post(
    '/v1/leases/extend',
    {
      config: { scope: 'consume' },
      schema: {
        tags,
        operationId: 'extend',
        summary: 'The messages take longer',
        body: schemas.ExtendInput,
        response: { 200: schemas.LeaseOutput },
      },
    },
    async ({ body: { leases, visibilityTimeout }, apiKey }) => {
      assertOwn(apiKey, leases)
      return answered('extend', await topics.extend(leases, visibilityTimeout))
    },
  )

  function answered(operation: string, results: LeaseAnswer[]): { results: LeaseAnswer[] } {
    for (const answer of results) metrics.leases.inc({ operation, answer })
    return { results }
  }
}

function assertOwn(key: ApiKey, leases: readonly string[]): void {
  for (const lease of leases) assertCovers(key, readLease(lease).topic)
}
