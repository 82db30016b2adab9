import { context, propagation, trace, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { expect } from 'chai'
import { Registry } from 'prom-client'
import { RejectMessage, codecs, type ClientOptions, type RedelayedClient, type ReliableQueue } from '../../src/index.js'
import { logEvents, type EventLogger } from '../../src/observability/log-events.js'
import { openTelemetry } from '../../src/observability/opentelemetry.js'
import { prometheusMetrics } from '../../src/observability/prometheus.js'
import { eventually } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, makePair, onCleanup } from './fixtures.js'

const string = { codec: codecs.string() }

function make(options: ClientOptions = {}): { client: RedelayedClient; queue: ReliableQueue<string>; name: string } {
  const name = uniqueName('observed')
  forgetReliable(name)
  const client = makeClient(options)
  return { client, name, queue: client.getReliableQueue<string>(name, string) }
}

/** Three messages: one is handled, one fails and then succeeds, one is rejected. */
async function work(client: RedelayedClient, queue: ReliableQueue<string>): Promise<void> {
  const worker = client.createWorker(
    queue,
    {
      mail: (payload: string, { message }) => {
        if (payload === 'fails' && message.attempt === 1) throw new Error('not now')
        if (payload === 'rejected') throw new RejectMessage('never')
      },
    },
    { backoff: [0] },
  )
  for (const payload of ['good', 'fails', 'rejected']) await queue.addTask('mail', payload)
  await eventually(() => expect(worker.counts).to.include({ completed: 2, failed: 1, rejected: 1 }))
  await worker.close()
}

