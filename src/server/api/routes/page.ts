import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { PageFile, PageFiles } from '../../console/page-files.js'
import type { Sessions } from '../../console/sessions.js'
import { isBlind, type ApiKey, type ApiKeys } from '../api-keys.js'
import { keyOfSession } from '../authorize.js'
import type { App } from '../context.js'
import { BadRequest, redisProblem } from '../problem.js'
import type { RateLimit } from '../rate-limit.js'
import * as schemas from '../schemas.js'
import { assertSameSite, sessionOf, setSession } from '../session-cookie.js'

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

interface Parts {
  /** `undefined`: the page was not built. */
  readonly files: PageFiles | undefined
  readonly sessions: Sessions
  readonly keys: ApiKeys
  readonly rates: RateLimit
  /** The facts about the service that the page gets. */
  readonly about: { readonly journal: boolean; readonly readOnly: boolean; readonly version: string }
}

/** The page for operators: its files and its sessions. */
export function pageRoutes(app: App, { files, sessions, keys, rates, about }: Parts): void {
  const hidden = { schema: { hide: true } }
  const document = async (request: FastifyRequest, reply: FastifyReply) => {
    void reply.header('Content-Security-Policy', POLICY)
    void reply.header('Referrer-Policy', 'no-referrer')
    void reply.header('Cross-Origin-Opener-Policy', 'same-origin')
    return send(request, reply, files?.document, 'no-cache')
  }
  app.get('/ui', hidden, document)
  // the paths of the page itself
  app.get('/ui/*', hidden, document)
  app.get('/ui/assets/:name', hidden, async (request, reply) => {
    const { name } = request.params as { name: string }
    return send(request, reply, files?.assets.get(name), 'public, max-age=31536000, immutable')
  })

  const tags = ['page']
  app.post(
    '/ui/session',
    {
      bodyLimit: 4_096,
      schema: {
        tags,
        operationId: 'signIn',
        summary: 'Begin a session of the page with a key; for 12 hours its cookie replaces the key',
        security: [],
        body: schemas.SignInInput,
        response: { 200: schemas.SessionOutput },
      },
    },
    async (request, reply) => {
      assertSameSite(request, { isSigningIn: true })
      const key = keys.find(request.body.key)
      if (key === undefined) throw new BadRequest('unauthorized', 'there is no such key')
      if (rates.take(key.id) > 0) throw new BadRequest('rate-limited', 'the key has sent too many requests')
      const token = await sessions.begin(key.id, (token) => keys.proofOf(key.id, token) ?? '').catch(redisProblem)
      setSession(request, reply, token)
      return { ...shown(key), ...about }
    },
  )

  app.get(
    '/ui/session',
    {
      schema: {
        tags,
        operationId: 'getSession',
        summary: 'The key of the session of the cookie, and what it may do',
        security: [{ session: [] }],
        response: { 200: schemas.SessionOutput },
      },
    },
    async (request) => {
      const key = await keyOfSession(request, keys, sessions)
      if (key === undefined) throw new BadRequest('unauthorized', 'there is no session')
      return { ...shown(key), ...about }
    },
  )

  app.delete(
    '/ui/session',
    {
      bodyLimit: 1, // this route reads no body and needs no key
      schema: {
        tags,
        operationId: 'signOut',
        summary: 'End the session of the cookie, if there is one',
        security: [],
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const token = sessionOf(request)
      if (token !== undefined) {
        assertSameSite(request)
        await sessions.end(token).catch(redisProblem)
      }
      setSession(request, reply, undefined)
      return reply.code(204).send(null)
    },
  )
}

function shown(key: ApiKey) {
  const { id, scopes, topics } = key
  return {
    key: id,
    scopes: [...scopes],
    topics: topics.includes('*') ? null : [...topics],
    hidePayloads: isBlind(key),
  }
}

function send(request: FastifyRequest, reply: FastifyReply, file: PageFile | undefined, caching: string): FastifyReply {
  if (file === undefined)
    throw new BadRequest('not-found', 'the page has no such file; in a checkout, "npm run build:server" builds it')
  const accepted = request.headers['accept-encoding'] ?? ''
  const form = (['br', 'gzip'] as const).find((each) => file[each] && accepts(accepted, each))
  const etag = `"${file.etag}${form === undefined ? '' : `-${form}`}"`
  void reply.headers({ 'Cache-Control': caching, ETag: etag, Vary: 'Accept-Encoding' })
  if (form !== undefined) void reply.header('Content-Encoding', form)
  if ((request.headers['if-none-match'] ?? '').includes(etag)) return reply.code(304).send()
  return reply.type(file.type).send((form && file[form]) ?? file.plain)
}

function accepts(header: string, coding: string): boolean {
  return header.split(',').some((each) => {
    const [name = '', ...parameters] = each.split(';').map((part) => part.trim().toLowerCase())
    return name === coding && !parameters.some((part) => /^q=0(\.0*)?$/.test(part))
  })
}
