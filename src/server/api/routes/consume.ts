import { readLease } from '../../topics/lease.js'
import type { LeaseAnswer } from '../../topics/leases.js'
import type { ApiKey } from '../api-keys.js'
import { assertCovers } from '../authorize.js'
import type { App, Context } from '../context.js'
import { receive } from '../receive.js'
import * as schemas from '../schemas.js'

/** The routes of consumers: receive, acknowledge, give back. */
export function consumeRoutes(app: App, context: Context): void {
  const { topics, metrics } = context
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
      const wanted = { topic: request.params.topic, max, wait, visibilityTimeout }
      const { messages } = await receive(context, request, reply, wanted)
      return { messages: [...messages] }
    },
  )

  app.post(
    '/v1/leases/acknowledge',
    {
      config: { scope: 'consume' },
      schema: {
        tags,
        operationId: 'acknowledge',
        summary: 'Remove handled messages',
        body: schemas.AcknowledgeInput,
        response: { 200: schemas.LeaseOutput },
      },
    },
    async ({ body: { leases }, apiKey }) => {
      assertOwn(apiKey, leases)
      return answered('acknowledge', await topics.leases.acknowledge(leases))
    },
  )

  app.post(
    '/v1/leases/negative-acknowledge',
    {
      config: { scope: 'consume' },
      schema: {
        tags,
        operationId: 'negativeAcknowledge',
        summary: 'Give back messages that were not handled: they are redelivered later',
        body: schemas.NegativeInput,
        response: { 200: schemas.LeaseOutput },
      },
    },
    async ({ body: { leases, ...answer }, apiKey }) => {
      assertOwn(apiKey, leases)
      return answered('negative-acknowledge', await topics.leases.negativeAcknowledge(leases, answer))
    },
  )

  app.post(
    '/v1/leases/extend',
    {
      config: { scope: 'consume' },
      schema: {
        tags,
        operationId: 'extend',
        summary: 'Extend the leases of messages that take longer',
        body: schemas.ExtendInput,
        response: { 200: schemas.LeaseOutput },
      },
    },
    async ({ body: { leases, visibilityTimeout }, apiKey }) => {
      assertOwn(apiKey, leases)
      return answered('extend', await topics.leases.extend(leases, visibilityTimeout))
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
