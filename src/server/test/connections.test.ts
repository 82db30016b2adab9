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
  const refused = (): Promise<string> =>
    new Promise((resolve) => {
      const socket = open().resume()
      socket.once('close', (hadError) => resolve(hadError ? 'reset' : 'closed'))
      socket.once('error', () => undefined)
    })

  it('are closed at once, those before are answered, and there is room when one of them ends', async () => {
    for (let at = 0; at < LIMIT; at++) {
      const socket = open()
      held.push(socket)
      expect(await ask(socket)).to.equal('200')
    }
    const outcomes: string[] = []
    for (let from = 0; from < BEYOND; from += 100)
      outcomes.push(...(await Promise.all(Array.from({ length: 100 }, refused))))
    expect(outcomes).to.have.length(BEYOND)
    for (const socket of held) expect(await ask(socket)).to.equal('200')
    held.pop()?.destroy()
    await eventually(async () => {
      const socket = open()
      held.push(socket)
      expect(await ask(socket)).to.equal('200')
    })
  })
})
