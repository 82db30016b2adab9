import { mkdirSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Cluster, Redis } from 'ioredis'
import { createClient, RedelayedError, type RedelayedClient } from 'redelayed'
import { createApp } from '../api/app.js'
import { AuditLog, disabling } from '../api/audit-log.js'
import { ApiKeys, makeKeysFile } from '../api/api-keys.js'
import type { ServerSettings } from '../config/server-settings.js'
import { AgendaReader } from '../console/agenda.js'
import { Doctor } from '../console/doctor.js'
import { LibraryCommand } from '../console/library-command.js'
import { DueMessages } from '../console/due-messages.js'
import { HeldTopics } from '../console/held-topics.js'
import { HealthReader } from '../console/health.js'
import { Instances } from '../console/instances.js'
import { Pauses } from '../console/pauses.js'
import { Sampler } from '../console/sampler.js'
import { readPageFiles } from '../console/page-files.js'
import { Sessions } from '../console/sessions.js'
import { DeliveryLog } from '../delivery/delivery-log.js'
import { Dispatcher } from '../delivery/dispatcher.js'
import { EgressPolicy } from '../delivery/egress-policy.js'
import { EndpointGate } from '../delivery/endpoint-gate.js'
import { Endpoints } from '../delivery/endpoints.js'
import { Sender } from '../delivery/sender.js'
import { endpointClassOf, Metrics } from '../api/metrics.js'
import { Restores } from '../api/restores.js'
import { createJournal, type Journal } from '../journal/journal.js'
import { Exclusive } from '../topics/exclusive.js'
import { Topics } from '../topics/topics.js'
import { Tracing } from '../topics/tracing.js'
import { WorkerLease } from '../topics/worker-lease.js'
import { atMost } from '../pause.js'
import { builtPage } from './built-page.js'
import { addressOf, connectOptionsOf, infoOf, plainClient } from './connections.js'
import { closedWithin, urlOf } from './listening.js'
import type { Service } from './running.js'
import { startReadOnlyService } from './read-only-service.js'
import { startEmulator, startOwnRedis, type OwnRedis } from './own-redis.js'

export type { Service }

/**
 * Starts the delay service, or with `readOnly` the service that only reads.
 *
 * @throws RedelayedError something that it needs is missing; nothing stays open
 */
export function startService(settings: ServerSettings, version: string, pageFolder = builtPage()): Promise<Service> {
  return settings.readOnly
    ? startReadOnlyService(settings, version, pageFolder)
    : startWholeService(settings, version, pageFolder)
}

async function startWholeService(settings: ServerSettings, version: string, pageFolder: string): Promise<Service> {
  const closers: (() => Promise<void>)[] = []
  const undo: (() => void)[] = []
  const closeAll = async (): Promise<void> => {
    const failures: unknown[] = []
    for (const close of closers.splice(0).reverse()) await close().catch((error: unknown) => failures.push(error))
    if (failures.length > 0) throw failures[0]
  }
  try {
    // SQL opens while Redis starts
    const journalUrl = journalOf(settings)
    const opening = journalUrl === undefined ? undefined : openJournal(journalUrl, settings)
    closers.push(async () => (await opening?.catch(() => undefined))?.close())
    opening?.catch(() => undefined)

    const ownRedis = needsRedis(settings) ? await startRedis(settings.dataDir) : undefined
    if (ownRedis !== undefined) closers.push(() => ownRedis.stop())

    const client = createClient(connectOptionsOf(settings, ownRedis))
    closers.push(() => client.shutdown())
    const log: Log = { error: () => undefined, warn: () => undefined }
    client.on('error', (error) => log.error(error))

    const journal = await opening
    if (journal !== undefined) closers.push(() => journal.close())
    journal?.on('error', (error, queue) => log.error({ err: error, queue }))

    const { redis, close } = plainClient(settings, ownRedis)
    closers.push(async () => close())
    redis.on('error', (error: unknown) => log.error(error))

    const onError = (error: unknown): void => log.error(error)
    const worker = settings.ids === 'snowflake' ? new WorkerLease(redis, { onError }) : undefined
    if (worker !== undefined) closers.push(() => worker.stop())
    await worker?.start()

    const tracing = await Tracing.load()
    const pauses = new Pauses(redis)
    const topics = new Topics(client, {
      ...settings,
      redis,
      isPaused: async (topic) => (await pauses.of([topic]))[0]?.includes('push') ?? false,
      journal,
      tracing,
      drawId: worker && (() => worker.draw()),
      onError,
    })
    closers.push(() => topics.stop())
    // what consumers have handled would come again
    if (ownRedis?.isDurable === false) closers.push(() => atMost(settings.shutdownTimeout, topics.drain()))
    await topics.start()

    const webhooks = await startWebhooks(settings, client, redis, topics, journal, log, tracing)
    closers.push(() => webhooks.stop())

    const restores = new Restores(redis, topics, onError)
    closers.push(() => restores.stop())

    const keysPath = settings.apiKeys ?? join(settings.dataDir, 'api-keys')
    const madeKey = settings.apiKeys === undefined ? makeKeysFile(keysPath) : undefined
    // an unseen key must not be the only one
    if (madeKey !== undefined) undo.push(() => rmSync(keysPath, { force: true }))
    const keys = new ApiKeys(keysPath, (error) => log.error(error))

    const sampler = new Sampler(topics, redis, onError)
    closers.push(() => sampler.stop())
    const health = new HealthReader(
      {
        info: () => infoOf(redis),
        pingJournal: topics.hasJournal ? () => topics.pingJournal() : undefined,
        endpoints: () => webhooks.endpoints.list(),
        gate: webhooks.gate,
        now: () => topics.now(),
      },
      onError,
    )
    closers.push(() => health.stop())
    webhooks.metrics.health = () => health.read()
    webhooks.metrics.pausesOf = (some) => pauses.of(some)
    const agenda = new AgendaReader(redis, topics)
    const due = new DueMessages(redis, topics)
    const held = new HeldTopics(redis, topics)
    const command = new LibraryCommand(addressOf(settings, ownRedis))
    closers.push(() => command.stop())
    const doctor = new Doctor(command, () => topics.now())
    const instances = new Instances(redis, version, () => topics.now())
    closers.push(() => instances.stop())
    const page = settings.ui ? readPageFiles(pageFolder) : undefined
    const { app, leave, stopWaiting } = await createApp({
      ...{
        settings,
        topics,
        keys,
        version,
        restores,
        tracing,
        page,
        journalKind: journalUrl?.split(':', 1)[0],
        sampler,
        health,
        agenda,
        due,
        held,
        pauses,
        doctor,
        instances,
        sessions: new Sessions(redis),
      },
      ...webhooks,
    })
    log.error = (thrown) => app.log.error(thrown)
    log.warn = (fields, text) => app.log.warn(fields, text)
    closers.push(async () => {
      leave()
      await new Promise((resolve) => setTimeout(resolve, settings.shutdownDelay))
      stopWaiting()
      void webhooks.dispatcher.stop(settings.shutdownTimeout) // meanwhile
      await closedWithin(settings.shutdownTimeout, app)
    })
    await app.listen({ host: settings.host, port: settings.port })
    const url = urlOf(app.server.address() as AddressInfo)
    await instances.start(async () => {
      const connections = await promisify(app.server.getConnections.bind(app.server))()
      const [waiting] = (await webhooks.metrics.waiting.get()).values
      return { url, connections, waiting: waiting?.value ?? 0 }
    }, onError)
    webhooks.sender.prepare().catch(onError) // not before the service listens
    return {
      url,
      madeKey,
      keysPath,
      ownRedis,
      journal: journalUrl === undefined ? undefined : `${journalUrl.split(':', 1)[0]}, ${settings.journalMode}`,
      failed: ownRedis?.ended ?? new Promise<never>(() => undefined),
      close: closeAll,
    }
  } catch (thrown) {
    for (const step of undo) step()
    await closeAll().catch(() => undefined)
    throw thrown
  }
}

