import type * as Otel from '@opentelemetry/api'
import { traceOf } from './trace.js'

type Headers = Readonly<Record<string, unknown>>

/** A span of the service in a trace. */
export interface Span {
  /** The headers with which later spans continue the trace. */
  readonly trace: Record<string, string>
  /** `error`: why it failed. */
  end(attributes?: Otel.Attributes, error?: string): void
}

/** The spans of the service, for an OpenTelemetry SDK that the process has set up. The headers are always those of W3C Trace Context. */
export class Tracing {
  readonly #api: typeof Otel
  readonly #tracer: Otel.Tracer
  #isOn = false

  private constructor(api: typeof Otel) {
    this.#api = api
    this.#tracer = api.trace.getTracer('redelayed-server')
  }

  /** `undefined` if the package `@opentelemetry/api` is not installed: then the service makes no spans. */
  static async load(): Promise<Tracing | undefined> {
    try {
      return new Tracing(await import('@opentelemetry/api'))
    } catch {
      return undefined
    }
  }

  /** Whether an SDK is set up, which can happen after the start: without one no spans are made. */
  get isOn(): boolean {
    if (this.#isOn) return true
    const { isSpanContextValid, ROOT_CONTEXT } = this.#api
    // only an SDK gives a span an id; this span never ends, so it is not exported
    this.#isOn = isSpanContextValid(this.#tracer.startSpan('?', {}, ROOT_CONTEXT).spanContext())
    return this.#isOn
  }

  /** Starts a span; `parent`: headers with a trace, or without one to begin a trace. */
  start(
    kind: 'SERVER' | 'PRODUCER' | 'CLIENT',
    name: string,
    parent: Headers = {},
    attributes: Otel.Attributes = {},
  ): Span {
    const { SpanKind, SpanStatusCode } = this.#api
    const span = this.#tracer.startSpan(name, { kind: SpanKind[kind], attributes }, this.#contextOf(parent))
    return {
      trace: this.#traceOf(span, parent),
      end: (more = {}, error) => {
        span.setAttributes(more)
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
        span.end()
      },
    }
  }

  #contextOf(parent: Headers): Otel.Context {
    const { createTraceState, ROOT_CONTEXT, trace } = this.#api
    const { traceparent, tracestate } = traceOf(parent)
    if (traceparent === undefined) return ROOT_CONTEXT
    const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
    return trace.setSpanContext(ROOT_CONTEXT, {
      ...{ traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true },
      ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
    })
  }

  /** Without an SDK the trace stays as it is. */
  #traceOf(span: Otel.Span, parent: Headers): Record<string, string> {
    const own = span.spanContext()
    if (!this.#api.isSpanContextValid(own)) return traceOf(parent)
    const { traceId, spanId, traceFlags, traceState } = own
    const tracestate = traceState?.serialize() ?? ''
    const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
    return { traceparent, ...(tracestate !== '' && { tracestate }) }
  }
}
