import swagger from '@fastify/swagger'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { LogController, type FastifyInstance, type FastifyReply } from 'fastify'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ServerSettings } from '../config/server-settings.js'
import type { Sessions } from '../console/sessions.js'
import type { Tracing } from '../topics/tracing.js'
import type { ApiKeys } from './api-keys.js'
import { Answers } from './answers.js'
import { authorize } from './authorize.js'
import { bareAnswer, PROBLEM } from './bare-answer.js'
import { Bodies } from './bodies.js'
import { assertUncompressed, readOnlyJson } from './content.js'
import { named, withComponents } from './components.js'
import { limitConnections } from './connection-limit.js'
import type { App, Waits } from './context.js'
import { described } from './described.js'
import { lingerAfterEarlyAnswers } from './lingering.js'
import { loggerOf } from './logger.js'
import type { Metrics } from './metrics.js'
import { Paths } from './paths.js'
import { BadRequest, problem, problemOf, type ProblemCode } from './problem.js'
import { RateLimit } from './rate-limit.js'
import { spanRequests } from './request-spans.js'
import { BatchInput, ProblemOutput } from './schemas.js'
import { validatorCompiler } from './validator.js'

export interface BaseParts {
  readonly settings: ServerSettings
  readonly keys: ApiKeys
  readonly sessions: Sessions
  readonly metrics: Metrics
  readonly waits: Waits
  readonly tracing: Tracing | undefined
  readonly version: string
}

const MAX_HEADER_BYTES = 16_384
/** The most bytes of a body, except for pushes. */
const BODY_LIMIT = 2 * 1_048_576
/** The methods that a read-only service allows. Signing in is allowed too: it changes only the memory of the service. */
const READS = ['GET', 'HEAD']
const SESSION = '/ui/session'
/** The time for a client to read why its request was refused, and to close its side. */
const LINGER_MS = 1_000
const BATCH_PATH = '/v1/topics/:topic/messages/batch'

/** Creates an app without routes, with everything that all routes share. */
export async function createBaseApp(
  parts: BaseParts,
): Promise<{ readonly app: App; readonly rates: RateLimit; readonly answers: Answers }> {
  const { settings, keys, metrics, waits } = parts
  const app = fastify({
    logger: settings.logLevel === 'silent' ? false : loggerOf(settings.logLevel),
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    // requests under way on kept connections get their answer while the service stops
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => {
      const answer = problemOf(error)
      void (reply as FastifyReply)
        .code(answer.status)
        .type(PROBLEM)
        .send({ ...answer, requestId: request.id })
    },
    bodyLimit: BODY_LIMIT,
    requestTimeout: settings.requestTimeout,
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 3_600 },
    http: {
      connectionsCheckingInterval: 1_000,
      requireHostHeader: false, // Node would refuse such requests without saying why
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: Math.min(15_000, settings.requestTimeout),
    },
    clientErrorHandler: answerUnreadable,
    // given at creation: otherwise fastify would load its own, with two hundred modules
    schemaController: {
      // its types know only the compilers of Ajv
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        buildSerializer: () => () => JSON.stringify,
      },
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
  limitConnections(app.server, settings.maxConnections, () => metrics.refusedConnections.inc())
  app.server.on('checkExpectation', refuseExpectation)
  readOnlyJson(app)

  const paths = new Paths(app)
  app.decorateRequest('apiKey')
  if (parts.tracing !== undefined) spanRequests(app, parts.tracing)
  // hooks without promises: every request goes through each of them
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('X-Request-Id', request.id)
    if (settings.readOnly && !READS.includes(request.method) && request.routeOptions.url !== SESSION)
      throw new BadRequest('read-only', 'this service was started with --read-only')
    if (request.is404) throw notThere(paths.methodsOf(request.url), reply) // before a body is read
    void reply.header('X-Content-Type-Options', 'nosniff')
    void reply.header('Cache-Control', 'no-store')
    if (waits.isStopping) void reply.header('Connection', 'close')
    assertUncompressed(request)
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      throw new BadRequest('invalid-request', 'an HTTP/1.1 request needs a Host header')
    done()
  })
  const rates = new RateLimit(settings.rateLimit)
  app.addHook('onRequest', authorize(keys, parts.sessions, rates))
  const bodies = new Bodies(settings.maxBodiesBytes)
  bodies.watch(app) // after the key was checked, if the route needs one
  metrics.bodyBytes = () => bodies.bytes
  lingerAfterEarlyAnswers(app)
  const answers = new Answers(settings.maxAnswersBytes)
  answers.watch(app)
  metrics.answerBytes = () => answers.bytes
  app.addHook('preValidation', (request, _, done) => {
    // null is a body, but not a valid one
    if (request.routeOptions.config.bodyIsOptional && request.body === undefined) request.body = {}
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none'
    metrics.requests.observe({ method: request.method, route, status: reply.statusCode }, reply.elapsedTime / 1_000)
    const line = {
      method: request.method,
      route,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
      key: request.apiKey?.id,
    }
    if (reply.statusCode >= 500) request.log.warn(line, 'failed')
    else request.log.debug(line, 'answered')
    done()
  })
  app.setErrorHandler(async (thrown, request, reply) => {
    const answer = problemOf(thrown)
    if (answer.status >= 500) request.log.error(thrown, 'a request failed')
    if (answer.status === 503) void reply.header('Retry-After', 1)
    return reply
      .code(answer.status)
      .type(PROBLEM)
      .send({ ...answer, requestId: request.id })
  })
  app.setNotFoundHandler(async (request, reply) => {
    return reply
      .code(404)
      .type(PROBLEM)
      .send(problem('not-found', undefined, { requestId: request.id }))
  })

  await describe(app, parts.version)
  return { app, rates, answers }
}

