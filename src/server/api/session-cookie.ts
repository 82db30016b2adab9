import type { FastifyReply, FastifyRequest } from 'fastify'
import { SESSION_MS } from '../console/sessions.js'
import { BadRequest } from './problem.js'

const NAME = 'redelayed-session'
const PATTERN = new RegExp(`(?:^|;\\s*)${NAME}=([A-Za-z0-9_-]{43})(?:;|$)`)
/** The page sends this header with requests that change something; a form of another site cannot. */
const PAGE_HEADER = 'x-redelayed-page'
const SAFE = ['GET', 'HEAD']

/** The session that a browser sends, if any. */
export function sessionOf({ headers }: FastifyRequest): string | undefined {
  return PATTERN.exec(headers.cookie ?? '')?.[1]
}

/** Sets the session cookie; `undefined` deletes it. */
export function setSession(request: FastifyRequest, reply: FastifyReply, token: string | undefined): void {
  // behind a proxy with TLS; a client that forges this header only keeps its own cookie from plain HTTP
  const isSecure = request.protocol === 'https' || request.headers['x-forwarded-proto'] === 'https'
  const parts = [
    `${NAME}=${token ?? ''}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${token === undefined ? 0 : SESSION_MS / 1_000}`,
    ...(isSecure ? ['Secure'] : []),
  ]
  void reply.header('Set-Cookie', parts.join('; '))
}

/**
 * Refuses requests that another site made the browser send: the cookie would come along. Another site must not sign a reader in with its
 * own key either.
 *
 * @throws BadRequest
 */
export function assertSameSite({ method, headers }: FastifyRequest, { isSigningIn = false } = {}): void {
  const isSafe = SAFE.includes(method)
  const { origin, host = '' } = headers
  const site = headers['sec-fetch-site']
  const isOwn = site === undefined || site === 'same-origin' || (site === 'none' && isSafe)
  if (!isOwn || (origin !== undefined && hostOf(origin) !== host.toLowerCase()))
    throw new BadRequest('forbidden', 'a session is only for requests of its own page')
  if (!isSafe && !isSigningIn && headers[PAGE_HEADER] !== '1')
    throw new BadRequest(
      'forbidden',
      'with a session, a request that changes something needs the header X-Redelayed-Page: 1',
    )
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}
