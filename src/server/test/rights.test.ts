import { expect } from 'chai'
import { Redis } from 'ioredis'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { createClient } from 'redelayed'
import { startCluster, startRedis } from '../../../test/support/redis-server.js'
import type { ServerSettings } from '../config/server-settings.js'
import { eventually } from './support/eventually.js'
import { refusedTo, rightsIn } from './support/rights.js'
import { startTestService, type AnswerBody, type TestService } from './support/service.js'

/** Servers of a test's own, and the settings with which a service reaches them as a user. */
interface Servers {
  readonly urls: readonly string[]
  settingsFor(user: string): Partial<ServerSettings>
  stop(): Promise<void>
}

const asUser = (url: string, user: string): string => url.replace('://', `://${user}:password@`)

async function oneRedis(): Promise<Servers> {
  const server = await startRedis()
  return {
    urls: [server.url],
    settingsFor: (user) => ({ redis: asUser(server.url, user) }),
    stop: () => server.stop(),
  }
}

async function cluster(): Promise<Servers> {
  const setup = await startCluster()
  const urls = setup.servers.map(({ url }) => url)
  return {
    urls,
    settingsFor: (user) => ({ redisCluster: urls.map((url) => asUser(url, user)) }),
    stop: () => setup.stop(),
  }
}

async function addUser(urls: readonly string[], page: string, user: string): Promise<void> {
  for (const url of urls) {
    const admin = new Redis(url)
    await admin.call('ACL', 'SETUSER', user, 'on', '>password', ...rightsIn(page, user))
    await admin.quit()
  }
}

/** A connection of the library asks whether it may end others: one that only reads need not. */
const MAY_BE_REFUSED = 'command client|kill'
/** The doctor asks for the rights of its user, which may be refused. */
const DOCTOR_IS_REFUSED = ['command acl|whoami']

/** The commands that a script calls, also in included parts; with a subcommand if the script names it: `PUBSUB|NUMSUB`. */
function commandsOf(file: URL): string[] {
  const text = readFileSync(file, 'utf8')
  const calls = Array.from(text.matchAll(/redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?/g), ([, name, word]) =>
    name === 'PUBSUB' ? `${name}|${word}` : String(name),
  )
  const included = Array.from(text.matchAll(/^-- include (\S+)$/gm), ([, path]) =>
    commandsOf(new URL(String(path), file)),
  )
  return [...calls, ...included.flat()]
}

// except acknowledging changes, which only readers of a group do
it('the rights that the guide gives to the service are enough for all that its scripts can do', () => {
  const library = new URL('../../store/scripts/', import.meta.url)
  const folders = ['../topics/scripts/', '../records/scripts/', '../delivery/scripts/', '../console/scripts/']
  const files = [
    ...readdirSync(library).flatMap((name) =>
      /^reliable-(?!acknowledge-changes).*\.lua$/.test(name) ? [new URL(name, library)] : [],
    ),
    ...folders
      .map((path) => new URL(path, import.meta.url))
      .flatMap((folder) =>
        readdirSync(folder).flatMap((name) => (name.endsWith('.lua') ? [new URL(name, folder)] : [])),
      ),
  ]
  expect(files.length).to.be.greaterThan(30)
  const rights = rightsIn('service.md', 'redelayed')
  for (const file of files)
    for (const command of commandsOf(file))
      expect(rights, `${command} of ${file.pathname}`).to.include(`+${command.toLowerCase()}`)
})

for (const [name, start] of [
  ['one Redis', oneRedis],
  ['a cluster', cluster],
] as const)
  describe(`the rights that the guides give to a user of ${name}`, function () {
    this.timeout(180_000)
    let servers: Servers
    let receiver: Server
    let dir: string
    before(async () => {
      servers = await start()
      await addUser(servers.urls, 'service.md', 'redelayed')
      await addUser(servers.urls, 'page.md', 'reader')
    })
    after(() => servers?.stop())
    beforeEach(async () => {
      dir = mkdtempSync(join(tmpdir(), 'redelayed-rights-'))
      receiver = createServer((_, response) => response.end('thanks'))
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    })
    afterEach(() => {
      receiver.close()
      rmSync(dir, { recursive: true, force: true })
    })

    const startService = (settings: Partial<ServerSettings>): Promise<TestService> =>
      startTestService({
        ...servers.settingsFor('redelayed'),
        ...{ ids: 'snowflake', legacyRoutes: true, webhookNetworks: ['127.0.0.0/8'] },
        webhookPorts: [(receiver.address() as AddressInfo).port],
        ...settings,
      })

    for (const withJournal of [false, true])
      it(`are enough for the service ${withJournal ? 'with' : 'without'} a journal`, async () => {
        const journal = withJournal ? `sqlite:${join(dir, 'journal.db')}` : 'off'
        const test = await startService({ journal })
        try {
          await useAllOf(test, receiver, withJournal)
          const { status, body } = await test.ask('GET', '/v1/doctor')
          expect(status, JSON.stringify(body)).to.equal(200)
        } finally {
          await test.stop()
        }
        expect(await refusedTo('redelayed', servers.urls)).to.deep.equal(DOCTOR_IS_REFUSED)
      })

    it('are enough to show the queues with --read-only', async () => {
      const { urls } = servers
      const client = createClient(
        urls.length === 1
          ? { url: urls[0] ?? '' }
          : { cluster: urls.map((url) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) })) },
      )
      await client.getReliableQueue('shown').add('x', { delay: '1h' })
      await client.getDelayedQueue(client.getQueue('later'), { deliver: false }).offer('x', '1h')
      await client.shutdown()
      const test = await startTestService({ ...servers.settingsFor('reader'), readOnly: true })
      try {
        for (const path of [
          '/v1/queues',
          ...['/v1/queues/shown', '/v1/queues/later', '/v1/queues/shown/agenda', '/v1/queues/later/agenda'],
        ])
          expect((await test.ask('GET', path)).status, path).to.equal(200)
        expect((await refusedTo('reader', urls)).filter((one) => one !== MAY_BE_REFUSED)).to.deep.equal([])
      } finally {
        await test.stop()
      }
    })
  })

