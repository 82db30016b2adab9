import { RedelayedError } from 'redelayed'
import type { Static } from 'typebox'
import type { Pushed } from '../../topics/new-message.js'
import type { FannedOut } from '../../topics/pusher.js'
import { traced } from '../../topics/trace.js'
import { covers, type ApiKey } from '../api-keys.js'
import { assertCovers } from '../authorize.js'
import { requestLimit } from '../content.js'
import type { App, Context } from '../context.js'
import { assertEndpoint } from '../own-endpoint.js'
import { BadRequest, problemOf } from '../problem.js'
import * as schemas from '../schemas.js'

/** One message for several topics. */
export function fanOutRoutes(app: App, { topics, settings, metrics, endpoints }: Context): void {
  app.post(
    '/v1/messages',
    {
      config: { scope: 'push' },
      bodyLimit: requestLimit(settings),
      schema: {
        tags: ['messages'],
        operationId: 'fanOutMessage',
        summary: 'Push a message to several topics; each takes or refuses it by itself (207 if some refused it)',
        headers: schemas.PushHeaders,
        body: schemas.FanOutInput,
        response: { 200: schemas.FanOutOutput, 201: schemas.FanOutOutput, 207: schemas.FanOutOutput },
      },
    },
    async (request, reply) => {
      const { topics: list, pattern, ...message } = request.body
      const names = list ?? (await matching(request.apiKey, pattern ?? ''))
      if (new Set(names).size < names.length)
        throw new BadRequest('invalid-request', 'topics: expected each topic once')
      for (const name of names) assertCovers(request.apiKey, name)
      if (names.length > settings.maxFanOut)
        throw new BadRequest('invalid-request', `expected at most ${settings.maxFanOut} topics, got ${names.length}`)
      const check = (): Promise<void> => assertEndpoint(endpoints, request.apiKey, message)
      const key = request.headers['idempotency-key']
      if (key === undefined) await check()
      const once = key === undefined ? undefined : { key, owner: request.apiKey.id, request: request.body, check }
      const done = await topics.pusher.fanOut(names, traced(message, request.headers), once)
      for (const { result } of done.results)
        metrics.pushed.inc({ outcome: result instanceof RedelayedError ? 'refused' : result.outcome })
      const failed = done.results.filter(({ result }) => result instanceof RedelayedError).length
      if (failed === done.results.length) throw allRefused(done)
      if (done.isRepeated) void reply.header('Idempotency-Replayed', 'true')
      const results = done.results.map(({ topic, result }) => answerOf(topic, result))
      const isOld = done.results.every(({ result }) => 'outcome' in result && OLD.has(result.outcome))
      return reply.code(failed > 0 ? 207 : isOld ? 200 : 201).send({ id: done.id, results, failed })
    },
  )

  /** The topics of the key that match a pattern. */
  async function matching(key: ApiKey, pattern: string): Promise<string[]> {
    const names = (await topics.matching(pattern)).filter((name) => covers(key, name))
    if (names.length === 0) throw new BadRequest('topic-not-found', 'no topic of the key matches the pattern')
    return names
  }
}

const OLD: ReadonlySet<string> = new Set(['kept', 'postponed'])

function answerOf(topic: string, result: Pushed | RedelayedError): Static<typeof schemas.FanOutOutput>['results'][0] {
  if (result instanceof RedelayedError) {
    const { errors: _, ...problem } = problemOf(result)
    return { topic, problem }
  }
  const { outcome, dueAt } = result
  return { topic, outcome, ...(dueAt !== undefined && { dueAt }) }
}

/** The problem when all topics refused the message: that of the first topic, with all topics in `errors`. */
function allRefused({ results }: FannedOut): BadRequest {
  const said = results.map(({ topic, result }) => ({ topic, ...problemOf(result) }))
  const errors = said.map(({ topic, code, title, detail }) => ({
    path: topic,
    message: `${code}: ${detail ?? title}`,
  }))
  const [first] = said
  return new BadRequest(first?.code ?? 'internal-error', first?.detail ?? 'no topic took the message', errors)
}
