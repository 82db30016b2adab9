import type { Static } from 'typebox'
import type { AgendaReader } from '../../console/agenda.js'
import type { Doctor } from '../../console/doctor.js'
import type { HealthReader } from '../../console/health.js'
import type { Instances } from '../../console/instances.js'
import { problemsOfDoctor, problemsOfService, problemsOfTopics } from '../../console/problems.js'
import type { Sessions } from '../../console/sessions.js'
import type { Sampler, TopicSample } from '../../console/sampler.js'
import { errorFor } from '../../console/shown-message.js'
import { pause } from '../../pause.js'
import { covers, isBlind, type ApiKey, type ApiKeys } from '../api-keys.js'
import { assertCovers, keyOf } from '../authorize.js'
import type { App, Context } from '../context.js'
import { BadRequest, redisProblem } from '../problem.js'
import { Rates } from '../rates.js'
import { RecentLateness } from '../recent-lateness.js'
import * as schemas from '../schemas.js'

const tags = ['page']
const BUSIEST = 20
const STREAM_MS = 1_000
const NONE = { total: 0, visible: 0, delayed: 0, inFlight: 0, dead: 0 }

/** The routes of the page over all topics of a key, each with bounded work. */
export function consoleRoutes(
  app: App,
  { topics, settings, metrics, waits }: Context,
  parts: {
    /** The kind of SQL database; `undefined`: there is no journal. */
    readonly journalKind: string | undefined
    readonly sampler: Sampler
    readonly health: HealthReader
    readonly doctor: Doctor
    readonly agenda: AgendaReader
    readonly instances: Instances
    readonly keys: ApiKeys
    readonly sessions: Sessions
  },
): void {
  const { journalKind, sampler, health, doctor, agenda, instances, keys, sessions } = parts
  const rates = new Rates(metrics)
  const recentLateness = new RecentLateness([metrics.lateness, metrics.webhookLateness])
  let streams = 0

  app.get(
    '/v1/overview',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getOverview',
        summary: 'The messages of all topics of the key together, the most overdue one, and the busiest topics',
        response: { 200: schemas.OverviewOutput },
      },
    },
    async ({ apiKey }) => overviewFor(apiKey),
  )

  app.get(
    '/v1/overview/stream',
    {
      exposeHeadRoute: false,
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'watchOverview',
        summary: 'The overview about once a second, as server-sent events',
        produces: ['text/event-stream'],
      },
    },
    async (request, reply) => {
      if (streams >= settings.maxEventStreams)
        throw new BadRequest('too-many-streams', `at most ${settings.maxEventStreams} are allowed`)
      void reply.hijack()
      const { raw } = reply
      raw.writeHead(200, {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-store',
        'X-Accel-Buffering': 'no',
      })
      const waiting = waits.begin()
      raw.once('close', () => waiting.abort())
      if (request.raw.socket.destroyed) waiting.abort()
      streams++
      try {
        while (!waiting.signal.aborted) {
          const key = await keyOf(request, keys, sessions)
          if (!key?.scopes.has('read')) break // the key was removed or changed
          // a slow client gets the next overview when it has read this one
          if (!raw.writableNeedDrain) raw.write(`event: overview\ndata: ${JSON.stringify(await overviewFor(key))}\n\n`)
          await pause(STREAM_MS, waiting.signal)
        }
      } catch (thrown) {
        request.log.warn(thrown, 'a stream of overviews ended')
      } finally {
        streams--
        waits.end(waiting)
        raw.end()
      }
    },
  )

  app.get(
    '/v1/instances',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'listInstances',
        summary: 'The instances of the service that reported in the last 15 seconds',
        response: { 200: schemas.InstancesOutput },
      },
    },
    async ({ apiKey }) => {
      assertCovers(apiKey, '*')
      return { instances: await instances.list().catch(redisProblem) }
    },
  )

  app.get(
    '/v1/agenda',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getAgenda',
        summary: 'When how many messages of a topic, or of all topics of the key, become visible',
        querystring: schemas.AgendaQuery,
        response: { 200: schemas.AgendaOutput },
      },
    },
    async ({ query, apiKey, raw: { socket } }) => {
      const { topic, from = topics.now(), buckets = 60 } = query
      const { to = from + 3_600_000 } = query
      if (topic !== undefined) assertCovers(apiKey, topic)
      const names = topic === undefined ? await namesOf(apiKey) : [(await topics.open(topic)).name]
      return agenda.read(names, { from, to, count: buckets }, () => socket.destroyed).catch(redisProblem)
    },
  )

  app.get(
    '/v1/topics/:topic/messages/:id/flow',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getFlow',
        summary: 'The history of a message, if the service has a journal',
        params: schemas.MessageParams,
        response: { 200: schemas.FlowOutput },
      },
    },
    async ({ params: { topic: name, id }, apiKey }) => {
      const topic = await topics.open(name)
      const flow = (await topic.journal?.flow(id)) ?? []
      return {
        flow: flow.map(({ change, at, attempt, client, error }) => ({
          ...{ change, at, attempt, by: client },
          error: errorFor(isBlind(apiKey), error),
        })),
        source: topic.journal === undefined ? ('none' as const) : ('journal' as const),
      }
    },
  )

  async function overviewFor(key: ApiKey): Promise<Static<typeof schemas.OverviewOutput>> {
    const [{ at, topics: all, total }, now, alive, known] = await Promise.all([
      sampler.read(),
      health.read(),
      instances.list().catch(redisProblem),
      ratesFor(key),
    ])
    const own = all.filter(({ topic }) => covers(key, topic))
    const [oldest] = firstBy(own, 1, ({ visible, oldestMs }) => (visible > 0 ? oldestMs : -1))
    const isForAll = key.topics.includes('*')
    const lag = lagOf(own, at)
    const report = isForAll && key.scopes.has('admin') ? doctor.lastReport() : undefined
    return {
      at,
      redis: isForAll ? now.redis : { ...now.redis, version: null, usedMemory: null, maxMemory: null },
      journal: topics.hasJournal ? { mode: settings.journalMode, kind: journalKind ?? 'sql', ...lag } : null,
      instances: alive.length,
      topics: isForAll ? total : own.length,
      counts: own.reduce((sum, each) => added(sum, each), NONE),
      oldestDue:
        oldest === undefined || oldest.visible === 0
          ? null
          : { topic: oldest.topic, dueAt: at - oldest.oldestMs, overdueMs: oldest.oldestMs },
      ...known,
      lateness: isForAll ? await recentLateness.read(at) : null,
      busiest: firstBy(own, BUSIEST, ({ total }) => total).map((each) => ({
        ...{ topic: each.topic, counts: added(NONE, each), oldestMs: each.oldestMs, paused: [...each.paused] },
      })),
      problems: [
        ...(isForAll ? problemsOfService(now, lag) : []),
        ...problemsOfTopics(own),
        ...(report === undefined ? [] : problemsOfDoctor(report)),
      ],
      complete: all.length >= total,
    }
  }

  /** The rates of this instance over all topics; zeros for a key of some topics. */
  async function ratesFor(key: ApiKey) {
    const { rates: found, series } = await rates.read(topics.now())
    const isForAll = key.topics.includes('*')
    const none = { pushed: 0, delivered: 0, acknowledged: 0, failed: 0 }
    return { rates: { ...(isForAll ? found : none), dead: 0 }, series: isForAll ? series : [] }
  }

  async function namesOf(key: ApiKey): Promise<string[]> {
    return (await topics.list()).map(({ name }) => name).filter((name) => covers(key, name))
  }
}