/** Each thing that the service does in Redis. */
async function useAllOf(test: TestService, receiver: Server, withJournal: boolean): Promise<void> {
  const fine = async (method: string, path: string, body?: unknown, headers = {}): Promise<AnswerBody> => {
    const answer = await test.ask(method, path, body, { headers })
    expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).to.be.within(200, 204)
    return answer.body
  }
  const topic = test.topic()
  const of = `/v1/topics/${topic}`
  const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  const delivered = new Promise((resolve) => receiver.once('request', resolve))

  await fine('PUT', of, { shards: 2, deliveryLimit: 1, visibilityTimeout: 5_000 })
  const events = new AbortController()
  const stream = await fetch(`${test.url}/v1/events?topic=${topic}`, {
    headers: { authorization: `Bearer ${test.key}` },
    signal: events.signal,
  })
  expect(stream.status).to.equal(200)
  await fine('POST', `${of}/messages`, { body: 1, timeToLive: 60_000 }, { 'idempotency-key': topic })
  await fine('POST', `${of}/messages`, { body: 1, timeToLive: 60_000 }, { 'idempotency-key': topic })
  await fine('POST', `${of}/messages/batch`, [
    { id: 'dead' },
    { id: 'held' },
    { id: 'given' },
    { id: 'due', delay: 50 },
  ])
  await fine('POST', '/v1/messages', { topics: [topic], delay: 3_600_000, body: 2 })
  await fine('POST', '/push', { topic, id: 'pushed', delay: 3_600_000 })
  const got: Record<string, string> = {}
  await eventually(async () => {
    const { messages } = await fine('POST', `${of}/receive`, { max: 10, wait: 1_000 })
    for (const { id, lease } of messages) got[id] = lease
    expect(Object.keys(got)).to.have.length(5)
  })
  const { dead, held, given, ...others } = got
  await fine('POST', '/v1/leases/extend', { leases: [held], visibilityTimeout: 60_000 })
  await fine('POST', '/v1/leases/negative-acknowledge', { leases: [dead], reject: true, error: 'no' })
  await fine('POST', '/v1/leases/negative-acknowledge', { leases: [given], delay: 3_600_000 })
  await fine('POST', '/v1/leases/acknowledge', { leases: Object.values(others) })
  await fine('GET', `${of}/messages`)
  await fine('GET', `${of}/messages/held`)
  await fine('PATCH', `${of}/messages/pushed`, { delay: 1_800_000, priority: 3, body: 4 })
  await fine('DELETE', `${of}/messages/held?force`)
  await fine('GET', `${of}/dead-letters`)
  await fine('POST', `${of}/dead-letters/redrive`, {})
  for (const what of ['push', 'receive']) {
    await fine('POST', `${of}/pause`, { what })
    await fine('POST', `${of}/resume`, { what })
  }
  await fine('GET', `/delete?id=pushed&topic=${topic}`)

  const endpoint = await fine('POST', '/v1/endpoints', { url: hook, perSecond: 100 })
  await fine('PUT', of, { shards: 2, endpoint: endpoint.id })
  await fine('POST', `${of}/messages`, { body: 'to the endpoint' })
  await delivered
  await fine('POST', `/v1/endpoints/${endpoint.id}/test`)
  await fine('POST', `/v1/endpoints/${endpoint.id}/rotate-secret`, {})
  await fine('POST', `/v1/endpoints/${endpoint.id}/recover`)
  await eventually(async () => {
    expect((await fine('GET', `/v1/endpoints/${endpoint.id}/deliveries`)).deliveries.length).to.be.greaterThan(0)
  })
  await fine('DELETE', `/v1/endpoints/${endpoint.id}?force`)

  for (const path of [
    '/v1/overview',
    '/v1/agenda',
    '/v1/instances',
    '/v1/topics',
    '/v1/audit',
    '/v1/endpoints',
    '/v1/deliveries',
  ])
    await fine('GET', path)
  for (const path of ['/v1/messages', '/v1/dead-letters', '/metrics', '/readyz']) await fine('GET', path)
  const origin = { origin: test.url, 'x-redelayed-page': '1' }
  await fine('POST', '/ui/session', { key: test.key }, origin)
  if (withJournal) {
    await fine('POST', '/v1/restores', { topic })
    await eventually(async () => expect(JSON.stringify(await fine('GET', '/v1/restores'))).to.include('"done"'))
    await fine('GET', `/reStore?topic=${topic}`)
  }
  events.abort()
  await fine('POST', `${of}/purge`, { what: 'messages' })
  await fine('DELETE', `${of}?force`)
}
