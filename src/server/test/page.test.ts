import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { makeKey } from '../api/api-keys.js'
import { eventually } from './support/eventually.js'
import { startTestService, type Answer, type TestService } from './support/service.js'

/** A request as it is: `fetch` sets some of the headers by itself, and asks for gzip. */
function raw(url: string, headers: Record<string, string> = {}, method = 'GET', body = '') {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

describe('the files of the page', function () {
  this.timeout(30_000)
  const folder = mkdtempSync(join(tmpdir(), 'redelayed-page-'))
  const script = 'console.log("a page")'.repeat(50)
  let server: TestService
  let without: TestService
  let unbuilt: TestService
  before(async () => {
    mkdirSync(join(folder, 'assets'))
    writeFileSync(join(folder, 'index.html'), '<!doctype html><title>page</title>')
    writeFileSync(join(folder, 'assets', 'main.abc123.js'), script)
    writeFileSync(join(folder, 'assets', 'main.abc123.js.br'), brotliCompressSync(script))
    writeFileSync(join(folder, 'assets', 'main.abc123.js.gz'), gzipSync(script))
    writeFileSync(join(folder, 'secret.txt'), 'not for browsers')
  })
  beforeEach(async () => {
    server = await startTestService({}, folder)
    without = await startTestService({ ui: false }, folder)
    unbuilt = await startTestService()
  })
  afterEach(() => Promise.all([server, without, unbuilt].map((each) => each.stop())))
  after(() => rmSync(folder, { recursive: true }))

  it('has one document for all its paths, with a strict policy, to be asked for again', async () => {
    for (const path of ['/ui', '/ui/', '/ui/topics/a%2Fb', '/ui/topics?x=1']) {
      const { status, headers, body } = await raw(server.url + path)
      expect(status, path).to.equal(200)
      expect(body.toString()).to.contain('<title>page')
      expect(headers).to.deep.include({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-cache',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
      })
      const policy = String(headers['content-security-policy'])
      expect(policy).to.contain("default-src 'none'").and.contain("frame-ancestors 'none'")
      expect(policy).to.not.contain('unsafe')
      const again = await raw(server.url + path, { 'if-none-match': String(headers['etag']) })
      expect([again.status, again.body.length]).to.deep.equal([304, 0])
    }
  })

  it('sends assets in the form that the browser takes, for good', async () => {
    const url = `${server.url}/ui/assets/main.abc123.js`
    const [plain, gzip, br, none] = await Promise.all([
      raw(url),
      raw(url, { 'accept-encoding': 'gzip, deflate' }),
      raw(url, { 'accept-encoding': 'gzip, deflate, br' }),
      raw(url, { 'accept-encoding': 'br;q=0, gzip;q=0' }),
    ])
    expect(plain.body.toString()).to.equal(script)
    expect(none.body.toString()).to.equal(script)
    expect(gzip.body.equals(gzipSync(script))).to.equal(true)
    expect(br.body.equals(brotliCompressSync(script))).to.equal(true)
    expect(br.headers).to.deep.include({
      'content-encoding': 'br',
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    })
    expect(new Set([plain, gzip, br].map(({ headers }) => headers['etag'])).size).to.equal(3)
  })

  it('has only its own files', async () => {
    for (const path of [
      '/ui/assets/other.js',
      '/ui/assets/..%2Fsecret.txt',
      '/ui/assets/%2e%2e%2fsecret.txt',
      '/ui/assets/main.abc123.js.br',
      '/ui/assets/__proto__',
    ]) {
      const { status, body } = await raw(server.url + path)
      expect(status, path).to.equal(404)
      expect(body.toString()).to.not.contain('not for browsers')
    }
    expect((await raw(`${server.url}/ui`, {}, 'POST')).status).to.equal(405)
  })

  it('does not exist with --no-ui, nor if it was not built', async () => {
    for (const path of ['/ui', '/ui/topics', '/ui/session'])
      expect((await raw(without.url + path)).status, path).to.equal(404)
    const { status, body } = await raw(`${unbuilt.url}/ui`)
    expect(status).to.equal(404)
    expect(body.toString()).to.contain('npm run build:server')
  })
})

describe('a session of the page', function () {
  this.timeout(30_000)
  let server: TestService
  let other: TestService
  beforeEach(async () => {
    server = await startTestService()
    other = await startTestService()
  })
  afterEach(() => Promise.all([server.stop(), other.stop()]))

  async function signIn(key: string, on = server): Promise<string> {
    const { status, headers } = await on.ask('POST', '/ui/session', { key }, { key: '-' })
    expect(status).to.equal(200)
    const [cookie = ''] = headers.getSetCookie()
    expect(cookie).to.match(/^redelayed-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    return cookie.split(';', 1)[0] ?? ''
  }

  /** The file of the keys is checked once a second. */
  const untilKnown = (key: string): Promise<void> =>
    eventually(async () => {
      expect((await server.ask('GET', '/v1/topics', undefined, { key })).status).to.equal(200)
    })

  /** Sends a request with the cookie and without a key. */
  async function as(cookie: string, path: string, headers: Record<string, string> = {}, method = 'GET', body = '') {
    const type: Record<string, string> = body === '' ? {} : { 'content-type': 'application/json' }
    const answer = await raw(server.url + path, { cookie, ...type, ...headers }, method, body)
    return { ...answer, json: (answer.body.length > 0 ? JSON.parse(answer.body.toString()) : {}) as Answer['body'] }
  }

  it('is begun with a key, works on every instance, and ends', async () => {
    const key = server.addKey(['read'], ['orders', 'mails-*'])
    await untilKnown(key)
    const cookie = await signIn(key)
    const { status, json } = await as(cookie, '/ui/session')
    expect(status).to.equal(200)
    const id = key.split('_')[1]
    expect(json).to.deep.equal({
      key: id,
      scopes: ['read'],
      topics: ['orders', 'mails-*'],
      hidePayloads: false,
      journal: false,
      readOnly: false,
      version: '0.0.0',
    })
    expect((await as(cookie, '/v1/topics')).status).to.equal(200)
    expect((await as(cookie, '/v1/topics/other')).status).to.equal(403)
    const end = await as(cookie, '/ui/session', { 'x-redelayed-page': '1' }, 'DELETE')
    expect(end.status).to.equal(204)
    expect(String(end.headers['set-cookie'])).to.contain('redelayed-session=;').and.contain('Max-Age=0')
    expect((await as(cookie, '/v1/topics')).status).to.equal(401)
    expect((await as(cookie, '/ui/session')).status).to.equal(401)
  })

  it('is begun with no other key', async () => {
    for (const key of ['x', makeKey().key, server.key.slice(0, -1), `${server.key} `]) {
      const { status, body, headers } = await server.ask('POST', '/ui/session', { key }, { key: '-' })
      expect([status, body.code], key).to.deep.equal([401, 'unauthorized'])
      expect(headers.getSetCookie()).to.deep.equal([])
    }
    for (const wrong of [{}, { key: 7 }, { key: '' }, { key: 'x'.repeat(201) }, { key: server.key, more: 1 }])
      expect((await server.ask('POST', '/ui/session', wrong)).status).to.equal(400)
    for (const cookie of ['redelayed-session=', `redelayed-session=${'a'.repeat(43)}`, 'redelayed-session=*', 'x=1; ;'])
      expect((await as(cookie, '/v1/topics')).status, cookie).to.equal(401)
  })

  it('is one of a hundred of its key at most: one more ends the oldest', async () => {
    const key = server.addKey(['read'])
    await untilKnown(key)
    const another = await signIn(server.key)
    const cookies: string[] = []
    for (let n = 0; n < 102; n++) {
      cookies.push(await signIn(key))
      // the order of two sessions of one millisecond is not defined
      for (const at = Date.now(); Date.now() === at;) await new Promise((resolve) => setImmediate(resolve))
    }
    const statusOf = async (cookie = ''): Promise<number> => (await as(cookie, '/ui/session')).status
    expect([await statusOf(cookies[0]), await statusOf(cookies[1])]).to.deep.equal([401, 401])
    expect([await statusOf(cookies[2]), await statusOf(cookies[101])]).to.deep.equal([200, 200])
    expect(await statusOf(another), 'of another key').to.equal(200)
    // an ended session leaves room
    await as(cookies[50] ?? '', '/ui/session', { 'x-redelayed-page': '1' }, 'DELETE')
    await signIn(key)
    expect(await statusOf(cookies[2])).to.equal(200)
  })

  it('is refused if another site can have sent the request', async () => {
    const cookie = await signIn(server.key)
    const host = new URL(server.url).host
    const own = { origin: server.url, 'sec-fetch-site': 'same-origin', 'x-redelayed-page': '1' }
    const topic = server.topic()
    const push = (headers: Record<string, string>) =>
      as(cookie, `/v1/topics/${topic}/messages`, headers, 'POST', '{"body":1}')
    expect((await push(own)).status).to.equal(201)
    const foreign: Record<string, string>[] = [
      { ...own, 'sec-fetch-site': 'cross-site' },
      { ...own, 'sec-fetch-site': 'same-site' },
      { ...own, 'sec-fetch-site': 'none' },
      { ...own, origin: 'https://evil.example' },
      { ...own, origin: 'null' },
      { ...own, origin: `http://${host}.evil.example` },
      { origin: server.url, 'sec-fetch-site': 'same-origin' },
      { ...own, 'x-redelayed-page': '0' },
    ]
    for (const headers of foreign) {
      const { status, json } = await push(headers)
      expect([status, json.code], JSON.stringify(headers)).to.deep.equal([403, 'forbidden'])
    }
    const get = (headers: Record<string, string>) => as(cookie, '/v1/topics', headers)
    expect((await get({ 'sec-fetch-site': 'none' })).status).to.equal(200)
    expect((await get({ 'sec-fetch-site': 'cross-site' })).status).to.equal(403)
    expect((await get({ origin: 'https://evil.example' })).status).to.equal(403)
    // a request with a key needs no session: scripts of other pages can send it like any client
    const { status } = await raw(`${server.url}/v1/topics`, {
      ...{ cookie, authorization: `Bearer ${server.key}`, 'sec-fetch-site': 'cross-site' },
    })
    expect(status).to.equal(200)
    const signingIn = await raw(
      `${server.url}/ui/session`,
      { 'content-type': 'application/json', 'sec-fetch-site': 'cross-site' },
      'POST',
      JSON.stringify({ key: server.key }),
    )
    expect(signingIn.status).to.equal(403)
  })

  it('ends with its key', async () => {
    const cookie = await signIn(server.key)
    // this service has other keys and the same Redis
    expect((await raw(`${other.url}/v1/topics`, { cookie })).status).to.equal(401)
    expect((await as(cookie, '/v1/topics')).status).to.equal(200)
  })

  it('has a cookie for TLS only behind a proxy with TLS', async () => {
    const how = { key: '-', headers: { 'x-forwarded-proto': 'https' } }
    const { headers } = await server.ask('POST', '/ui/session', { key: server.key }, how)
    expect(headers.getSetCookie()[0]).to.match(/; Secure$/)
  })
})

describe('the contents of messages', function () {
  this.timeout(30_000)
  let server: TestService
  beforeEach(async () => {
    server = await startTestService()
  })
  afterEach(() => server.stop())

  it('are hidden from keys that may neither receive nor administer, if their line in the keys file sets that', async () => {
    const topic = server.topic()
    const push = { id: 'a', delay: 60_000, body: { card: 4111 }, bizKey: 'order-7', headers: { token: 'secret' } }
    await server.ask('POST', `/v1/topics/${topic}/messages`, push)
    const blind = server.addKey(['read', 'push'], ['*'], true)
    const admin = server.addKey(['read', 'admin'], ['*'], true)
    const open = server.addKey(['read'])
    await eventually(async () => {
      expect((await server.ask('GET', '/v1/topics', undefined, { key: open })).status).to.equal(200)
    })
    const ask = async (key: string, path: string, body?: object) =>
      JSON.stringify((await server.ask(body ? 'PATCH' : 'GET', `/v1/topics/${topic}/${path}`, body, { key })).body)
    for (const answer of [
      await ask(blind, 'messages/a'),
      await ask(blind, 'messages'),
      await ask(blind, 'messages/a', { priority: 3 }),
    ]) {
      expect(answer).to.contain('"bodyHidden":true').and.contain('order-7').and.contain('"headers":{}')
      expect(answer).to.not.contain('4111').and.not.contain('secret')
    }
    for (const key of [admin, open])
      expect(await ask(key, 'messages/a'))
        .to.contain('4111')
        .and.contain('secret')
    const session = await server.ask('POST', '/ui/session', { key: blind })
    expect(session.body).to.deep.include({ hidePayloads: true })
  })

  it('are cut if the reader wants only the first part', async () => {
    const topic = server.topic()
    const text = 'ä'.repeat(1_000)
    const bytes = Buffer.from(text).toString('base64')
    await server.ask('POST', `/v1/topics/${topic}/messages`, { id: 'json', delay: 60_000, body: text })
    await server.ask('POST', `/v1/topics/${topic}/messages`, { id: 'bytes', delay: 60_000, bodyBase64: bytes })
    const get = async (id: string, maxBody: number) =>
      (await server.ask('GET', `/v1/topics/${topic}/messages/${id}?maxBody=${maxBody}`)).body as unknown as Record<
        string,
        unknown
      >
    const json = await get('json', 100)
    expect(json)
      .to.deep.include({ bodyCut: { bytes: 2_002 }, bodyText: `"${'ä'.repeat(49)}` })
      .and.not.have.property('body')
    const cut = await get('bytes', 100)
    expect(cut).to.deep.include({ bodyCut: { bytes: 2_000 } })
    expect(Buffer.from(String(cut['bodyBase64']), 'base64').toString()).to.equal('ä'.repeat(50))
    expect(await get('json', 2_002))
      .to.deep.include({ body: text })
      .and.not.have.property('bodyCut')
    const { body } = await server.ask('GET', `/v1/topics/${topic}/messages?maxBody=0`)
    expect(JSON.stringify(body)).to.not.contain('ä')
    for (const wrong of ['-1', 'x', '1e9', '1.5'])
      expect((await server.ask('GET', `/v1/topics/${topic}/messages?maxBody=${wrong}`)).status, wrong).to.equal(400)
  })
})
