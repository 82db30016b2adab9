import type * as Otel from '@opentelemetry/api'
import { cleanError } from '../clean-error.js'
import { toError } from '../errors.js'
import type { Instrumentation, RedelayedClient } from '../index.js'
import { printable } from '../text.js'
import { BUCKETS, COUNTERS, GAUGES, HISTOGRAMS, observe, readGauges, type MeasuredQueue } from './measures.js'
import { optional } from '../optional.js'

export type { MeasuredQueue } from './measures.js'

export interface OpenTelemetryOptions {
  /** The tracer. Default: that of the global provider. */
  readonly tracer?: Otel.Tracer | undefined
  /** The meter. Default: that of the global provider. */
  readonly meter?: Otel.Meter | undefined
}

export interface MeasureOptions {
  /** The queues whose depth and oldest message are read with each collection. Default: none. */
  readonly queues?: readonly MeasuredQueue[] | undefined
  /** The tasks that get an attribute of their own; all others have an empty one. Default: none. */
  readonly tasks?: readonly string[] | undefined
}

export interface OpenTelemetry {
  /** The option of `createClient({ instrumentation })`, which continues a trace from the call that adds a message to the handler. */
  readonly instrumentation: Instrumentation
  /**
   * Measures a client until the returned function is called.
   *
   * @throws nothing
   * @example
   * ```ts
   * import { openTelemetry } from 'redelayed/opentelemetry'
   *
   * const stop = openTelemetry().measure(client, { queues: [delayed, mails] })
   * await client.shutdown()
   * stop()
   * ```
   */
  readonly measure: (client: RedelayedClient, options?: MeasureOptions) => () => void
}

/**
 * Traces and metrics for OpenTelemetry; needs the package `@opentelemetry/api`, and an SDK that the application has set up.
 *
 * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: `@opentelemetry/api` is not installed
 * @example
 * ```ts
 * import { createClient } from 'redelayed'
 * import { openTelemetry } from 'redelayed/opentelemetry'
 *
 * const telemetry = openTelemetry()
 * const client = createClient({ instrumentation: telemetry.instrumentation })
 * telemetry.measure(client)
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): OpenTelemetry {
  const api = optional('@opentelemetry/api', 'OpenTelemetry') as typeof Otel
  const tracer = options.tracer ?? api.trace.getTracer('redelayed')
  const meter = options.meter ?? api.metrics.getMeter('redelayed')
  return { instrumentation: tracing(api, tracer), measure: (client, given = {}) => measure(meter, client, given) }
}

const MAX_SHOWN = 200

/** Passes the context in the message's headers, with the application's propagator. */
function tracing(api: typeof Otel, tracer: Otel.Tracer): Instrumentation {
  const { SpanKind, SpanStatusCode, context, propagation, trace } = api
  const attributesOf = (queue: string): Otel.Attributes => ({
    'messaging.system': 'redelayed',
    'messaging.destination.name': printable(queue, MAX_SHOWN),
  })
  return {
    onAdd(queue, headers) {
      const kind = SpanKind.PRODUCER
      const attributes = { ...attributesOf(queue), 'messaging.operation.type': 'create' }
      const span = tracer.startSpan(`create ${printable(queue, MAX_SHOWN)}`, { kind, attributes })
      const carrier = { ...headers }
      propagation.inject(trace.setSpan(context.active(), span), carrier)
      span.end()
      return carrier
    },
    async onHandle({ queue, id, headers, attempt }, handle) {
      const attributes = {
        ...attributesOf(queue),
        'messaging.operation.type': 'process',
        'messaging.message.id': printable(id, MAX_SHOWN),
        'redelayed.attempt': attempt,
      }
      const parent = propagation.extract(context.active(), headers)
      return tracer.startActiveSpan(
        `process ${printable(queue, MAX_SHOWN)}`,
        { kind: SpanKind.CONSUMER, attributes },
        parent,
        async (span) => {
          try {
            return await handle()
          } catch (thrown) {
            const error = cleanError(toError(thrown))
            span.recordException(error)
            span.setStatus({ code: SpanStatusCode.ERROR, message: error.message })
            throw thrown
          } finally {
            span.end()
          }
        },
      )
    },
  }
}

function measure(meter: Otel.Meter, client: RedelayedClient, { queues = [], tasks = [] }: MeasureOptions): () => void {
  const nameOf = (key: string): string => `redelayed.${key}`
  const counters = new Map(
    Object.entries(COUNTERS).map(([key, description]) => [key, meter.createCounter(nameOf(key), { description })]),
  )
  const histograms = new Map(
    Object.entries(HISTOGRAMS).map(([key, description]) => {
      const explicitBucketBoundaries = [...BUCKETS[key as keyof typeof BUCKETS]]
      const advice = { explicitBucketBoundaries }
      return [key, meter.createHistogram(nameOf(key), { description, unit: unitOf(key), advice })]
    }),
  )
  const gauges = new Map(
    Object.entries(GAUGES).map(([key, description]) => [
      key,
      meter.createObservableGauge(nameOf(key), { description, unit: unitOf(key) }),
    ]),
  )
  const collect = async (result: Otel.BatchObservableResult): Promise<void> => {
    for (const { name, labels, value } of await readGauges(queues)) {
      const gauge = gauges.get(name)
      if (gauge !== undefined) result.observe(gauge, value, labels)
    }
  }
  meter.addBatchObservableCallback(collect, [...gauges.values()])
  const end = observe(client, tasks, {
    count: (name, labels, value) => counters.get(name)?.add(value, labels),
    record: (name, labels, value) => histograms.get(name)?.record(value, labels),
  })
  return () => {
    end()
    meter.removeBatchObservableCallback(collect, [...gauges.values()])
  }
}

function unitOf(key: string): string {
  return key.endsWith('_seconds') ? 's' : '1'
}