function needsRedis({ redis, redisCluster }: ServerSettings): boolean {
  return redis === undefined && redisCluster.length === 0
}

async function startRedis(dataDir: string): Promise<OwnRedis> {
  const found = (await startOwnRedis(dataDir)) ?? (await startEmulator())
  if (found !== undefined) return found
  const ways = 'set --redis or REDIS_URL, or install redis-server or valkey-server'
  throw new RedelayedError(
    'ERR_NO_REDIS',
    `no Redis was found: ${ways}, or the npm package js-redis-server to try it out`,
  )
}

/**
 * The URL of the journal. By default a service with its own Redis gets a SQLite file; instances on a given Redis would need a shared
 * database.
 */
function journalOf(settings: ServerSettings): string | undefined {
  const { journal, journalMode, dataDir } = settings
  if (journal === 'off' || journalMode === 'off') return undefined
  return journal ?? (needsRedis(settings) ? `sqlite:${join(dataDir, 'journal.db')}` : undefined)
}

async function openJournal(
  url: string,
  { journalMode: mode, journalRetention, dataDir }: ServerSettings,
): Promise<Journal> {
  mkdirSync(dataDir, { recursive: true })
  return createJournal({ url, mode, retentionMs: journalRetention })
}

interface Log {
  error: (thrown: unknown) => void
  warn: (fields: object, text: string) => void
}

/** Starts all parts that deliver webhooks. */
async function startWebhooks(
  settings: ServerSettings,
  client: RedelayedClient,
  redis: Redis | Cluster,
  topics: Topics,
  journal: Journal | undefined,
  log: Log,
  tracing: Tracing | undefined,
) {
  const policy = new EgressPolicy({
    ports: settings.webhookPorts,
    allowNetworks: settings.webhookNetworks,
    allowHttp: settings.webhookHttp,
  })
  const endpoints = new Endpoints(client, policy, new Exclusive(redis, 'endpoint'), settings.maxEndpoints)
  if (journal !== undefined) await endpoints.keepIn(journal)
  const { webhookProxy } = settings
  const sender = new Sender(policy, { proxy: webhookProxy === undefined ? undefined : new URL(webhookProxy) })
  const metrics = new Metrics()
  const [gate, deliveryLog, audit] = [new EndpointGate(redis), new DeliveryLog(redis), new AuditLog(redis)]
  const onError = (error: unknown): void => log.error(error)
  const dispatcher = new Dispatcher({
    ...{ topics, endpoints, policy, sender, gate, log: deliveryLog, tracing, onError },
    onDelivered: ({ outcome, answer, latenessMs, failingMs }) => {
      const status = answer.is === 'answer' ? `${Math.floor(answer.status / 100)}xx` : 'none'
      metrics.webhooks.inc({ outcome, status, endpoint_class: endpointClassOf(failingMs) })
      metrics.webhookSeconds.observe(answer.tookMs / 1_000)
      metrics.webhookLateness.observe(latenessMs / 1_000)
    },
    onDisabled: (endpoint, reason) => {
      log.warn({ endpoint, reason }, 'an endpoint was disabled')
      audit.add(disabling(endpoint, reason)).catch(onError)
    },
  })
  dispatcher.start()
  return {
    ...{ endpoints, dispatcher, gate, deliveryLog, metrics, audit, sender },
    async stop() {
      await dispatcher.stop(settings.shutdownTimeout)
      await sender.close()
    },
  }
}
