import { SpanKind, trace } from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base'
import { expect } from 'chai'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { traceOf } from '../topics/trace.js'
import { eventually } from './support/eventually.js'
import { startTestService, type TestService } from './support/service.js'

const parent = (span: number): string => `00-4bf92f3577b34da6a3ce929d0e0e4736-${span.toString(16).padStart(16, '0')}-01`

describe('the trace of a request', () => {
  it('is a header of W3C Trace Context, or none', () => {
    const good = parent(1)
    expect(traceOf({ traceparent: good })).to.deep.equal({ traceparent: good })
    expect(traceOf({ traceparent: good, tracestate: 'a=1,b=2' })).to.deep.equal({
      traceparent: good,
      tracestate: 'a=1,b=2',
    })
    expect(traceOf({ traceparent: good, tracestate: 'a\r\nb: c' })).to.deep.equal({ traceparent: good })
    const wrong = ['', 'x', parent(0), good.toUpperCase(), `ff${good.slice(2)}`, `${good}\r\nx: y`, `${good} `]
    for (const traceparent of wrong) expect(traceOf({ traceparent, tracestate: 'a=1' }), traceparent).to.deep.equal({})
    expect(traceOf({ traceparent: `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01` })).to.deep.equal({})
  })
})

describe('a trace', function () {
  this.timeout(120_000)
  let server: TestService
  let stop: () => Promise<void>
  let url: string
  const got: { id: string | undefined; headers: IncomingHttpHeaders }[] = []

  beforeEach(async () => {
    got.length = 0
    const receiver = createServer((request, response) => {
      got.push({ id: request.headers['webhook-id'] as string, headers: request.headers })
      request.resume().on('end', () => response.end())
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const { port } = receiver.address() as AddressInfo
    url = `http://127.0.0.1:${port}/`
    server = await startTestService({ webhookPorts: [port], webhookNetworks: ['127.0.0.0/8'], legacyRoutes: true })
    stop = async () => {
      await server.stop()
      receiver.closeAllConnections()
      await new Promise((resolve) => receiver.close(resolve))
    }
  })
  afterEach(() => stop())

  it('goes from the request through the queue to the webhook, and to the receiver', async () => {
    const [hooked, pulled] = [server.topic(), server.topic()]
    const { id: endpoint } = (await server.ask('POST', '/v1/endpoints', { url })).body
    await server.ask('PUT', `/v1/topics/${hooked}`, { endpoint })
    const send = async (path: string, body: unknown, span: number): Promise<number> => {
      const headers = { traceparent: parent(span), tracestate: `span=${span}` }
      return (await server.ask('POST', path, body, { headers })).status
    }
    expect(await send(`/v1/topics/${hooked}/messages`, { id: 'one' }, 1)).to.equal(201)
    expect(await send(`/v1/topics/${hooked}/messages/batch`, [{ id: 'batch' }], 2)).to.equal(200)
    expect(await send('/v1/messages', { id: 'both', topics: [hooked, pulled] }, 3)).to.equal(201)
    expect(await send('/push', { topic: hooked, id: 'legacy' }, 4)).to.equal(200)
    const own = { id: 'own', headers: { traceparent: parent(99) } }
    expect(await send(`/v1/topics/${hooked}/messages`, own, 5)).to.equal(201)
    await server.ask('POST', `/v1/topics/${hooked}/messages`, { id: 'none' }, { headers: { traceparent: 'x' } })
    await eventually(() => expect(got).to.have.lengthOf(6))
    const arrived = new Map(got.map(({ id, headers }) => [id, [headers['traceparent'], headers['tracestate']]]))
    expect(Object.fromEntries(arrived)).to.deep.equal({
      one: [parent(1), 'span=1'],
      batch: [parent(2), 'span=2'],
      both: [parent(3), 'span=3'],
      legacy: [parent(4), 'span=4'],
      own: [parent(99), undefined],
      none: [undefined, undefined],
    })
    const { messages } = (await server.ask('POST', `/v1/topics/${pulled}/receive`, { wait: 20_000 })).body
    const [message] = messages as unknown as { id: string; headers: object }[]
    expect(message).to.deep.include({ id: 'both', headers: { traceparent: parent(3), tracestate: 'span=3' } })
    await server.ask('DELETE', `/v1/endpoints/${endpoint}?force`)
  })

  it('has spans of the service for the request, the queue and the webhook, in one trace', async () => {
    const exporter = new InMemorySpanExporter()
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
    trace.setGlobalTracerProvider(provider)
    try {
      const topic = server.topic()
      const { id: endpoint } = (await server.ask('POST', '/v1/endpoints', { url })).body
      await server.ask('PUT', `/v1/topics/${topic}`, { endpoint })
      exporter.reset()
      const headers = { traceparent: parent(7), tracestate: 'a=1' }
      await server.ask('POST', `/v1/topics/${topic}/messages`, { id: 'one' }, { headers })
      const spanOf = (name: string): ReadableSpan | undefined =>
        exporter.getFinishedSpans().find((span) => span.name === name)
      await eventually(() => expect(spanOf('POST')).to.not.equal(undefined))
      const request = spanOf('POST /v1/topics/:topic/messages')
      const [queued, webhook] = [spanOf(`send ${topic}`), spanOf('POST')]
      for (const span of [request, queued, webhook])
        expect(span?.spanContext().traceId).to.equal('4bf92f3577b34da6a3ce929d0e0e4736')
      expect(request?.parentSpanContext?.spanId).to.equal('0000000000000007')
      const own = request?.spanContext().spanId
      expect([queued, webhook].map((span) => span?.parentSpanContext?.spanId)).to.deep.equal([own, own])
      expect([request, queued, webhook].map((span) => span?.kind)).to.deep.equal([
        SpanKind.SERVER,
        SpanKind.PRODUCER,
        SpanKind.CLIENT,
      ])
      expect(request?.attributes).to.include({ 'http.response.status_code': 201 })
      expect(webhook?.attributes).to.include({ 'http.response.status_code': 200, 'messaging.message.id': 'one' })
      const span = webhook?.spanContext().spanId ?? ''
      expect(got.map(({ headers: of }) => [of['traceparent'], of['tracestate']])).to.deep.equal([
        [`00-4bf92f3577b34da6a3ce929d0e0e4736-${span}-01`, 'a=1'],
      ])
      await server.ask('DELETE', `/v1/endpoints/${endpoint}?force`)
    } finally {
      trace.disable()
      await provider.shutdown()
    }
  })

  it('is not part of the request of an idempotency key: a repeat has another span', async () => {
    const topic = server.topic()
    for (const [path, body] of [
      [`/v1/topics/${topic}/messages`, { body: 1 }],
      ['/v1/messages', { topics: [topic], body: 1 }],
    ] as const) {
      const push = (span: number) =>
        server.ask('POST', path, body, { headers: { 'idempotency-key': 'k', traceparent: parent(span) } })
      const [first, second] = [await push(1), await push(2)]
      expect([second.status, second.body], JSON.stringify(second.body)).to.deep.equal([201, first.body])
    }
  })
})
