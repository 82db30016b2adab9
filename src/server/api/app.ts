import swagger from '@fastify/swagger'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { LogController, type FastifyInstance, type FastifyReply } from 'fastify'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { ServerSettings } from '../config/server-settings.js'
import type { DeliveryLog } from '../delivery/delivery-log.js'
import type { Dispatcher } from '../delivery/dispatcher.js'
import type { EndpointGate } from '../delivery/endpoint-gate.js'
import type { Endpoints } from '../delivery/endpoints.js'
import type { AgendaReader } from '../console/agenda.js'
import type { HealthReader } from '../console/health.js'
import type { Instances } from '../console/instances.js'
import type { Doctor } from '../console/doctor.js'
import type { DueMessages } from '../console/due-messages.js'
import type { Pauses } from '../console/pauses.js'
import type { Sampler } from '../console/sampler.js'
import type { PageFiles } from '../console/page-files.js'
import type { Sessions } from '../console/sessions.js'
import type { Topics } from '../topics/topics.js'
import type { Tracing } from '../topics/tracing.js'
import type { ApiKeys } from './api-keys.js'
import type { AuditLog } from './audit-log.js'
import { authorize } from './authorize.js'
import { assertUncompressed, readOnlyJson } from './content.js'
import { Waits, type App, type Context } from './context.js'
import { named, withComponents } from './components.js'
import { described } from './described.js'
import { loggerOf } from './logger.js'
import type { Metrics } from './metrics.js'
import { Paths } from './paths.js'
import { BadRequest, problem, problemOf, PROBLEMS, type ProblemCode } from './problem.js'
import { RateLimit } from './rate-limit.js'
import { spanRequests } from './request-spans.js'
import { auditRoutes } from './routes/audit.js'
import { consoleRoutes } from './routes/console.js'
import { consumeRoutes } from './routes/consume.js'
import { deadLetterRoutes } from './routes/dead-letters.js'
import { endpointRoutes } from './routes/endpoints.js'
import { eventRoutes } from './routes/events.js'
import { fanOutRoutes } from './routes/fan-out.js'
import { legacyRoutes } from './routes/legacy.js'
import { messageRoutes } from './routes/messages.js'
import { operationRoutes } from './routes/operations.js'
import { pageRoutes } from './routes/page.js'
import { restoreRoutes } from './routes/restores.js'
import { searchRoutes } from './routes/search.js'
import { topicRoutes } from './routes/topics.js'
import type { Restores } from './restores.js'
import { BatchInput, ProblemOutput } from './schemas.js'
import { validatorCompiler } from './validator.js'

export interface AppParts {
  readonly settings: ServerSettings
  readonly topics: Topics
  readonly endpoints: Endpoints
  readonly dispatcher: Dispatcher
  readonly gate: EndpointGate
  readonly deliveryLog: DeliveryLog
  readonly audit: AuditLog
  readonly metrics: Metrics
  readonly restores: Restores
  readonly keys: ApiKeys
  readonly sessions: Sessions
  /** Which SQL database; `undefined`: there is no journal. */
  readonly journalKind: string | undefined
  readonly sampler: Sampler
  readonly health: HealthReader
  readonly due: DueMessages
  readonly pauses: Pauses
  readonly doctor: Doctor
  readonly instances: Instances
  readonly agenda: AgendaReader
  /** `undefined`: the page was not built. */
  readonly page: PageFiles | undefined
  readonly tracing: Tracing | undefined
  readonly version: string
}

export interface Api {
  readonly app: FastifyInstance
  readonly metrics: Metrics
  /** The service is not ready from then on, and works as before. */
  readonly leave: () => void
  /** Ends waits with what they have. */
  readonly stopWaiting: () => void
}

const MAX_HEADER_BYTES = 16_384
/** Of requests other than pushes. */
const BODY_LIMIT = 2 * 1_048_576
const PROBLEM = 'application/problem+json'
const BATCH_PATH = '/v1/topics/:topic/messages/batch'

/** The HTTP API on the topics: routes with their schemas, and what all of them share. */
export async function createApp(parts: AppParts): Promise<Api> {
  const { settings, topics, keys, metrics, endpoints, dispatcher, gate, deliveryLog, restores } = parts
  const waits = new Waits()
  const app = fastify({
    logger: settings.logLevel === 'silent' ? false : loggerOf(settings.logLevel),
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    // what is under way on kept connections while the service stops gets its answer
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
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: Math.min(15_000, settings.requestTimeout),
    },
    clientErrorHandler: answerUnreadable,
  }).withTypeProvider<TypeBoxTypeProvider>()
  app.server.maxConnections = settings.maxConnections
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(() => JSON.stringify)
  readOnlyJson(app)

  const paths = new Paths(app)
  app.decorateRequest('apiKey')
  if (parts.tracing !== undefined) spanRequests(app, parts.tracing)
  app.addHook('onRequest', async (request, reply) => {
    void reply.header('X-Request-Id', request.id)
    if (request.is404) throw notThere(paths.methodsOf(request.url), reply) // before a body is read
    void reply.header('X-Content-Type-Options', 'nosniff')
    void reply.header('Cache-Control', 'no-store')
    if (waits.isStopping) void reply.header('Connection', 'close')
    assertUncompressed(request)
  })
  const rates = new RateLimit(settings.rateLimit)
  app.addHook('onRequest', authorize(keys, parts.sessions, rates))
  app.addHook('preValidation', async (request) => {
    // null is a body, and a wrong one
    if (request.routeOptions.config.bodyIsOptional && request.body === undefined) request.body = {}
  })
  app.addHook('onResponse', async (request, reply) => {
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
  const context: Context = { topics, settings, metrics, waits, endpoints, dispatcher, gate, deliveryLog, restores }
  await app.register(async (scope) => {
    const routes = scope as App
    auditRoutes(routes, parts.audit) // before the others: its hook is for all of them
    topicRoutes(routes, context, { pauses: parts.pauses, sampler: parts.sampler })
    messageRoutes(routes, context)
    fanOutRoutes(routes, context)
    deadLetterRoutes(routes, context)
    searchRoutes(routes, context, { due: parts.due, doctor: parts.doctor })
    consumeRoutes(routes, context)
    eventRoutes(routes, context)
    endpointRoutes(routes, context)
    restoreRoutes(routes, context)
    consoleRoutes(routes, context, parts)
    operationRoutes(routes, context)
    const about = { journal: topics.hasJournal, version: parts.version }
    if (settings.ui) pageRoutes(routes, { files: parts.page, sessions: parts.sessions, keys, rates, about })
    if (settings.legacyRoutes) legacyRoutes(routes, context)
  })
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
  return {
    app: app as unknown as FastifyInstance,
    metrics,
    leave: () => waits.leave(),
    stopWaiting: () => waits.stop(),
  }
}

interface Operation {
  readonly operationId?: string
  readonly requestBody?: { required: boolean; content?: Record<string, { schema: object }> }
}

const NDJSON = 'application/x-ndjson'
const LINES = { type: 'string', pattern: '[^\\r\\n]', description: 'In each line a message as JSON' }

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
  if (methods.length === 0) return new BadRequest('not-found', 'see /openapi.json')
  void reply.header('Allow', methods.join(', '))
  return new BadRequest('method-not-allowed', `the path has ${methods.join(', ')}`)
}

/** OpenAPI 3.1 of the routes; each can answer with a problem. */
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

/** What Node could not read as a request: the answer goes to the bare socket. */
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
  const body = JSON.stringify(problem(code, 'the request could not be read'))
  const [status, title] = PROBLEMS[code]
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    `Content-Type: ${PROBLEM}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
