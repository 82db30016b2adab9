import type * as Otel from '@opentelemetry/api'
import { traceOf } from './trace.js'

type Headers = Readonly<Record<string, unknown>>

/** Something that the service does, as a part of a trace. */
export interface Span {
  /** The headers with which what comes after it goes on. */
  readonly trace: Record<string, string>
  /** `error`: why it failed. */
  end(attributes?: Otel.Attributes, error?: string): void
}

/** The spans of the service, for an SDK of OpenTelemetry that the process has set up. The headers are those of W3C Trace Context, whatever its propagator. */
export class Tracing {
  readonly #api: typeof Otel
  readonly #tracer: Otel.Tracer
  #isOn = false

  private constructor(api: typeof Otel) {
    this.#api = api
    this.#tracer = api.trace.getTracer('redelayed-server')
  }

  /** `undefined` where the package `@opentelemetry/api` is not installed: then nothing is done for traces. */
  static async load(): Promise<Tracing | undefined> {
    try {
      return new Tracing(await import('@opentelemetry/api'))
    } catch {
      return undefined
    }
  }

  /** Whether there is an SDK, which can come after the start: without one a span goes nowhere, and need not be made. */
  get isOn(): boolean {
    if (this.#isOn) return true
    const { isSpanContextValid, ROOT_CONTEXT } = this.#api
    // only an SDK gives a span an id; this one never ends, so nothing exports it
    this.#isOn = isSpanContextValid(this.#tracer.startSpan('?', {}, ROOT_CONTEXT).spanContext())
    return this.#isOn
  }

  /** Begins a span; `parent`: headers that can have a trace, else it begins one. */
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

  /** Without an SDK the trace stays what it is. */
  #traceOf(span: Otel.Span, parent: Headers): Record<string, string> {
    const own = span.spanContext()
    if (!this.#api.isSpanContextValid(own)) return traceOf(parent)
    const { traceId, spanId, traceFlags, traceState } = own
    const tracestate = traceState?.serialize() ?? ''
    const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
    return { traceparent, ...(tracestate !== '' && { tracestate }) }
  }
}