interface Operation {
  readonly operationId?: string
  readonly requestBody?: { required: boolean; content?: Record<string, { schema: object }> }
}

const NDJSON = 'application/x-ndjson'
const LINES = { type: 'string', pattern: '[^\\r\\n]', description: 'A message as JSON in each line' }

function withForms<T extends { readonly body?: unknown; readonly response?: unknown }>(schema: T): T {
  if (schema === undefined) return schema
  const { body, response } = schema
  return {
    ...schema,
    ...(body !== undefined && { body: named(body, described) }),
    ...(response !== undefined && { response: named(response) }),
  }
}

function notThere(methods: readonly string[], reply: { header(name: string, value: string): unknown }): BadRequest {
  if (methods.length === 0) return new BadRequest('not-found', 'see /docs or /openapi.json')
  void reply.header('Allow', methods.join(', '))
  return new BadRequest('method-not-allowed', `this path allows ${methods.join(', ')}`)
}

/** Adds the OpenAPI 3.1 document of the routes; each can answer with a problem. */
async function describe(app: Pick<FastifyInstance, 'register' | 'addHook'>, version: string): Promise<void> {
  const withoutBody = new Set<unknown>()
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'redelayed', version, description: 'Delayed messages for every language.' },
      components: {
        securitySchemes: {
          key: { type: 'http', scheme: 'bearer' },
          session: { type: 'apiKey', in: 'cookie', name: 'redelayed-session' },
        },
      },
      security: [{ key: [] }, { session: [] }],
    },
    // a batch is checked message by message, so the route itself has no schema of its body
    transform: ({ schema, url }) => ({
      schema: withForms(url === BATCH_PATH ? { ...schema, body: BatchInput } : schema),
      url,
    }),
    transformObject: (document) => {
      const { paths = {} } = 'openapiObject' in document ? document.openapiObject : {}
      const operations = Object.values(paths).flatMap((path) => Object.values(path ?? {}) as Operation[])
      for (const { operationId, requestBody } of operations)
        if (withoutBody.has(operationId) && requestBody !== undefined) requestBody.required = false
      for (const { requestBody } of operations) {
        const { content } = requestBody ?? {}
        if (content?.[NDJSON] !== undefined) content[NDJSON] = { schema: LINES }
      }
      return 'openapiObject' in document ? withComponents(document.openapiObject) : document.swaggerObject
    },
  })
  app.addHook('onRoute', (route) => {
    if (route.schema === undefined || route.schema.hide === true) return
    if (route.config?.bodyIsOptional) withoutBody.add(route.schema.operationId)
    const responses = (route.schema.response ?? {}) as Record<string, unknown>
    const problems = { description: 'A problem', content: { [PROBLEM]: { schema: ProblemOutput } } }
    route.schema.response = { ...responses, '4xx': problems, '5xx': problems }
  })
}

/** Answers an unknown expectation with a problem: Node would refuse it without saying why. */
function refuseExpectation(_: IncomingMessage, response: ServerResponse): void {
  const body = JSON.stringify(problem('expectation-failed', 'only "100-continue" is supported'))
  response.writeHead(417, { 'Content-Type': PROBLEM, 'Content-Length': Buffer.byteLength(body), Connection: 'close' })
  response.end(body)
}

/** Answers on the bare socket when Node could not read a request. */
function answerUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const code: ProblemCode =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? 'headers-too-large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? 'request-timeout'
        : 'invalid-request'
  socket.end(bareAnswer(code, 'the request could not be read'))
  // otherwise a client that never closes its side would keep its connection and its memory
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
