/** W3C Trace Context, https://www.w3.org/TR/trace-context: a version, a trace, a span and flags; neither trace nor span is all zeros. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{1,400})?$/
const TRACESTATE = /^[\x20-\x7e]{1,512}$/

type Headers = Readonly<Record<string, unknown>>

/** The trace of a request or message; empty if it has none, or an invalid one. */
export function traceOf(headers: Headers = {}): Record<string, string> {
  const { traceparent, tracestate } = headers
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return {}
  return { traceparent, ...(typeof tracestate === 'string' && TRACESTATE.test(tracestate) && { tracestate }) }
}

/** The message with the trace of the request that brings it. A message with its own `traceparent` keeps it. */
export function traced<M extends { readonly headers?: Readonly<Record<string, string>> | undefined }>(
  message: M,
  request: Headers,
): M {
  if (message.headers?.['traceparent'] !== undefined) return message
  const trace = traceOf(request)
  return trace['traceparent'] === undefined ? message : { ...message, headers: { ...message.headers, ...trace } }
}
