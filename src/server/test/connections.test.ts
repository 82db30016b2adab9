import { expect } from 'chai'
import { createConnection, type Socket } from 'node:net'
import { eventually } from './support/eventually.js'
import { startTestService, type TestService } from './support/service.js'

const LIMIT = 50
const BEYOND = 2_000

describe('connections beyond --max-connections', function () {
  this.timeout(120_000)
  let server: TestService
  const held: Socket[] = []
  beforeEach(async () => {
    server = await startTestService({ maxConnections: LIMIT })
  })
  afterEach(async () => {
    for (const socket of held.splice(0)) socket.destroy()
    await server.stop()
  })

  const open = (): Socket => {
    const { hostname, port } = new URL(server.url)
    return createConnection({ host: hostname, port: Number(port) })
  }
  /** The status of an answer. */
  const ask = (socket: Socket): Promise<string> =>
    new Promise((resolve, reject) => {
      socket.once('data', (bytes: Buffer) => resolve(bytes.toString('latin1', 9, 12)))
      socket.once('error', reject)
      socket.once('close', () => reject(new Error('closed')))
      socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n')
    })
  /** What a client beyond the limit gets, until its connection is closed. */
  const refused = (request = ''): Promise<{ answer: string; hadError: boolean }> =>
    new Promise((resolve) => {
      const socket = open()
      let answer = ''
      socket.on('data', (bytes: Buffer) => (answer += bytes.toString()))
      socket.once('close', (hadError) => resolve({ answer, hadError }))
      socket.once('error', () => undefined)
      if (request !== '') socket.write(request)
    })
  const fill = async (): Promise<void> => {
    for (let at = 0; at < LIMIT; at++) {
      const socket = open()
      held.push(socket)
      expect(await ask(socket)).to.equal('200')
    }
  }
  const REQUEST = 'POST /v1/topics/orders/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\n\r\n{"body":"xyz"}'

  it('get a problem and are closed, those before are answered, and there is room when one of them ends', async () => {
    await fill()
    for (let from = 0; from < BEYOND; from += 100) {
      const some = Array.from({ length: 100 }, (_, at) => refused(at % 2 === 0 ? REQUEST : ''))
      for (const { answer, hadError } of await Promise.all(some)) {
        const [head = '', body = ''] = answer.split('\r\n\r\n')
        expect(head.split('\r\n')).to.include.members([
          'HTTP/1.1 503 The service has too many connections',
          'Content-Type: application/problem+json',
          `Content-Length: ${Buffer.byteLength(body)}`,
          'Connection: close',
          'Retry-After: 1',
        ])
        expect(JSON.parse(body)).to.include({ status: 503, code: 'too-many-connections' })
        expect(hadError).to.equal(false)
      }
    }
    for (const socket of held) expect(await ask(socket)).to.equal('200')
    held.pop()?.destroy()
    await eventually(async () => {
      const socket = open()
      held.push(socket)
      expect(await ask(socket)).to.equal('200')
    })
    held.pop()?.destroy()
    await eventually(async () => {
      const { body } = await server.ask('GET', '/metrics')
      expect(body).to.match(new RegExp(`^redelayed_connections_refused_total ([2-9]\\d{3})$`, 'm'))
    })
  })

  it('are closed also if their client keeps its side open, or sends more and more', async () => {
    await fill()
    const { hostname, port } = new URL(server.url)
    const quiet = createConnection({ host: hostname, port: Number(port), allowHalfOpen: true }).resume()
    const busy = createConnection({ host: hostname, port: Number(port), allowHalfOpen: true }).resume()
    const closed = [quiet, busy].map((socket) => {
      socket.once('error', () => undefined)
      return new Promise((resolve) => socket.once('close', resolve))
    })
    await new Promise((resolve) => quiet.once('end', resolve))
    const some = Buffer.alloc(65_536)
    // only a write shows a client that the other side is gone
    const writing = [setInterval(() => quiet.write('a'), 500), setInterval(() => busy.write(some), 5)]
    await Promise.all(closed)
    for (const timer of writing) clearInterval(timer)
    expect([quiet.destroyed, busy.destroyed], 'both were closed').to.deep.equal([true, true])
    expect(quiet.bytesRead, 'the problem has arrived').to.be.greaterThan(0)
    for (const socket of held) expect(await ask(socket), 'those before are still answered').to.equal('200')
    expect((await server.ask('GET', '/metrics')).status, 'there is no room for another one').to.equal(503)
  })
})