describe('observability', () => {
  afterEach(cleanUp)

  describe('Prometheus', () => {
    it('counts and times events, and reads depths with each scrape', async () => {
      const { client, queue, name } = make()
      const { register } = prometheusMetrics(client, { queues: [queue], tasks: ['mail'] })
      await work(client, queue)
      await queue.add('waits')
      await queue.add('later', { delay: 60_000 })
      const text = await register.metrics()
      const has = (line: string) => expect(text.split('\n')).to.include(line)
      has(`redelayed_messages_total{queue="${name}",event="added"} 5`)
      has(`redelayed_messages_total{queue="${name}",event="polled"} 4`)
      has(`redelayed_messages_total{queue="${name}",event="acknowledged"} 2`)
      has(`redelayed_messages_total{queue="${name}",event="failed"} 1`)
      has(`redelayed_messages_total{queue="${name}",event="rejected"} 1`)
      has(`redelayed_settled_total{queue="${name}",task="mail",outcome="completed"} 2`)
      has(`redelayed_settled_total{queue="${name}",task="mail",outcome="rejected"} 1`)
      has(`redelayed_handling_seconds_count{queue="${name}",task="mail",outcome="completed"} 2`)
      has(`redelayed_lateness_seconds_count{queue="${name}"} 4`)
      has(`redelayed_attempts_bucket{le="1",queue="${name}"} 3`)
      has(`redelayed_attempts_bucket{le="2",queue="${name}"} 4`)
      has(`redelayed_queue_messages{queue="${name}",state="visible"} 1`)
      has(`redelayed_queue_messages{queue="${name}",state="delayed"} 1`)
      has(`redelayed_queue_messages{queue="${name}",state="in_flight"} 0`)
      has(`redelayed_queue_messages{queue="${name}",state="dead"} 1`)
      expect(text).to.match(new RegExp(`redelayed_queue_oldest_seconds\\{queue="${name}"\\} [\\d.e-]+`))
    })

    it('sums the messages held back by pauses and limits, groups and batches, without a label for each', async () => {
      const { client, queue, name } = make()
      const { register } = prometheusMetrics(client, { queues: [queue] })
      await queue.setConfig({ groupConcurrency: 1 })
      await queue.addMany(
        ['a', 'a', 'a', 'b', 'b', 'c'].map((group) => ({ payload: 'x', group })),
        { batch: 'open' },
      )
      await queue.add('later', { group: 'd', delay: 60_000 })
      await queue.batch('empty').close()
      await queue.pauseGroup('b')
      await queue.pauseTask('report')
      await queue.pollMany({ count: 10 })
      const lines = async () => (await register.metrics()).split('\n').filter((line) => line.includes(`"${name}"`))
      const has = [
        `redelayed_queue_held_back{queue="${name}",by="pause"} 2`,
        `redelayed_queue_held_back{queue="${name}",by="limit"} 2`,
        `redelayed_queue_groups{queue="${name}",state="ready"} 0`,
        `redelayed_queue_groups{queue="${name}",state="later"} 1`,
        `redelayed_queue_groups{queue="${name}",state="paused"} 1`,
        `redelayed_queue_paused_tasks{queue="${name}"} 1`,
        `redelayed_queue_batches{queue="${name}",state="unfinished"} 1`,
        `redelayed_queue_batches{queue="${name}",state="finished"} 1`,
      ]
      const before = await lines()
      expect(before).to.include.members(has)
      for (let n = 0; n < 20; n++) await queue.add('x', { group: `g${n}`, batch: `batch ${n}` })
      await queue.disableOperation('poll')
      const after = await lines()
      expect(after).to.include.members([
        `redelayed_queue_held_back{queue="${name}",by="pause"} 24`,
        `redelayed_queue_held_back{queue="${name}",by="limit"} 0`,
        `redelayed_queue_batches{queue="${name}",state="unfinished"} 21`,
      ])
      expect(after.length, 'as many series as before').to.equal(before.length)
    })

    it('counts the completed messages that are kept, and says which operations are paused', async () => {
      const { client, queue, name } = make()
      const { register } = prometheusMetrics(client, { queues: [queue] })
      const lines = async () => (await register.metrics()).split('\n').filter((line) => line.includes(`"${name}"`))
      await queue.setConfig({ keepCompleted: 2 })
      for (let n = 0; n < 3; n++) {
        await queue.add(`${n}`)
        await (await queue.poll())?.acknowledge()
      }
      expect(await lines()).to.include.members([
        `redelayed_queue_completed{queue="${name}"} 2`,
        `redelayed_queue_paused{queue="${name}",operation="add"} 0`,
        `redelayed_queue_paused{queue="${name}",operation="poll"} 0`,
      ])
      await queue.setConfig({ keepCompletedFor: 1 })
      await queue.disableOperation('poll')
      await eventually(async () =>
        expect(await lines()).to.include.members([
          `redelayed_queue_completed{queue="${name}"} 0`,
          `redelayed_queue_paused{queue="${name}",operation="add"} 0`,
          `redelayed_queue_paused{queue="${name}",operation="poll"} 1`,
        ]),
      )
    })

    it('measures delayed queues too', async () => {
      const { client, delayed, queue } = makePair('compact')
      const { register } = prometheusMetrics(client, { queues: [delayed] })
      await delayed.offer('x', 0)
      await queue.take()
      await delayed.offer('later', 60_000)
      const text = await register.metrics()
      expect(text).to.include(`redelayed_transferred_total{queue="${delayed.name}"} 1`)
      expect(text).to.include(`redelayed_transfer_lateness_seconds_count{queue="${delayed.name}"} 1`)
      expect(text).to.include(`redelayed_queue_messages{queue="${delayed.name}",state="delayed"} 1`)
    })

    it('gives a queue the same label everywhere', async () => {
      const client = makeClient()
      const name = `${uniqueName()}\u202E${'long'.repeat(60)}`
      const queue = client.getReliableQueue(name, string)
      forgetReliable(name)
      const { register } = prometheusMetrics(client, { queues: [queue] })
      await queue.add('x')
      const [, label] = /^redelayed_messages_total\{queue="(.*)",event="added"/m.exec(await register.metrics()) ?? []
      expect(await register.metrics()).to.include(`redelayed_queue_messages{queue="${label}",state="visible"} 1`)
    })

    it('gives tasks without a handler no label: their names come from outside', async () => {
      const { client, queue } = make()
      const { register } = prometheusMetrics(client, { tasks: ['other'] })
      await work(client, queue)
      const text = await register.metrics()
      expect(text).to.include('task=""')
      expect(text).not.to.include('mail')
    })

    it('a queue that cannot be read leaves the others in the scrape', async () => {
      const { client, queue, name } = make()
      const gone = makeClient()
      const broken = gone.getReliableQueue(uniqueName(), string)
      await gone.shutdown()
      const { register } = prometheusMetrics(client, { queues: [broken, queue] })
      expect(await register.metrics()).to.include(`redelayed_queue_messages{queue="${name}",state="visible"} 0`)
    })

    it('uses the registry and prefix it is given, and stops', async () => {
      const { client, queue } = make()
      const register = new Registry()
      const metrics = prometheusMetrics(client, { register, prefix: 'shop_' })
      await queue.add('x')
      expect(await register.metrics()).to.include('shop_messages_total')
      metrics.stop()
      await queue.add('x')
      expect((await register.metrics()).trim()).to.equal('')
      prometheusMetrics(client, { register, prefix: 'shop_' }) // the names are free again
    })
  })

  describe('OpenTelemetry', () => {
    const spans = new InMemorySpanExporter()

    before(() => {
      context.setGlobalContextManager(new AsyncLocalStorageContextManager())
      propagation.setGlobalPropagator(new W3CTraceContextPropagator())
      trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }))
    })
    after(() => {
      trace.disable()
      context.disable()
      propagation.disable()
    })

    it('a trace leads from the call that adds a message to its handler', async () => {
      spans.reset()
      const telemetry = openTelemetry()
      const { client, queue, name } = make({ instrumentation: telemetry.instrumentation })
      const worker = client.createWorker(queue, (payload, { message }) => {
        expect(message.headers).to.include({ own: '1' })
        expect(message.headers).to.have.property('traceparent')
        trace.getTracer('app').startSpan('inner').end()
        if (payload === 'bad') throw new RejectMessage('no')
      })
      const tracer = trace.getTracer('app')
      await tracer.startActiveSpan('request', async (span) => {
        await queue.add('good', { headers: { own: '1' } })
        await queue.addMany([{ payload: 'bad', id: 'b', headers: { own: '1' } }])
        span.end()
      })
      await eventually(() => expect(worker.counts).to.include({ completed: 1, rejected: 1 }))
      const finished = spans.getFinishedSpans()
      const request = finished.find((span) => span.name === 'request')
      const creates = finished.filter((span) => span.name === `create ${name}`)
      const processes = finished.filter((span) => span.name === `process ${name}`)
      const inner = finished.filter((span) => span.name === 'inner')
      expect([creates.length, processes.length, inner.length]).to.deep.equal([2, 2, 2])
      for (const span of finished) expect(span.spanContext().traceId).to.equal(request?.spanContext().traceId)
      creates.forEach((span) => {
        expect(span.kind).to.equal(SpanKind.PRODUCER)
        expect(span.parentSpanContext?.spanId).to.equal(request?.spanContext().spanId)
      })
      processes.forEach((span, at) => {
        expect(span.kind).to.equal(SpanKind.CONSUMER)
        expect(span.parentSpanContext?.spanId).to.equal(creates[at]?.spanContext().spanId)
        expect(inner[at]?.parentSpanContext?.spanId).to.equal(span.spanContext().spanId)
      })
      expect(processes.map(({ status }) => status.code)).to.deep.equal([SpanStatusCode.UNSET, SpanStatusCode.ERROR])
      expect(processes[1]?.attributes).to.include({ 'messaging.message.id': 'b', 'redelayed.attempt': 1 })
    })

    it('measures what Prometheus would', async () => {
      const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
      const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
      const provider = new MeterProvider({ readers: [reader] })
      onCleanup(() => provider.shutdown())
      const telemetry = openTelemetry({ meter: provider.getMeter('test') })
      const { client, queue, name } = make()
      const stop = telemetry.measure(client, { queues: [queue], tasks: ['mail'] })
      await work(client, queue)
      await reader.forceFlush()
      const metrics = exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      const pointsOf = (metric: string) =>
        metrics.find(({ descriptor }) => descriptor.name === `redelayed.${metric}`)?.dataPoints ?? []
      const handled = pointsOf('settled').find(({ attributes }) => attributes['outcome'] === 'completed')
      expect(handled).to.deep.include({ value: 2, attributes: { queue: name, task: 'mail', outcome: 'completed' } })
      expect(pointsOf('attempts')[0]?.value).to.include({ count: 4 })
      const dead = pointsOf('queue_messages').find(({ attributes }) => attributes['state'] === 'dead')
      expect(dead).to.deep.include({ value: 1, attributes: { queue: name, state: 'dead' } })
      expect(pointsOf('queue_completed')[0]).to.deep.include({ value: 0, attributes: { queue: name } })
      expect(pointsOf('queue_paused').map(({ attributes }) => attributes['operation'])).to.have.members(['add', 'poll'])
      const unitOf = (metric: string) =>
        metrics.find(({ descriptor }) => descriptor.name === `redelayed.${metric}`)?.descriptor.unit
      expect(unitOf('queue_oldest_seconds')).to.equal('s')
      expect(unitOf('queue_messages')).to.equal('1')
      stop()
      await queue.add('x')
      exporter.reset()
      await reader.forceFlush()
      const added = exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
        .find(({ descriptor }) => descriptor.name === 'redelayed.messages')
      expect(added?.dataPoints.find(({ attributes }) => attributes['event'] === 'added')?.value).to.equal(3)
    })
  })

  describe('a logger', () => {
    it('gets events with a level, and never a payload', async () => {
      const { client, queue, name } = make()
      const lines: { level: string; fields: Record<string, unknown>; message: string }[] = []
      const at = (level: string) => (fields: object, message: string) =>
        void lines.push({ level, fields: fields as Record<string, unknown>, message })
      const logger: EventLogger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
      const stop = logEvents(client, logger)
      await work(client, queue)
      const handled = lines.filter(({ fields }) => fields['event'] === 'settled')
      expect(handled.map(({ level, fields }) => `${level} ${String(fields['outcome'])}`)).to.include.members([
        'debug completed',
        'warn failed',
        'warn rejected',
      ])
      expect(handled.find(({ fields }) => fields['outcome'] === 'failed')?.fields['err']).to.be.instanceOf(Error)
      expect(lines.every(({ fields }) => fields['queue'] === name)).to.equal(true)
      expect(JSON.stringify(lines)).not.to.include('"good"')
      stop()
      const before = lines.length
      await queue.add('x')
      expect(lines).to.have.length(before)
    })
  })
})
