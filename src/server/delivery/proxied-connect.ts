import { isIP, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { hostOf, type EgressPolicy } from './egress-policy.js'
import { EgressRefusedError } from './guarded-connect.js'

/** The most bytes of a proxy's answer before the tunnel begins. */
const MOST_ANSWER_BYTES = 16_384
const END = '\r\n\r\n'

/**
 * Opens the sockets of webhooks through an HTTP proxy, each by a tunnel (`CONNECT`), also for `http:`. The proxy resolves the names, and
 * has to refuse internal addresses by itself; literal addresses are refused here as without a proxy. With TLS the proxy sees nothing but
 * the name and the port. This is not undici's ProxyAgent, which knows no policy, has no bound on a proxy's answer, and does not say which
 * status refused the tunnel.
 */
export function proxiedConnect(
  proxy: URL,
  policy: EgressPolicy,
  { connectTimeoutMs, ca }: { readonly connectTimeoutMs: number; readonly ca?: string },
): buildConnector.connector {
  const connect = buildConnector({ timeout: connectTimeoutMs, ...(ca !== undefined && { ca }) })
  const host = hostOf(proxy)
  const toProxy = {
    ...{ hostname: host, host, protocol: proxy.protocol },
    port: proxy.port || (proxy.protocol === 'https:' ? '443' : '80'),
    ...(isIP(host) === 0 && { servername: host }),
  }
  return (options, callback) => {
    const target = options.hostname.replace(/^\[|\]$/g, '')
    const address = /(^|\.)localhost\.?$/i.test(target) ? '127.0.0.1' : target
    if (isIP(address) > 0 && !policy.allows(address)) {
      callback(new EgressRefusedError('the endpoint has an address that is not public'), null)
      return
    }
    const isSecure = options.protocol === 'https:'
    const authority = `${isIP(target) === 6 ? `[${target}]` : target}:${options.port || (isSecure ? '443' : '80')}`
    connect(toProxy, (...opened) => {
      const [error, socket] = opened
      if (error !== null) {
        callback(new Error(`the proxy: ${codeOf(error)}`), null)
        return
      }
      tunnel(socket, requestOf(authority, proxy), connectTimeoutMs).then(
        () => {
          if (!isSecure) {
            callback(null, socket)
            return
          }
          const servername = options.servername ?? (isIP(target) > 0 ? undefined : target)
          connect({ ...options, httpSocket: socket, ...(servername !== undefined && { servername }) }, callback)
        },
        (thrown: unknown) => {
          socket.destroy()
          callback(thrown as Error, null)
        },
      )
    })
  }
}

function requestOf(authority: string, { username, password }: URL): string {
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`]
  if (credentials !== ':') lines.push(`Proxy-Authorization: Basic ${Buffer.from(credentials).toString('base64')}`)
  return lines.join('\r\n') + END
}

/** Resolves when the proxy has opened the tunnel: further bytes come from the endpoint. */
function tunnel(socket: Socket, request: string, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const end = (error?: Error): void => {
      clearTimeout(timer)
      socket.off('readable', read).off('error', fail).off('close', closed)
      if (error === undefined) resolve()
      else reject(error)
    }
    const fail = (error: Error): void => end(new Error(`the proxy: ${codeOf(error)}`))
    const closed = (): void => end(new Error('the proxy has closed the connection'))
    const read = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
        answer += chunk.toString('latin1')
        const at = answer.indexOf(END)
        if (at >= 0) {
          const [, status = '?'] = /^HTTP\/1\.[01] (\d{3})(?: |\r)/.exec(answer) ?? []
          if (!status.startsWith('2')) return end(new Error(`the proxy answered ${status}`))
          const rest = Buffer.from(answer.slice(at + END.length), 'latin1')
          if (rest.length > 0) socket.unshift(rest)
          return end()
        }
        if (answer.length > MOST_ANSWER_BYTES) return end(new Error('the proxy answered no HTTP'))
      }
    }
    const timer = setTimeout(() => end(new Error(`the proxy opened no tunnel within ${ms} ms`)), ms)
    socket.on('readable', read).on('error', fail).on('close', closed)
    socket.write(request)
  })
}

function codeOf(error: Error & { code?: unknown }): string {
  return typeof error.code === 'string' ? error.code : error.message
}
