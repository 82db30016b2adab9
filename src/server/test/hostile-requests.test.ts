import { expect } from 'chai'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { startTestService, type Answer, type TestService } from './support/service.js'

describe('the HTTP API, hostile requests', function () {
  this.timeout(30_000)
  let server: TestService
  let topic: string
  before(async () => {
    server = await startTestService({ maxMessageBytes: 10_000, maxBatchBytes: 100_000, requestTimeout: 2_000 })
    topic = server.topic()
    await server.ask('PUT', `/v1/topics/${topic}`, {})
  })
  after(() => server.stop())
  afterEach(async () => {
    // no refused message was added
    const { body } = await server.ask('GET', `/v1/topics/${topic}`)
    expect(body.counts).to.include({ total: 0 })
  })

  const send = (raw: string | Uint8Array, headers: Record<string, string> = {}): Promise<Answer> =>
    server.ask('POST', `/v1/topics/${topic}/messages`, undefined, { raw, headers })

  function expectProblem(answer: Answer, status: number, code: string): void {
    expect([answer.status, answer.body.code], JSON.stringify(answer.body)).to.deep.equal([status, code])
    expect(answer.headers.get('content-type')).to.match(/^application\/problem\+json/)
  }

  const bodies: readonly [what: string, raw: string | Uint8Array, code: string][] = [
    ['no JSON', '{"body":', 'malformed-json'],
    ['text after the end', '{} {}', 'malformed-json'],
    ['nothing but an opening quote', '"', 'malformed-json'],
    ['closing brackets alone', ']]]]', 'malformed-json'],
    ['a byte order mark', '\ufeff{}', 'malformed-json'],
    ['NaN', '{"body":NaN}', 'malformed-json'],
    ['a control character in a text', '{"body":"\u0001"}', 'malformed-json'],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'invalid-utf8'],
    ['UTF-16', Buffer.from('\ufeff{"body":1}', 'utf16le'), 'invalid-utf8'],
    ['the key __proto__', '{"body":{"__proto__":{"isAdmin":true}}}', 'forbidden-key'],
    ['the key __proto__ behind escapes', '{"body":{"__pr\\u006fto__":1}}', 'forbidden-key'],
    ['the key __proto__ among headers', '{"headers":{"__proto__":"x"}}', 'forbidden-key'],
    ['a repeated key', '{"id":"a","id":"b"}', 'repeated-key'],
    ['a repeated key deep inside', '{"body":[{"a":{"b":1,"c":{},"b":2}}]}', 'repeated-key'],
    ['a repeated key behind escapes', '{"body":{"a":1,"\\u0061":2}}', 'repeated-key'],
    ['arrays without end', '['.repeat(5_000), 'json-too-deep'],
    ['nesting that is closed', `{"body":${'['.repeat(101)}${']'.repeat(101)}}`, 'json-too-deep'],
    ['objects in objects', '{"a":'.repeat(2_000), 'json-too-deep'],
    ['an integer that a double cannot hold', '{"body":12345678901234567890}', 'unsafe-number'],
    ['its opposite', '{"body":-9007199254740992}', 'unsafe-number'],
    ['a number beyond all doubles', '{"body":1e999}', 'unsafe-number'],
    ['a number of a thousand digits', `{"body":${'9'.repeat(1_000)}}`, 'unsafe-number'],
    ['a number that would become zero', '{"body":1e-999}', 'unsafe-number'],
    ['an unknown setting', '{"delya":1}', 'invalid-request'],
    ['an array for a message', '[]', 'invalid-request'],
    ['null', 'null', 'invalid-request'],
    ['nothing', '', 'invalid-request'],
    ['a delay as text', '{"delay":"5s"}', 'invalid-request'],
    ['a delay of half a millisecond', '{"delay":0.5}', 'invalid-request'],
    ['a negative delay', '{"delay":-1}', 'invalid-request'],
    ['a delay without end', '{"delay":9007199254740991}', 'invalid-request'],
    ['a header that is no text', '{"headers":{"a":1}}', 'invalid-request'],
    ['an id of nothing', '{"id":""}', 'invalid-request'],
    ['an id with half a character', '{"id":"\\ud800"}', 'invalid-message'],
    ['an id of too many bytes', `{"id":"${'ü'.repeat(500)}"}`, 'invalid-message'],
    ['a delay and a time', '{"delay":1,"dueAt":1}', 'invalid-message'],
    ['a time that is none', '{"dueAt":"2030-13-45T99:00:00Z"}', 'invalid-request'],
    ['a body twice', '{"body":1,"bodyBase64":"AA=="}', 'invalid-message'],
    ['bytes that are no base64', '{"bodyBase64":"AA"}', 'invalid-message'],
    ['a header of the service', '{"headers":{"Redelayed-Body":"bytes"}}', 'invalid-message'],
  ]
  for (const [what, raw, code] of bodies) {
    it(`refuses ${what}`, async () => {
      expectProblem(await send(raw), 400, code)
    })
  }

  it('accepts requests that only look hostile', async () => {
    const raw =
      '{"id":"ok","body":{"a":{"b":1},"c":{"b":1},"n":[9007199254740991,-0.5e-3,1E+30,0,0.0],"s":"[[{{\\"__proto__\\":"}}'
    expect((await send(raw)).status).to.equal(201)
    const { body } = await server.ask('GET', `/v1/topics/${topic}/messages/ok`)
    expect(body.body).to.deep.equal((JSON.parse(raw) as { body: unknown }).body)
    await server.ask('POST', `/v1/topics/${topic}/purge`)
  })

  it('refuses types and encodings that it does not read', async () => {
    for (const type of [
      'text/plain',
      'application/xml',
      'application/jsonx',
      'nonsense',
      'application/json; charset=latin1',
    ])
      expectProblem(await send('{}', { 'content-type': type }), 415, 'unsupported-media-type')
    const bomb = gzipSync(Buffer.alloc(5_000_000, ' '))
    expectProblem(await send(bomb, { 'content-encoding': 'gzip' }), 415, 'unsupported-media-type')
  })

  it('refuses messages above the limit, whatever they are written as', async () => {
    expectProblem(await send(JSON.stringify({ body: 'x'.repeat(10_000) })), 413, 'message-too-large')
    expectProblem(
      await send(JSON.stringify({ bodyBase64: Buffer.alloc(10_001).toString('base64') })),
      413,
      'message-too-large',
    )
    const headers = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`h${n}`, 'x'.repeat(8_000)]))
    expectProblem(await send(JSON.stringify({ headers })), 400, 'invalid-message')
  })

  it('refuses wrong leases', async () => {
    for (const lease of ['x', `${topic}.1.`, `${topic}.1.!`, `${topic}.x.AAAA`, `${topic}.1.AAAA`])
      expectProblem(await server.ask('POST', '/v1/leases/acknowledge', { leases: [lease] }), 400, 'invalid-lease')
    expectProblem(await server.ask('POST', '/v1/leases/acknowledge', { leases: [] }), 400, 'invalid-request')
  })

  /** Sends a request on a bare socket; resolves with all bytes until the other side closed. */
  async function bare(start: (socket: Socket) => void): Promise<{ text: string; sent: number }> {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.on('error', () => undefined)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.once('connect', () => start(socket))
    await closed
    return { text, sent: socket.bytesWritten }
  }

  const head = (path: string, ...lines: string[]): string =>
    [
      `POST ${path} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${server.key}`,
      'Content-Type: application/json',
      ...lines,
      '',
      '',
    ].join('\r\n')

  it('cuts a body above the limit early, whether it says its length or not', async () => {
    const path = `/v1/topics/${topic}/messages`
    const known = await bare((socket) => socket.write(head(path, 'Content-Length: 1000000000')))
    expect(known.text)
      .to.match(/^HTTP\/1\.1 413 /)
      .and.include('body-too-large')
    const chunked = await bare((socket) => {
      socket.write(head(path, 'Transfer-Encoding: chunked'))
      const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`
      const more = (): void => {
        while (!socket.destroyed && socket.writable && socket.write(chunk));
        socket.once('drain', more)
      }
      more()
    })
    expect(chunked.text)
      .to.match(/^HTTP\/1\.1 413 /)
      .and.include('body-too-large')
    // beyond the limit only bytes that were already in buffers of the system
    expect(chunked.sent).to.be.below(64 * 1_048_576)
  })

  it('are answered so that a client can read it that sends everything before it looks for an answer', async () => {
    const body = Buffer.alloc(6_000_000, ' ')
    const { hostname, port } = new URL(server.url)
    for (let round = 0; round < 10; round++) {
      const socket = connect(Number(port), hostname).pause()
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.write(head(`/v1/topics/${topic}/messages`, `Content-Length: ${body.length}`))
      const failure = await new Promise((resolve) => socket.write(body, resolve))
      expect(failure, `what came of sending in round ${round}`).to.equal(null)
      let text = ''
      socket.on('data', (bytes: Buffer) => (text += bytes.toString())).resume()
      await once(socket, 'end')
      socket.destroy()
      expect(text).to.match(/^HTTP\/1\.1 413 /)
    }
  })

  it('asks for the key before it reads a body', async () => {
    const lines = [
      'POST /v1/topics/x/messages HTTP/1.1',
      'Host: x',
      'Content-Type: application/json',
      'Content-Length: 1000',
      '',
      '',
    ]
    const { text } = await bare((socket) => {
      socket.write(lines.join('\r\n'))
      socket.once('data', () => socket.end())
    })
    expect(text).to.match(/^HTTP\/1\.1 401 /)
  })

  it('refuses an expectation that it does not know, and nothing that only waits for 100', async () => {
    const path = `/v1/topics/${topic}/messages`
    const sent = (expected: string) =>
      bare((socket) => socket.write(`${head(path, 'Content-Length: 1', 'Connection: close', `Expect: ${expected}`)}[`))
    expect((await sent('something-else')).text)
      .to.match(/^HTTP\/1\.1 417 /)
      .and.include('application/problem+json')
      .and.include('"code":"expectation-failed"')
    expect((await sent('100-continue')).text)
      .to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /)
      .and.include('malformed-json')
  })

  it('answers invalid HTTP, headers that are too large, and clients that send slowly', async () => {
    const nonsense = await bare((socket) => socket.write('nonsense\r\n\r\n'))
    expect(nonsense.text)
      .to.match(/^HTTP\/1\.1 400 /)
      .and.include('application/problem+json')
    const large = await bare((socket) => socket.write(head('/livez', `X-Large: ${'x'.repeat(20_000)}`)))
    expect(large.text)
      .to.match(/^HTTP\/1\.1 431 /)
      .and.include('headers-too-large')
    const slow = await bare((socket) => socket.write('POST /v1/topics HTTP/1.1\r\nHost: x\r\n'))
    expect(slow.text)
      .to.match(/^HTTP\/1\.1 408 /)
      .and.include('request-timeout')
  })
})
