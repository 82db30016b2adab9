import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import type { Sessions } from '../console/sessions.js'
import { covers, isBlind, type ApiKey, type ApiKeys, type Scope } from './api-keys.js'
import { BadRequest, redisProblem } from './problem.js'
import type { RateLimit } from './rate-limit.js'
import { assertSameSite, sessionOf } from './session-cookie.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that the key needs; without it the route needs no key. */
    scope?: Scope
    /** A missing body counts as `{}`. */
    bodyIsOptional?: boolean
  }
  interface FastifyRequest {
    apiKey: ApiKey
  }
}

const NO_KEY: ApiKey = Object.freeze({ id: '', scopes: new Set<Scope>(), topics: [], hidePayloads: false })

/** Checks, before a body is read, the key or its session, its scope, the topic of the path, and its rate. */
export function authorize(keys: ApiKeys, sessions: Pick<Sessions, 'find'>, rates: RateLimit) {
  const admit = (request: FastifyRequest, reply: FastifyReply, scope: Scope, key: ApiKey | undefined): void => {
    if (key === undefined) {
      void reply.header('WWW-Authenticate', 'Bearer')
      throw new BadRequest('unauthorized', 'send the key as "Authorization: Bearer <key>"')
    }
    request.apiKey = key
    if (!key.scopes.has(scope)) throw new BadRequest('forbidden', `the key does not have the scope ${scope}`)
    const { topic } = (request.params ?? {}) as { topic?: string }
    if (topic !== undefined) assertCovers(key, topic)
    const seconds = rates.take(key.id)
    if (seconds > 0) {
      void reply.header('Retry-After', seconds)
      throw new BadRequest('rate-limited', 'the key has sent too many requests')
    }
  }
  // a request with a key is checked at once; only a session needs a promise
  return (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void => {
    request.apiKey = NO_KEY
    const { scope } = request.routeOptions.config
    const given = scope === undefined ? '' : givenKey(request)
    if (scope === undefined) done()
    else if (given !== '') {
      admit(request, reply, scope, keys.find(given))
      done()
    } else
      void keyOfSession(request, keys, sessions)
        .then((key) => admit(request, reply, scope, key))
        .then(() => done(), done)
  }
}

/** The key of a request or of its session, as the file has it now. @throws BadRequest as `keyOfSession` */
export async function keyOf(
  request: FastifyRequest,
  keys: ApiKeys,
  sessions: Pick<Sessions, 'find'>,
): Promise<ApiKey | undefined> {
  const given = givenKey(request)
  return given === '' ? keyOfSession(request, keys, sessions) : keys.find(given)
}

/** The key of the session of a request. @throws BadRequest another site has sent the request, or Redis does not answer */
export async function keyOfSession(
  request: FastifyRequest,
  keys: ApiKeys,
  sessions: Pick<Sessions, 'find'>,
): Promise<ApiKey | undefined> {
  const token = sessionOf(request)
  if (token === undefined) return undefined
  assertSameSite(request)
  const session = await sessions.find(token).catch(redisProblem)
  return session && keys.ofSession(session)
}

/** @throws BadRequest */
export function assertCovers(key: ApiKey, topic: string): void {
  if (covers(key, topic)) return
  throw new BadRequest('forbidden', `the key is not for ${topic === '*' ? 'all topics' : 'this topic'}`)
}

/** Refuses searches by business key to a key that may not see business keys: it could guess them. @throws BadRequest */
export function assertMayFind(key: ApiKey, bizKey: string | undefined): void {
  if (bizKey !== undefined && isBlind(key))
    throw new BadRequest('forbidden', 'a key that hides payloads cannot find messages by bizKey')
}

function givenKey({ headers }: FastifyRequest): string {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? []
  const other = headers['x-api-key']
  return bearer ?? (typeof other === 'string' ? other : '')
}
