import type { FastifyInstance } from 'fastify'
import type { ServerSettings } from '../config/server-settings.js'
import type { Doctor } from '../console/doctor.js'
import type { PageFiles } from '../console/page-files.js'
import type { Queues } from '../console/queues.js'
import type { Sessions } from '../console/sessions.js'
import type { ApiKeys } from './api-keys.js'
import { createBaseApp } from './base-app.js'
import { Waits, type App } from './context.js'
import { Metrics } from './metrics.js'
import { descriptionRoutes } from './routes/description.js'
import { doctorRoute } from './routes/doctor.js'
import { healthRoutes } from './routes/health.js'
import { pageRoutes } from './routes/page.js'
import { queueRoutes } from './routes/queues.js'

export interface ReadOnlyParts {
  readonly settings: ServerSettings
  readonly keys: ApiKeys
  readonly sessions: Sessions
  readonly queues: Queues
  readonly doctor: Doctor
  /** `undefined`: the page was not built. */
  readonly page: PageFiles | undefined
  readonly version: string
}

/** The routes that only read, for a Redis that libraries use without the service. */
export async function createReadOnlyApp(parts: ReadOnlyParts): Promise<{ app: FastifyInstance; waits: Waits }> {
  const { settings, keys, sessions, version } = parts
  const waits = new Waits()
  const { app, rates } = await createBaseApp({ ...parts, waits, metrics: new Metrics(), tracing: undefined })
  await app.register(async (scope) => {
    const routes = scope as App
    queueRoutes(routes, parts.queues)
    doctorRoute(routes, parts.doctor)
    healthRoutes(routes, waits, async () => {
      await parts.queues.ping()
      return { status: 'ok' }
    })
    const about = { journal: false, readOnly: true, version }
    if (settings.ui) pageRoutes(routes, { files: parts.page, sessions, keys, rates, about })
  })
  descriptionRoutes(app)
  return { app: app as unknown as FastifyInstance, waits }
}
