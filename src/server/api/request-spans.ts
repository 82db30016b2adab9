import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Span, Tracing } from '../topics/tracing.js'

/** Makes a span for each request that needs a key; its pushes continue the trace of that span. */
export function spanRequests(app: Pick<FastifyInstance, 'addHook'>, tracing: Tracing): void {
  const spans = new WeakMap<FastifyRequest, Span>()
  app.addHook('onRequest', (request, _, done) => {
    const { config, url = '' } = request.routeOptions
    if (config.scope === undefined || !tracing.isOn) {
      done()
      return
    }
    const { method } = request
    const span = tracing.start('SERVER', `${method} ${url}`, request.headers, {
      'http.request.method': method,
      'http.route': url,
      'redelayed.request.id': request.id,
    })
    spans.set(request, span)
    delete request.raw.headers['tracestate']
    Object.assign(request.raw.headers, span.trace)
    done()
  })
  app.addHook('onResponse', (request, { statusCode }, done) => {
    const error = statusCode >= 500 ? `${statusCode}` : undefined
    spans.get(request)?.end({ 'http.response.status_code': statusCode }, error)
    done()
  })
}
