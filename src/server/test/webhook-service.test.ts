import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { codecs, createClient } from 'redelayed'
import { Webhook as Verifier } from 'standardwebhooks'
import { redisUrl } from '../../../test/support/redis.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService, type TestService } from './support/service.js'

const program = fileURLToPath(new URL('../cli/main.ts', import.meta.url))

interface Request {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** An endpoint that records its webhooks. */
class Receiver {
  readonly requests: Request[] = []
  /** The status that the path answers; default 200. */
  readonly answers = new Map<string, (response: ServerResponse, body: string) => void>()
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<Receiver> {
    const server = createServer()
    const receiver = new Receiver(server)
    server.on('request', (request, response: ServerResponse) => {
      const path = request.url ?? ''
      let body = ''
      request.on('data', (bytes: Buffer) => (body += bytes.toString()))
      request.on('end', () => {
        receiver.requests.push({ path, headers: request.headers, body })
        const answer = receiver.answers.get(path)
        if (answer === undefined) response.end('thanks')
        else answer(response, body)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  of(path: string): Request[] {
    return this.requests.filter((request) => request.path === path)
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

describe('the secrets of an endpoint', function () {
  this.timeout(60_000)

  it('are all known to two instances that give it new ones at once, and to one that changes it meanwhile', async () => {
    const [one, two] = [await startTestService(), await startTestService()]
    const client = createClient({ url: redisUrl() })
    const codec = codecs.json<{ secrets: { text: string }[] }>()
    const records = client.getReliableQueue('redelayed-server:endpoints', { codec })
    const made = await one.ask('POST', '/v1/endpoints', { url: 'https://example.com/hook' })
    const path = `/v1/endpoints/${made.body.id}`
    try {
      for (let round = 0; round < 10; round++) {
        const answers = await Promise.all([
          one.ask('POST', `${path}/rotate-secret`),
          two.ask('PATCH', path, { description: `round ${round}` }),
          two.ask('POST', `${path}/rotate-secret`),
          one.ask('PATCH', path, { timeout: 1_000 + round }),
        ])
        expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200])
        const given = [answers[0].body.secret, answers[2].body.secret]
        const { secrets = [] } = (await records.get(made.body.id))?.payload ?? {}
        expect(secrets.slice(0, 2).map(({ text }) => text)).to.have.members(given)
        expect(secrets).to.have.length(Math.min(5, 3 + 2 * round))
        const shown = (await two.ask('GET', path)).body as unknown as { description: string; timeout: number }
        expect(shown).to.include({ description: `round ${round}`, timeout: 1_000 + round })
      }
    } finally {
      await one.ask('DELETE', path)
      await client.shutdown()
      await one.stop()
      await two.stop()
    }
  })
})

describe('webhooks', function () {
  this.timeout(240_000)
  let receiver: Receiver
  let test: TestService
  let count = 0
  const endpoints: string[] = []
  const allowed = () => ({ webhookPorts: [receiver.port], webhookNetworks: ['127.0.0.0/8'] })

  beforeEach(async () => {
    receiver = await Receiver.start()
    test = await startTestService(allowed())
  })
  afterEach(async () => {
    for (const id of endpoints.splice(0)) await test.ask('DELETE', `/v1/endpoints/${id}?force`)
    await test.stop()
    await receiver.stop()
  })

  /** Makes an endpoint with its own path, and a topic that uses it. */
  async function endpoint(more: object = {}, settings: object = {}) {
    const path = `/hook-${count++}`
    const url = `http://127.0.0.1:${receiver.port}${path}`
    const made = await test.ask('POST', '/v1/endpoints', { url, ...more })
    expect(made.status, JSON.stringify(made.body)).to.equal(201)
    const { id, secret } = made.body
    endpoints.push(id)
    const topic = test.topic()
    expect((await test.ask('PUT', `/v1/topics/${topic}`, { endpoint: id, ...settings })).status).to.equal(201)
    return { id, secret, path, topic }
  }

  const push = (topic: string, body: unknown, more: object = {}) =>
    test.ask('POST', `/v1/topics/${topic}/messages`, { body, ...more })
  const total = async (topic: string) => (await test.ask('GET', `/v1/topics/${topic}`)).body.counts.total

  it('go to the endpoint that a message names for itself, signed with its secret, and wait as long as the message says', async () => {
    const usual = await endpoint({}, { retryDelays: [600_000] })
    const own = await endpoint({ timeout: 20_000 })
    let tries = 0
    receiver.answers.set(own.path, (response) => {
      response.statusCode = ++tries < 3 ? 500 : 200
      response.end()
    })
    const ofOwn = { id: 'mine', endpoint: own.id, retryDelays: [0] }
    expect((await push(usual.topic, 1, ofOwn)).status).to.equal(201)
    const batch = [{ id: 'usual', body: 2 }, { id: 'same', endpoint: usual.id }, { endpoint: 'ep_AAAAAAAAAAAAAAAA' }]
    const { body } = await test.ask('POST', `/v1/topics/${usual.topic}/messages/batch`, batch)
    expect(body.results.map(({ problem }) => problem?.code)).to.deep.equal([undefined, undefined, 'endpoint-not-found'])
    await eventually(async () => expect(await total(usual.topic)).to.equal(0), 60_000)
    const ids = (path: string) => receiver.of(path).map(({ headers }) => headers['webhook-id'])
    expect(ids(own.path)).to.deep.equal(['mine', 'mine', 'mine'])
    expect(ids(usual.path)).to.have.members(['usual', 'same'])
    const [first] = receiver.of(own.path)
    expect(Object.keys(first?.headers ?? {}).filter((name) => name.startsWith('redelayed-header'))).to.deep.equal([])
    new Verifier(own.secret).verify(first?.body ?? '', first?.headers as Record<string, string>)
  })

  it('of a message with an endpoint of its own wait while that is disabled, and fail when it is gone', async () => {
    const usual = await endpoint({}, { retryDelays: [0], deliveryLimit: 2 })
    const [disabled, gone] = [await endpoint(), await endpoint()]
    await test.ask('PATCH', `/v1/endpoints/${disabled.id}`, { enabled: false })
    await push(usual.topic, 1, { id: 'waits', endpoint: disabled.id, delay: 2_000 })
    await push(usual.topic, 1, { id: 'fails', endpoint: gone.id, delay: 2_000 })
    await test.ask('DELETE', `/v1/endpoints/${gone.id}?force`)
    const stateOf = async (id: string) => (await test.ask('GET', `/v1/topics/${usual.topic}/messages/${id}`)).body
    await eventually(async () => expect((await stateOf('fails')).state).to.equal('dead'), 60_000)
    expect((await stateOf('fails')).failures.at(-1)?.reason).to.include(`there is no endpoint ${gone.id}`)
    // it was taken and given back, without an attempt
    await eventually(async () => {
      const { state, dueAt, failures } = await stateOf('waits')
      expect([state, dueAt > Date.now() + 10_000, failures.length]).to.deep.equal(['delayed', true, 0])
    }, 60_000)
    expect(receiver.requests).to.deep.equal([])
  })

  it('use endpoints of messages only if the topic has one and the key is for all topics', async () => {
    const { id, topic } = await endpoint()
    const plain = test.topic()
    const refused = await push(plain, 1, { endpoint: id })
    expect([refused.status, refused.body.code]).to.deep.equal([409, 'no-endpoint'])
    expect(await total(plain)).to.equal(0)
    const missing = await push(topic, 1, { endpoint: 'ep_AAAAAAAAAAAAAAAA' })
    expect([missing.status, missing.body.code]).to.deep.equal([404, 'endpoint-not-found'])
    const key = test.addKey(['push'], [topic])
    const waited = await eventually(async () => {
      const answer = await test.ask('POST', `/v1/topics/${topic}/messages`, { endpoint: id }, { key })
      expect(answer.status).not.to.equal(401) // the keys are read again after a second
      return answer
    })
    expect([waited.status, waited.body.code]).to.deep.equal([403, 'forbidden'])
    const fanned = { topics: [topic, plain], endpoint: id, body: 1 }
    const { status, body } = await test.ask('POST', '/v1/messages', fanned)
    expect([status, body.results.map(({ problem }) => problem?.code)]).to.deep.equal([207, [undefined, 'no-endpoint']])
  })

  it('of a push with a key have the same answer after their endpoint was deleted, but a new request is refused', async () => {
    const { topic } = await endpoint()
    const { id } = await endpoint()
    const body = { body: 1, endpoint: id, delay: 3_600_000 }
    const once = (path: string, given: object, key: string) =>
      test.ask('POST', path, given, { headers: { 'idempotency-key': key } })
    const [path, fanned] = [`/v1/topics/${topic}/messages`, { ...body, topics: [topic] }]
    const first = [await once(path, body, 'k'), await once('/v1/messages', fanned, 'k')]
    expect(first.map(({ status }) => status)).to.deep.equal([201, 201])
    await test.ask('DELETE', `/v1/endpoints/${id}?force`)
    const again = [await once(path, body, 'k'), await once('/v1/messages', fanned, 'k')]
    expect(again.map((each) => each.body)).to.deep.equal(first.map((each) => each.body))
    expect(again.map(({ headers }) => headers.get('idempotency-replayed'))).to.deep.equal(['true', 'true'])
    for (const [given, key] of [
      [body, 'other'],
      [{ ...body, body: 2 }, 'k'],
    ] as const) {
      const refused = await once(path, given, key)
      expect([refused.status, refused.body.code], key).to.deep.equal([404, 'endpoint-not-found'])
    }
    expect(await total(topic)).to.equal(2)
  })

  it('are listed for all endpoints together, the newest first, in pages', async () => {
    const all = [await endpoint(), await endpoint(), await endpoint()]
    for (let at = 0; at < 5; at++)
      for (const { topic } of all) await push(topic, at, { id: `${topic}-${at}`, delay: at * 20 })
    await eventually(() => expect(receiver.requests).to.have.length(15), 30_000)
    interface Page {
      readonly deliveries: readonly { readonly endpoint: string; readonly id: string; readonly at: number }[]
      readonly cursor?: string
    }
    const read = async (query: string) => (await test.ask('GET', `/v1/deliveries?${query}`)).body as unknown as Page
    const ids = new Set(all.map(({ id }) => id))
    const own = (page: Page) => page.deliveries.filter(({ endpoint: id }) => ids.has(id))
    await eventually(async () => expect(own(await read('limit=200'))).to.have.length(15), 30_000)
    const found: string[] = []
    const times: number[] = []
    for (let cursor = ''; ;) {
      const page = await read(`limit=4${cursor}`)
      expect(page.deliveries.length).to.be.at.most(4)
      found.push(...own(page).map(({ id }) => id))
      times.push(...page.deliveries.map(({ at }) => at))
      if (page.cursor === undefined || found.length >= 15) break
      cursor = `&cursor=${page.cursor}`
    }
    expect(new Set(found).size, 'each once').to.equal(15)
    expect(found).to.have.length(15)
    const [one] = all
    const of = await read(`endpoint=${one?.id}`)
    expect(of.deliveries.map(({ endpoint: id }) => id)).to.deep.equal(Array(5).fill(one?.id))
    expect((await test.ask('GET', '/v1/deliveries?endpoint=ep_AAAAAAAAAAAAAAAA')).status).to.equal(404)
    // by the order in which they were noted, which can differ from their times by some milliseconds
    for (let at = 1; at < times.length; at++) expect(times[at]! - times[at - 1]!).to.be.below(1_000)
  })

  it('bring each message to its endpoint once, signed, from two instances', async () => {
    const other = await startTestService(allowed())
    try {
      const { id, secret, path, topic } = await endpoint()
      const batch = Array.from({ length: 100 }, (_, at) => ({ id: `m${at}`, body: { at }, headers: { 'X-A': 'b' } }))
      await test.ask('POST', `/v1/topics/${topic}/messages/batch`, batch)
      await eventually(async () => expect(await total(topic)).to.equal(0), 60_000)
      const got = receiver.of(path)
      expect(new Set(got.map(({ headers }) => headers['webhook-id'])).size).to.equal(100)
      expect(got).to.have.length(100)
      for (const { body, headers } of got) {
        new Verifier(secret).verify(body, headers as Record<string, string>)
        expect(headers).to.include({
          'content-type': 'application/json',
          'redelayed-attempt': '1',
          'redelayed-header-x-a': 'b',
        })
      }
      await eventually(async () => {
        const { body } = await test.ask('GET', `/v1/endpoints/${id}/deliveries?limit=10`)
        expect(body.deliveries).to.have.length(10)
        expect(body.deliveries[0]).to.include({ topic, outcome: 'delivered', status: 200, answer: 'thanks' })
        expect(body.cursor).to.be.a('string')
      })
      expect((await test.ask('GET', `/v1/endpoints/${id}`)).body.topics).to.deep.equal([topic] as unknown[])
    } finally {
      await other.stop()
    }
  })

  it('are tried again after the delays of the topic, become dead letters with the answers, and come back by a recovery', async () => {
    const { id, path, topic } = await endpoint({}, { retryDelays: [50], deliveryLimit: 3 })
    receiver.answers.set(path, (response) => response.writeHead(500).end('broken'))
    await push(topic, 1, { id: 'a' })
    await eventually(async () => {
      const { body } = await test.ask('GET', `/v1/topics/${topic}/messages/a`)
      expect(body.state).to.equal('dead')
      expect(body.failures).to.have.length(3)
      expect(body.failures[0]?.reason).to.include('500 broken')
    }, 60_000)
    expect(receiver.of(path).map(({ headers }) => headers['redelayed-attempt'])).to.deep.equal(['1', '2', '3'])
    receiver.answers.delete(path)
    expect((await test.ask('POST', `/v1/endpoints/${id}/recover`)).body).to.deep.equal({ redriven: 1 })
    await eventually(async () => expect(await total(topic)).to.equal(0), 60_000)
    expect(receiver.of(path)).to.have.length(4)
  })

  it('end at an endpoint that answers 410, until it is enabled again', async () => {
    const { id, path, topic } = await endpoint()
    receiver.answers.set(path, (response) => response.writeHead(410).end())
    await push(topic, 1)
    await eventually(async () => {
      const { body } = await test.ask('GET', `/v1/endpoints/${id}`)
      expect([body.enabled, body.disabled?.reason]).to.deep.equal([false, 'gone'])
      const { body: audit } = await test.ask('GET', '/v1/audit?limit=1000')
      expect(JSON.stringify(audit)).to.include(
        `"key":"service","method":"PATCH","path":"/v1/endpoints/${id}?disabled=gone"`,
      )
    }, 60_000)
    await eventually(async () => {
      const text = (await test.ask('GET', '/metrics')).body
      expect(text)
        .to.match(/^redelayed_endpoints\{state="gone"\} [1-9]\d*$/m)
        .and.match(/^redelayed_endpoints\{state="well"\} \d+$/m)
    }, 60_000)
    receiver.answers.delete(path)
    expect(await total(topic), 'it waits').to.equal(1)
    expect(receiver.of(path), 'what is gone gets nothing more').to.have.length(1)
    expect((await test.ask('PATCH', `/v1/endpoints/${id}`, { enabled: true })).body.enabled).to.equal(true)
    await eventually(async () => expect(await total(topic)).to.equal(0), 60_000)
    expect(receiver.of(path)).to.have.length(2)
  })

  it('are counted by the class of their endpoint, not by endpoint', async () => {
    const { id, path, topic } = await endpoint({}, { retryDelays: [600_000] })
    const redis = new Redis(redisUrl())
    const countOf = async (labels: string): Promise<number> => {
      const text = (await test.ask('GET', '/metrics')).body as unknown as string
      const line = text.split('\n').find((each) => each.startsWith(`redelayed_webhooks_total{${labels}}`))
      return Number(line?.split(' ').at(-1) ?? 0)
    }
    const labelsOf = (status: number, endpointClass: string): string =>
      `outcome="${status < 300 ? 'delivered' : 'failed'}",status="${String(status)[0]}xx",endpoint_class="${endpointClass}"`
    const send = async (status: number, endpointClass: string): Promise<void> => {
      const before = await countOf(labelsOf(status, endpointClass))
      receiver.answers.set(path, (response) => response.writeHead(status).end())
      await push(topic, 1)
      await eventually(async () => expect(await countOf(labelsOf(status, endpointClass))).to.equal(before + 1), 60_000)
    }
    try {
      await send(200, 'well')
      await send(500, 'well')
      await redis.hset(`redelayed:service:endpoint:{${id}}`, 'failingSince', Date.now() - 3_600_000)
      await send(500, 'failing')
      await send(200, 'well')
      const own = ((await test.ask('GET', '/metrics')).body as unknown as string).split('\n')
      expect(own.filter((line) => line.includes(id))).to.deep.equal([])
    } finally {
      await redis.quit()
    }
  })

  it('end at an endpoint that has taken none for five days, which begin anew with each delivery', async () => {
    const FIVE_DAYS = 5 * 86_400_000
    const { id, path, topic } = await endpoint({}, { retryDelays: [600_000] }) // so each message is tried once
    const redis = new Redis(redisUrl())
    const stored = `redelayed:service:endpoint:{${id}}`
    const began = Date.now()
    /** Since when the endpoint has failed, by the clock of Redis; 0 if it does not fail. */
    const failingSince = async () => Number(await redis.hget(stored, 'failingSince'))
    const failFor = (ms: number) => redis.hset(stored, 'failingSince', Date.now() - ms)
    const state = async () => {
      const { enabled, disabled } = (await test.ask('GET', `/v1/endpoints/${id}`)).body
      return [enabled, disabled?.reason]
    }
    let pushed = 0
    /** One webhook, until its outcome is recorded. */
    const send = async (status: number) => {
      receiver.answers.set(path, (response) => response.writeHead(status).end())
      expect((await push(topic, ++pushed)).status).to.equal(201)
      await eventually(async () => {
        const { deliveries } = (await test.ask('GET', `/v1/endpoints/${id}/deliveries`)).body
        expect(deliveries).to.have.length(pushed)
      }, 60_000)
    }
    try {
      await send(500)
      expect(await failingSince()).to.be.greaterThan(began - 1_000)
      await failFor(FIVE_DAYS - 3_600_000)
      await send(500)
      expect(await state(), 'an hour is missing').to.deep.equal([true, undefined])
      await send(204)
      expect(await failingSince(), 'a delivery ends it').to.equal(0)
      await send(500)
      expect(await failingSince(), 'it begins anew').to.be.greaterThan(began - 1_000)
      expect(await state()).to.deep.equal([true, undefined])

      await failFor(FIVE_DAYS)
      await send(500)
      await eventually(async () => {
        expect(await state()).to.deep.equal([false, 'failing'])
        const { body: audit } = await test.ask('GET', '/v1/audit?limit=1000')
        expect(JSON.stringify(audit)).to.include(
          `"key":"service","method":"PATCH","path":"/v1/endpoints/${id}?disabled=failing"`,
        )
      }, 60_000)
      await eventually(async () => {
        const text = (await test.ask('GET', '/metrics')).body
        expect(text).to.match(/^redelayed_endpoints\{state="failing"\} [1-9]\d*$/m)
      }, 60_000)
      expect((await push(topic, ++pushed)).status).to.equal(201)

      await test.ask('PATCH', `/v1/endpoints/${id}`, { enabled: true })
      expect(await failingSince(), 'the operator says that it works').to.equal(0)
      await eventually(() => expect(receiver.of(path)).to.have.length(pushed), 60_000)
      await eventually(async () => expect(await failingSince()).to.be.greaterThan(began - 1_000), 60_000)
      expect(await state(), 'one more failure does not disable it').to.deep.equal([true, undefined])
    } finally {
      redis.disconnect()
    }
  })

  it('continue within seconds when an operator enables an endpoint that has asked for a pause of a day', async () => {
    const { id, path, topic } = await endpoint()
    receiver.answers.set(path, (response) => response.writeHead(503, { 'retry-after': '86400' }).end())
    await push(topic, 1)
    await eventually(() => expect(receiver.of(path)).to.have.length(1), 60_000)
    receiver.answers.delete(path)
    await push(topic, 2) // it is taken, and held
    await eventually(async () => {
      const { body } = await test.ask('GET', `/v1/topics/${topic}/messages?state=delayed`)
      expect(body.messages).to.have.length(2)
    }, 60_000)
    expect((await test.ask('POST', `/v1/endpoints/${id}/recover`)).status).to.equal(200)
    await eventually(() => expect(receiver.of(path).map(({ body }) => body)).to.deep.equal(['1', '2']), 60_000)
  })

  it('are signed with each secret for as long as was set for it, also if it is rotated twice', async () => {
    const { id, path, secret } = await endpoint()
    const rotate = () => test.ask('POST', `/v1/endpoints/${id}/rotate-secret`, { keepPrevious: 3_600_000 })
    const [first, rotated] = [await rotate(), await rotate()]
    expect(new Set([secret, first.body.secret, rotated.body.secret]).size).to.equal(3)
    const answer = await test.ask('POST', `/v1/endpoints/${id}/test`)
    expect(answer.body).to.include({ status: 200, answer: 'thanks', error: null })
    const [request] = receiver.of(path)
    for (const each of [secret, first.body.secret, rotated.body.secret])
      new Verifier(each).verify(request?.body ?? '', request?.headers as Record<string, string>)
    const leaked = await test.ask('POST', `/v1/endpoints/${id}/rotate-secret`, { keepPrevious: 0 })
    await test.ask('POST', `/v1/endpoints/${id}/test`)
    const { body = '', headers } = receiver.of(path)[1] ?? {}
    new Verifier(leaked.body.secret).verify(body, headers as Record<string, string>)
    for (const each of [secret, first.body.secret, rotated.body.secret])
      expect(() => new Verifier(each).verify(body, headers as Record<string, string>)).to.throw('No matching signature')
    expect(JSON.stringify((await test.ask('GET', `/v1/endpoints/${id}`)).body)).to.not.include('whsec_')
  })

  it('that an endpoint refuses because of their content do not hold up its other topics', async () => {
    const { id, path, topic } = await endpoint({}, { retryDelays: [600_000] })
    receiver.answers.set(path, (response, body) => response.writeHead(body === '"bad"' ? 422 : 204).end('no'))
    for (let at = 0; at < 20; at++) await push(topic, 'bad')
    await eventually(() => expect(receiver.of(path)).to.have.length(20), 60_000)
    const other = test.topic()
    await test.ask('PUT', `/v1/topics/${other}`, { endpoint: id })
    await push(other, 'good')
    await eventually(async () => expect(await total(other)).to.equal(0), 20_000)
    expect((await test.ask('GET', `/v1/endpoints/${id}`)).body).to.deep.nested.include({ 'gate.state': 'closed' })
  })

  it('show their answers to no key that hides payloads', async () => {
    const { id, path, topic } = await endpoint({}, { retryDelays: [50], deliveryLimit: 1 })
    receiver.answers.set(path, (response) => response.writeHead(500).end('the card 4111 is refused'))
    await push(topic, { card: 4111 }, { id: 'a' })
    const get = async (key: string, at: string): Promise<string> =>
      JSON.stringify((await test.ask('GET', at, undefined, { key })).body)
    const paths = [
      `/v1/endpoints/${id}/deliveries`,
      `/v1/topics/${topic}/messages/a`,
      `/v1/topics/${topic}/dead-letters`,
      `/v1/dead-letters?topic=${topic}`,
      `/v1/dead-letters?topic=${topic}&reason=500`,
    ]
    await eventually(async () => {
      for (const at of paths) expect(await get(test.key, at), at).to.include('4111')
    }, 60_000)
    const blind = test.addKey(['read'], ['*'], true)
    await eventually(async () => {
      expect((await test.ask('GET', '/v1/topics', undefined, { key: blind })).status).to.equal(200)
    })
    for (const at of paths)
      expect(await get(blind, at), at)
        .to.include('500')
        .and.not.include('4111')
    expect(await get(blind, paths[0] ?? '')).to.include('"answerHidden":true')
    expect(await get(blind, `/v1/dead-letters?topic=${topic}&reason=4111`)).to.include('"deadLetters":[]')
    expect(await get(test.key, `/v1/dead-letters?topic=${topic}&reason=4111`)).to.include('"id":"a"')
  })

  it('to an endpoint that hangs hold up no other endpoint', async () => {
    const hanging = await endpoint({ concurrency: 2, timeout: 120_000 })
    receiver.answers.set(hanging.path, () => undefined)
    for (let at = 0; at < 5; at++) await push(hanging.topic, at)
    await eventually(() => expect(receiver.of(hanging.path)).to.have.length(2), 60_000)
    const good = await endpoint()
    await push(good.topic, 1)
    await eventually(() => expect(receiver.of(good.path)).to.have.length(1), 60_000)
    expect(receiver.of(hanging.path), 'its limit holds').to.have.length(2)
  })

  it('are delivered by another instance when one is killed during a delivery', async () => {
    const redis = await LosableRedis.start()
    const flags = ['--port', '0', '--redis', redis.url, '--api-keys', test.keysPath, '--log-level', 'silent']
    const egress = ['--webhook-ports', String(receiver.port), '--webhook-networks', '127.0.0.0/8']
    const child = spawn(process.execPath, ['--import=tsx', program, ...flags, ...egress], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    let other: TestService | undefined
    try {
      let greeting = ''
      await new Promise<void>((resolve, reject) => {
        void ended.then(() => reject(new Error(`the service ended: ${greeting}`)))
        child.stdout.on('data', (bytes: Buffer) => {
          greeting += bytes.toString()
          if (greeting.includes('/openapi.json')) resolve()
        })
      })
      const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(greeting) ?? []
      const ask = async (method: string, path: string, body: object): Promise<{ id: string }> => {
        const headers = { authorization: `Bearer ${test.key}`, 'content-type': 'application/json', connection: 'close' }
        const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) })
        return (await response.json()) as { id: string }
      }
      receiver.answers.set('/killed', () => undefined)
      const { id } = await ask('POST', '/v1/endpoints', {
        url: `http://127.0.0.1:${receiver.port}/killed`,
        timeout: 5_000,
      })
      await ask('PUT', '/v1/topics/orders', { endpoint: id })
      await ask('POST', '/v1/topics/orders/messages', { id: 'a', body: 1 })
      await eventually(() => expect(receiver.of('/killed')).to.have.length(1), 60_000)
      receiver.answers.delete('/killed')
      child.kill('SIGKILL')
      await ended
      const second = await startTestService({ ...allowed(), redis: redis.url })
      other = second
      await eventually(async () => {
        expect((await second.ask('GET', '/v1/topics/orders')).body.counts.total).to.equal(0)
      }, 60_000)
      expect(receiver.of('/killed').map(({ headers }) => headers['redelayed-attempt'])).to.deep.equal(['1', '2'])
    } finally {
      child.kill('SIGKILL')
      await ended
      await other?.stop()
      await redis.stop()
    }
  })

  it('go to an endpoint from the topics that it was made with', async () => {
    const [one, two] = [test.topic(), test.topic()]
    await test.ask('PUT', `/v1/topics/${one}`, { delay: 5, retryDelays: [7] })
    const path = `/made-${count++}`
    const made = { url: `http://127.0.0.1:${receiver.port}${path}` }
    const missing = await test.ask('POST', '/v1/endpoints', { ...made, topics: [one, two] })
    expect([missing.status, missing.body.code]).to.deep.equal([404, 'topic-not-found'])
    expect((await test.ask('POST', '/v1/endpoints', { ...made, topics: [one, one] })).status).to.equal(400)
    expect((await test.ask('GET', `/v1/topics/${one}`)).body.settings).to.include({ endpoint: null })
    await test.ask('PUT', `/v1/topics/${two}`, {})
    const { status, body } = await test.ask('POST', '/v1/endpoints', { ...made, topics: [two, one] })
    expect(status).to.equal(201)
    endpoints.push(body.id)
    expect(body).to.deep.include({ topics: [one, two].sort() })
    const settings = { endpoint: body.id, delay: 5, retryDelays: [7] }
    expect((await test.ask('GET', `/v1/topics/${one}`)).body.settings).to.deep.include(settings)
    for (const topic of [one, two]) await push(topic, topic)
    await eventually(() => expect(receiver.of(path)).to.have.length(2), 60_000)
  })

  it('go where they went before if an endpoint cannot be made for all of its topics', async () => {
    const { id: before, topic } = await endpoint({}, { delay: 5 })
    const other = test.topic()
    await test.ask('PUT', `/v1/topics/${other}`, {})
    const all = async (): Promise<string[]> =>
      (
        (await test.ask('GET', '/v1/endpoints?limit=1000')).body as unknown as { endpoints: { id: string }[] }
      ).endpoints.map(({ id }) => id)
    const known = await all()
    const settings = async (): Promise<object> => (await test.ask('GET', `/v1/topics/${topic}`)).body.settings
    const redis = new Redis(redisUrl())
    const client = createClient({ url: redisUrl() })
    const lock = `redelayed:service:topic-lock:{${other}}`
    const hold = () => redis.set(lock, 'a test', 'PX', 60_000)
    try {
      await hold()
      const url = `http://127.0.0.1:${receiver.port}/never`
      const making = test.ask('POST', '/v1/endpoints', { url, topics: [topic, other] })
      await eventually(async () => {
        await hold()
        expect(await settings()).not.to.include({ endpoint: before })
      })
      // the second one is deleted while the first one has the new endpoint
      await client.getReliableQueue('redelayed-server:topics').remove(other)
      await redis.del(lock)
      const { status, body } = await making
      expect([status, body.code]).to.deep.equal([404, 'topic-not-found'])
      expect(await settings()).to.include({ endpoint: before, delay: 5 })
      expect(await all()).to.deep.equal(known)
    } finally {
      await redis.del(lock)
      redis.disconnect()
      await client.shutdown()
    }
  })

  it('get an endpoint without losing changes of the settings of a topic meanwhile', async () => {
    const topic = test.topic()
    await test.ask('PUT', `/v1/topics/${topic}`, {})
    const url = `http://127.0.0.1:${receiver.port}/meanwhile`
    for (let delay = 1; delay <= 5; delay++) {
      const make = () => test.ask('POST', '/v1/endpoints', { url, topics: [topic] })
      const making = Array.from({ length: 8 }, make)
      const [put, ...made] = await Promise.all([test.ask('PUT', `/v1/topics/${topic}`, { delay }), ...making])
      endpoints.push(...made.map(({ body }) => body.id))
      expect([put, ...made].map(({ status }) => status)).to.deep.equal([200, ...making.map(() => 201)])
      expect((await test.ask('GET', `/v1/topics/${topic}`)).body.settings).to.include({ delay })
    }
  })

  it('go nowhere that the operator does not allow, and a topic cannot get a missing endpoint', async () => {
    for (const url of [
      'http://127.0.0.1/',
      'http://[::1]/',
      'http://169.254.169.254/',
      'ftp://a.example/',
      'http://a:b@c.example/',
    ]) {
      const strict = url.includes('127.0.0.1') ? `${url}x` : url // another port than the receiver's
      expect((await test.ask('POST', '/v1/endpoints', { url: strict })).status, url).to.equal(400)
    }
    const unknown = await test.ask('PUT', `/v1/topics/${test.topic()}`, { endpoint: 'ep_0000000000000000' })
    expect([unknown.status, unknown.body.code]).to.deep.equal([404, 'endpoint-not-found'])
    const { id } = await endpoint()
    const used = await test.ask('DELETE', `/v1/endpoints/${id}`)
    expect([used.status, used.body.code]).to.deep.equal([409, 'endpoint-in-use'])
    const narrow = test.addKey(['admin', 'read'], ['orders'])
    await eventually(async () => {
      expect((await test.ask('GET', '/v1/endpoints', undefined, { key: narrow })).status).to.equal(403)
    })
  })
})
