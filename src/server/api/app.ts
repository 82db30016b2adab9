import type { FastifyInstance } from 'fastify'
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
import type { HeldTopics } from '../console/held-topics.js'
import type { Pauses } from '../console/pauses.js'
import type { Sampler } from '../console/sampler.js'
import type { PageFiles } from '../console/page-files.js'
import type { Sessions } from '../console/sessions.js'
import type { Topics } from '../topics/topics.js'
import type { Tracing } from '../topics/tracing.js'
import type { ApiKeys } from './api-keys.js'
import type { AuditLog } from './audit-log.js'
import { createBaseApp } from './base-app.js'
import { Waits, type App, type Context } from './context.js'
import type { Metrics } from './metrics.js'
import { auditRoutes } from './routes/audit.js'
import { consoleRoutes } from './routes/console.js'
import { consumeRoutes } from './routes/consume.js'
import { deadLetterRoutes } from './routes/dead-letters.js'
import { descriptionRoutes } from './routes/description.js'
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
  /** The kind of SQL database; `undefined`: there is no journal. */
  readonly journalKind: string | undefined
  readonly sampler: Sampler
  readonly health: HealthReader
  readonly due: DueMessages
  readonly held: HeldTopics
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
  /** From then on the service reports that it is not ready, but works as before. */
  readonly leave: () => void
  /** Ends waiting requests with the messages that they have. */
  readonly stopWaiting: () => void
}

/** Creates the HTTP API of the service. */
export async function createApp(parts: AppParts): Promise<Api> {
  const { settings, topics, keys, metrics, endpoints, dispatcher, gate, deliveryLog, restores } = parts
  const waits = new Waits()
  const { app, rates, answers } = await createBaseApp({ ...parts, waits })
  const context: Context = {
    ...{ topics, settings, metrics, waits, answers },
    ...{ endpoints, dispatcher, gate, deliveryLog, restores },
  }
  await app.register(async (scope) => {
    const routes = scope as App
    auditRoutes(routes, parts.audit) // before the others: its hook is for all of them
    topicRoutes(routes, context, { pauses: parts.pauses, sampler: parts.sampler })
    messageRoutes(routes, context)
    fanOutRoutes(routes, context)
    deadLetterRoutes(routes, context)
    searchRoutes(routes, context, { due: parts.due, held: parts.held, doctor: parts.doctor })
    consumeRoutes(routes, context)
    eventRoutes(routes, context, parts)
    endpointRoutes(routes, context)
    restoreRoutes(routes, context)
    consoleRoutes(routes, context, parts)
    operationRoutes(routes, context)
    const about = { journal: topics.hasJournal, readOnly: false, version: parts.version }
    if (settings.ui) pageRoutes(routes, { files: parts.page, sessions: parts.sessions, keys, rates, about })
    if (settings.legacyRoutes) legacyRoutes(routes, context)
  })
  descriptionRoutes(app)
  return {
    app: app as unknown as FastifyInstance,
    metrics,
    leave: () => waits.leave(),
    stopWaiting: () => waits.stop(),
  }
}
