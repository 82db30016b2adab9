import { expect } from 'chai'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import type { Scope } from '../api/api-keys.js'
import { eventually } from './support/eventually.js'
import { startTestService, type TestService } from './support/service.js'

interface Route {
  readonly method: string
  readonly path: string
  /** `none`: it needs no key. */
  readonly scope: string
}

const METHODS = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE']
const SCOPES: readonly Scope[] = ['push', 'consume', 'read', 'admin']

/** The routes of the tables of a page with a column for the scope. */
function routesIn(page: string): Route[] {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8')
  const rows = Array.from(text.matchAll(/^\| (`(?:GET|PUT|POST|PATCH|DELETE) \/[^|]+) \| `?(\w+)`? \|/gm))
  return rows.flatMap(([, cell = '', scope = '']) => {
    const routes: Route[] = []
    let [method, path] = ['', '']
    for (const [, part = ''] of cell.matchAll(/`([^`]+)`/g)) {
      const [first = '', second = ''] = part.split(' ')
      if (METHODS.includes(first)) {
        method = first
        path = second || path // a method alone is of the path before it
      } else if (!first.startsWith('/')) continue
      else path = path.startsWith('/v1/') && !first.startsWith('/v1/') ? path.replace(/\/[^/]+$/, first) : first
      routes.push({ method, path: path.replace(/\?.*$/, ''), scope })
    }
    return routes
  })
}

const ROUTES = [...routesIn('http-api.md'), ...routesIn('webhooks.md')].filter(
  ({ method, path }, at, all) => all.findIndex((each) => each.method === method && each.path === path) === at,
)

describe('the scopes of docs/http-api.md and docs/webhooks.md', function () {
  this.timeout(60_000)
  let server: TestService
  let keys: Record<Scope, string>
  let topic: string

  before(async () => {
    server = await startTestService({ legacyRoutes: true, maxWait: 1 })
    topic = server.topic()
    await server.ask('GET', '/v1/overview') // it counts in the background from then on
    keys = Object.fromEntries(SCOPES.map((scope) => [scope, server.addKey([scope])])) as typeof keys
    const overview: Route = { method: 'GET', path: '/v1/overview', scope: 'read' }
    await eventually(async () => {
      for (const key of Object.values(keys)) expect((await ask(overview, key)).status).not.to.equal(401)
    })
  })
  after(() => server.stop())

  /** Bodies are of no use to any operation, so that a key that may do something changes nothing. */
  const ask = async ({ method, path }: Route, key?: string): Promise<{ status: number; detail: string }> => {
    const sent = request(server.url + path.replace('{topic}', topic).replace('{id}', 'none'), {
      method,
      agent: false,
      headers: { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    })
    sent.end(['GET', 'DELETE'].includes(method) ? undefined : '[]')
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const { statusCode: status = 0, headers } = response
    if (/event-stream/.test(headers['content-type'] ?? '')) {
      sent.destroy() // it does not end
      return { status, detail: '' }
    }
    const text = Buffer.concat(await response.toArray()).toString()
    const { detail = '' } = status < 400 ? {} : (JSON.parse(text) as { detail?: string })
    return { status, detail }
  }

  it('are those of all paths of the description', async () => {
    const { paths } = (await server.ask('GET', '/openapi.json')).body
    const described = Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map(
        (method) => `${method.toUpperCase()} ${path.replace(/\{(endpoint|restore)\}/, '{id}')}`,
      ),
    )
    const named = ROUTES.map(({ method, path }) => `${method} ${path}`)
    expect(named).to.include.members(described)
  })

  for (const route of ROUTES) {
    const { method, path, scope } = route
    it(`${method} ${path}: ${scope}`, async () => {
      if (scope === 'none') {
        expect(await ask(route))
          .to.have.property('status')
          .not.oneOf([403, 404, 405])
        return
      }
      expect(scope).to.be.oneOf(SCOPES)
      expect(await ask(route)).to.have.property('status', 401)
      for (const each of SCOPES) {
        const { status, detail } = await ask(route, keys[each])
        if (each !== scope)
          expect([status, detail], each).to.deep.equal([403, `the key does not have the scope ${scope}`])
        else expect(detail, each).not.to.include('scope')
      }
    })
  }
})
