import { expect } from 'chai'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeCertificate } from '../../../test/support/certificate.js'
import { EgressPolicy } from '../delivery/egress-policy.js'
import { Sender } from '../delivery/sender.js'
import { eventually } from './support/eventually.js'
import { listen as listenOn } from './support/listen.js'
import { startTestService } from './support/service.js'

describe('webhooks through a proxy', function () {
  this.timeout(60_000)
  const ends: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  const listen = (server: Server | TcpServer): Promise<number> => listenOn(server, ends)

  interface Asked {
    readonly authority: string
    readonly authorization: string | undefined
  }

  /** A proxy that resolves every name to this machine; it may answer with something other than a tunnel. */
  async function startProxy(answer = 'HTTP/1.1 200 Connection established\r\n\r\n') {
    const asked: Asked[] = []
    const sockets = new Set<Socket>()
    const server = createServer()
    server.on('connect', ({ url = '', headers }: { url?: string; headers: IncomingHttpHeaders }, socket: Socket) => {
      asked.push({ authority: url, authorization: headers['proxy-authorization'] })
      sockets.add(socket.on('error', () => undefined))
      if (!answer.startsWith('HTTP/1.1 200')) return void socket.end(answer)
      const there = connect(Number(url.split(':').at(-1)), '127.0.0.1', () => {
        socket.write(answer)
        socket.pipe(there).pipe(socket)
      })
      sockets.add(there.on('error', () => socket.destroy()))
    })
    const port = await listen(server)
    ends.push(() => sockets.forEach((socket) => socket.destroy()))
    return { asked, port }
  }

  function senderBy(proxy: string, ca?: string): Sender {
    const how = { proxy: new URL(proxy), connectTimeoutMs: 20_000, ...(ca !== undefined && { ca }) }
    const sender = new Sender(new EgressPolicy({ ports: [80] }), how)
    ends.push(() => sender.close())
    return sender
  }

  const receiver = (): Server =>
    createServer((request, response) => {
      let body = ''
      request.on('data', (bytes: Buffer) => (body += bytes.toString()))
      request.on('end', () => response.end(`${request.headers.host} ${request.url} ${body}`))
    })

  it('reach names that only the proxy knows, over connections that are used again, with its user and password', async () => {
    const [port, proxy] = [await listen(receiver()), await startProxy()]
    const sender = senderBy(`http://ada:p%40ss@127.0.0.1:${proxy.port}`)
    for (let n = 0; n < 10; n++) {
      const answer = await sender.post(new URL(`http://hooks.example:${port}/a?b=1`), {}, Buffer.from(`n${n}`))
      expect(answer).to.include({ is: 'answer', status: 200 })
      expect((answer as { body: Buffer }).body.toString()).to.equal(`hooks.example:${port} /a?b=1 n${n}`)
    }
    const authorization = `Basic ${Buffer.from('ada:p@ss').toString('base64')}`
    expect(proxy.asked[0]).to.deep.equal({ authority: `hooks.example:${port}`, authorization })
    // the next request can come a moment before the first connection is free
    expect(proxy.asked.length).to.be.within(1, 2)
  })

  it('hold the certificate of the endpoint against its name, through the tunnel', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'webhook-proxy-'))
    ends.push(() => rmSync(dir, { recursive: true }))
    writeCertificate(dir, 'receiver')
    const read = (suffix: string) => readFileSync(join(dir, `receiver.${suffix}`), 'utf8')
    const server = createTlsServer({ key: read('key'), cert: read('pem') }, (_, response) => response.end('safe'))
    const [port, proxy] = [await listen(server), await startProxy()]
    const address = `http://127.0.0.1:${proxy.port}`
    // the certificate is for 127.0.0.1 and not for a name
    const named = await senderBy(address, read('pem')).post(new URL(`https://a.example:${port}/`), {}, Buffer.from('x'))
    expect(named).to.include({ reason: 'ERR_TLS_CERT_ALTNAME_INVALID' })
    const how = { proxy: new URL(address), ca: read('pem') }
    const inside = new Sender(new EgressPolicy({ allowNetworks: ['127.0.0.0/8'] }), how)
    ends.push(() => inside.close())
    expect(await inside.post(new URL(`https://127.0.0.1:${port}/`), {}, Buffer.from('x'))).to.include({ status: 200 })
    expect(proxy.asked.map(({ authority }) => authority)).to.deep.equal([`a.example:${port}`, `127.0.0.1:${port}`])
  })

  it('go to no address that is not public, and to no localhost: the proxy is not even asked', async () => {
    const [port, proxy] = [await listen(receiver()), await startProxy()]
    const sender = senderBy(`http://127.0.0.1:${proxy.port}`)
    for (const host of ['127.0.0.1', '[::1]', '10.0.0.1', '2130706433', '0x7f.1', 'localhost', 'a.localhost.']) {
      const answer = await sender.post(new URL(`http://${host}:${port}/`), {}, Buffer.from('x'))
      expect(answer, host)
        .to.have.property('reason')
        .that.matches(/is not public/)
    }
    expect(proxy.asked).to.deep.equal([])
  })

  it('fail with the answer of a proxy that opens no tunnel, hangs up, or does not speak HTTP', async () => {
    for (const [answer, reason] of [
      ['HTTP/1.1 403 Forbidden\r\n\r\n', 'the proxy answered 403'],
      ['HTTP/1.1 407 Proxy Authentication Required\r\nA: b\r\n\r\n', 'the proxy answered 407'],
      ['', 'the proxy has closed the connection'],
      ['x'.repeat(40_000), 'the proxy answered no HTTP'],
    ] as const) {
      const { port } = await startProxy(answer)
      const sender = senderBy(`http://127.0.0.1:${port}`)
      const got = await sender.post(new URL('http://hooks.example/'), {}, Buffer.from('x'))
      expect(got, reason).to.include({ is: 'none', reason })
    }
    const silent = createTcpServer((socket) => void ends.push(() => void socket.destroy()))
    const port = await listen(silent)
    const how = { proxy: new URL(`http://127.0.0.1:${port}`), connectTimeoutMs: 200 }
    const sender = new Sender(new EgressPolicy(), how)
    ends.push(() => sender.close())
    const got = await sender.post(new URL('http://hooks.example/'), {}, Buffer.from('x'))
    expect(got).to.include({ reason: 'the proxy opened no tunnel within 200 ms' })
  })

  it('go through the proxy of --webhook-proxy', async () => {
    const [port, proxy] = [await listen(receiver()), await startProxy()]
    const given = { webhookProxy: `http://127.0.0.1:${proxy.port}`, webhookPorts: [port] }
    const service = await startTestService(given)
    let endpoint = ''
    try {
      const made = await service.ask('POST', '/v1/endpoints', { url: `http://hooks.example:${port}/` })
      expect(made.status, JSON.stringify(made.body)).to.equal(201)
      endpoint = made.body.id
      const topic = service.topic()
      await service.ask('PUT', `/v1/topics/${topic}`, { endpoint })
      await service.ask('POST', `/v1/topics/${topic}/messages`, { body: 1 })
      await eventually(async () => {
        expect((await service.ask('GET', `/v1/topics/${topic}`)).body.counts.total).to.equal(0)
      }, 30_000)
      expect(proxy.asked[0]).to.deep.equal({ authority: `hooks.example:${port}`, authorization: undefined })
    } finally {
      await service.ask('DELETE', `/v1/endpoints/${endpoint}?force`)
      await service.stop()
    }
  })
})
