import { expect } from 'chai'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeCertificate } from '../../../test/support/certificate.js'
import { EgressPolicy } from '../delivery/egress-policy.js'
import { Sender, type SenderOptions } from '../delivery/sender.js'
import { verdictOn } from '../delivery/verdict.js'
import { listen as listenOn } from './support/listen.js'

const policy = new EgressPolicy({ allowNetworks: ['127.0.0.0/8'] })

describe('sending webhooks', () => {
  const ends: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  function senderWith(options: SenderOptions = {}): Sender {
    const sender = new Sender(policy, options)
    ends.push(() => sender.close())
    return sender
  }

  const listen = (server: Server | TcpServer): Promise<number> => listenOn(server, ends)

  async function urlOf(handle: RequestListener): Promise<URL> {
    return new URL(`http://127.0.0.1:${await listen(createServer(handle))}/hook?a=1`)
  }

  /** A receiver that says something on a plain socket as soon as it hears anything. */
  async function rawUrl(say: (socket: Socket) => void): Promise<URL> {
    const sockets = new Set<Socket>()
    const server = createTcpServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      socket.once('data', () => {
        say(socket)
      })
    })
    const port = await listen(server)
    ends.push(() => sockets.forEach((socket) => socket.destroy()))
    return new URL(`http://127.0.0.1:${port}/`)
  }

  it('waits for an answer as long as the endpoint says, though the usual limit is shorter', async () => {
    const url = await urlOf((_request, response) => void setTimeout(() => response.end('late'), 2_500))
    const answer = await senderWith({ timeoutMs: 100 }).post(url, {}, Buffer.from('x'), { timeoutMs: 60_000 })
    expect(answer).to.include({ is: 'answer', status: 200 })
  })

  it('ends requests in time that wait for a connection', async () => {
    let found: (addresses: string[]) => void = () => undefined
    const sender = senderWith({ lookup: () => new Promise((resolve) => (found = resolve)), connectTimeoutMs: 30_000 })
    const answer = await sender.post(new URL('http://example.com/'), {}, Buffer.from('x'), { timeoutMs: 100 })
    expect(answer).to.deep.include({ is: 'none', reason: 'no whole answer within 100 ms' })
    expect(answer.tookMs).to.be.below(20_000)
    found([])
  })

  it('posts the body as it is, with its headers, and gives the status and the body that came back', async () => {
    let seen: unknown
    const url = await urlOf((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const { method, headers } = request
        seen = { method, url: request.url, id: headers['webhook-id'], body: Buffer.concat(chunks) }
        response.writeHead(202, { 'retry-after': '7' }).end('thanks')
      })
    })
    const body = Buffer.from([0, 1, 255])
    const answer = await senderWith().post(url, { 'webhook-id': 'm1' }, body)
    expect(seen).to.deep.equal({ method: 'POST', url: '/hook?a=1', id: 'm1', body })
    expect(answer).to.deep.include({ is: 'answer', status: 202, retryAfter: '7', body: Buffer.from('thanks') })
  })

  it('uses connections again', async () => {
    const sockets = new Set<unknown>()
    const url = await urlOf((request, response) => {
      sockets.add(request.socket)
      response.end('x'.repeat(10_000))
    })
    const sender = senderWith()
    for (let i = 0; i < 10; i++) expect(await sender.post(url, {}, Buffer.from('x'))).to.include({ status: 200 })
    // the next request can come a moment before the first connection is free
    expect(sockets.size).to.be.within(1, 2)
  })

  it('keeps the first 4 KiB of an answer, and ends one that does not end', async () => {
    const url = await urlOf((_, response) => {
      const pour = (): void => {
        while (response.write(Buffer.alloc(16_384, 'x')));
        response.once('drain', pour)
      }
      pour()
    })
    const answer = await senderWith().post(url, {}, Buffer.from('x'))
    expect(answer).to.include({ is: 'answer', status: 200 })
    expect(answer).to.have.property('body').with.lengthOf(4_096)
  })

  it('has one limit for the whole answer, whichever part of it is late', async () => {
    const drip = (socket: Socket): void => {
      const timer = setInterval(() => socket.write('x'), 20)
      socket.once('close', () => {
        clearInterval(timer)
      })
    }
    const slow = {
      'nothing at all': () => {},
      'a status line without an end': (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nx: '),
      'headers that drip': (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\nx: ')
        drip(socket)
      },
      'a body that drips': (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n')
        drip(socket)
      },
    }
    for (const [what, say] of Object.entries(slow)) {
      const answer = await senderWith({ timeoutMs: 200 }).post(await rawUrl(say), {}, Buffer.from('x'))
      expect(answer.is, what).to.equal('none')
      expect(answer.tookMs, what).to.be.within(190, 10_000)
    }
  })

  it('says why there is no answer: refused, reset, invalid HTTP, endless headers', async () => {
    const port = await listen(createTcpServer())
    await ends.pop()?.()
    const reasons = [
      await senderWith().post(new URL(`http://127.0.0.1:${port}/`), {}, Buffer.from('x')),
      await senderWith().post(await rawUrl((socket) => socket.resetAndDestroy()), {}, Buffer.from('x')),
      await senderWith().post(await rawUrl((socket) => socket.end('SSH-2.0-x\r\n')), {}, Buffer.from('x')),
      await senderWith().post(
        await rawUrl((socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`)),
        {},
        Buffer.from('x'),
      ),
    ].map((answer) => (answer.is === 'none' ? answer.reason : answer.is))
    expect(reasons[0]).to.equal('ECONNREFUSED')
    expect(reasons[1]).to.match(/ECONNRESET|UND_ERR_SOCKET/)
    expect(reasons[2]).to.match(/HTTP/)
    expect(reasons[3]).to.match(/HEADERS_OVERFLOW|HPE_HEADER_OVERFLOW/)
  })

  it('ends with its signal, and with the sender', async () => {
    const sender = senderWith()
    const url = await rawUrl(() => {})
    const abort = new AbortController()
    const aborted = sender.post(url, {}, Buffer.from('x'), { signal: abort.signal })
    abort.abort()
    expect((await aborted).is).to.equal('none')
    const waiting = sender.post(url, {}, Buffer.from('x'))
    await sender.close()
    expect((await waiting).is).to.equal('none')
  })

  it('holds a name against the certificate, although it connects to an address', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'webhook-tls-'))
    ends.push(() => {
      rmSync(dir, { recursive: true })
    })
    writeCertificate(dir, 'receiver')
    const read = (suffix: string) => readFileSync(join(dir, `receiver.${suffix}`), 'utf8')
    const server = createTlsServer({ key: read('key'), cert: read('pem') }, (_, response) => response.end('safe'))
    const port = await listen(server)
    const sender = senderWith({ ca: read('pem'), lookup: async () => ['127.0.0.1'] })
    // the certificate is for this address and not for a name
    expect(await sender.post(new URL(`https://127.0.0.1:${port}/`), {}, Buffer.from('x'))).to.include({ status: 200 })
    expect(await sender.post(new URL(`https://other.example:${port}/`), {}, Buffer.from('x'))).to.include({
      reason: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    const stranger = senderWith({ lookup: async () => ['127.0.0.1'] })
    expect(await stranger.post(new URL(`https://127.0.0.1:${port}/`), {}, Buffer.from('x'))).to.include({
      reason: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    })
  })
})

describe('the verdict on an answer', () => {
  const NOW = Date.parse('2026-11-22T12:00:00Z')
  const answered = (status: number, retryAfter?: string) =>
    verdictOn({ is: 'answer', status, retryAfter, body: Buffer.alloc(0), tookMs: 1 }, NOW)

  it('2xx: delivered; 410: gone; errors of the message alone: refused; anything else: failed, redirects too', () => {
    for (const status of [200, 201, 204, 299]) expect(answered(status)).to.deep.equal({ is: 'delivered' })
    expect(answered(410)).to.deep.equal({ is: 'gone' })
    for (const status of [400, 409, 413, 415, 422])
      expect(answered(status), String(status)).to.deep.equal({ is: 'refused' })
    for (const status of [101, 300, 302, 401, 402, 403, 404, 405, 408, 418, 500, 501, 505, 599])
      expect(answered(status), String(status)).to.deep.equal({ is: 'failed' })
    expect(verdictOn({ is: 'none', reason: 'ECONNREFUSED', tookMs: 1 }, NOW)).to.deep.equal({ is: 'failed' })
  })

  const pauses: [string | undefined, number][] = [
    [undefined, 5_000],
    ['0', 0],
    ['7', 7_000],
    ['Sun, 22 Nov 2026 12:00:30 GMT', 30_000],
    ['Sun, 22 Nov 2026 11:00:00 GMT', 0],
    ['999999999', 86_400_000],
    ['Sun, 22 Nov 2099 12:00:00 GMT', 86_400_000],
    ['soon', 5_000],
    ['-5', 5_000],
    ['', 5_000],
  ]
  for (const [retryAfter, waitMs] of pauses) {
    it(`429, 502, 503 and 504 with Retry-After ${retryAfter ?? 'absent'}: a pause of ${waitMs} ms`, () => {
      for (const status of [429, 502, 503, 504])
        expect(answered(status, retryAfter)).to.deep.equal({ is: 'throttled', waitMs })
    })
  }
})