/**
 * The `count` elements with the highest figures, highest first, in stable order. Fast, as each overview calls it with ten thousand topics.
 */
function firstBy<T>(all: readonly T[], count: number, figure: (each: T) => number): T[] {
  const first: { readonly each: T; readonly value: number }[] = []
  for (const each of all) {
    const value = figure(each)
    if (first.length === count && value <= (first.at(-1)?.value ?? Infinity)) continue
    const at = first.findIndex((other) => other.value < value)
    first.splice(at < 0 ? first.length : at, 0, { each, value })
    if (first.length > count) first.pop()
  }
  return first.map(({ each }) => each)
}

function lagOf(topics: readonly TopicSample[], now: number): { pending: number; lagMs: number | null } {
  const since = topics.flatMap(({ behindSince }) => behindSince ?? [])
  const pending = topics.reduce((sum, { behind }) => sum + behind, 0)
  return {
    pending,
    lagMs: since.length === 0 ? null : Math.max(0, now - since.reduce((first, each) => Math.min(first, each))),
  }
}

function added(sum: typeof NONE, { total, visible, delayed, inFlight, dead }: typeof NONE) {
  return {
    total: sum.total + total,
    visible: sum.visible + visible,
    delayed: sum.delayed + delayed,
    inFlight: sum.inFlight + inFlight,
    dead: sum.dead + dead,
  }
}
