import { expect } from 'chai'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { eventually } from './support/eventually.js'
import { startTestService, type Answer, type TestService } from './support/service.js'

const MILLION = 1_000_000
const COUNT = 20
const ids = Array.from({ length: COUNT }, (_, n) => `m${n}`.padStart(4, '0'))

describe('an answer of large messages', function () {
  this.timeout(60_000)
  let server: TestService
  before(async () => (server = await startTestService()))
  after(() => server.stop())

  async function filled(settings: object): Promise<string> {
    const topic = server.topic()
    await server.ask('PUT', `/v1/topics/${topic}`, settings)
    for (const id of ids) {
      const { status } = await server.ask('POST', `/v1/topics/${topic}/messages`, { id, body: 'x'.repeat(MILLION) })
      expect(status).to.equal(201)
    }
    return topic
  }

  /** The number of messages of each page, and all ids. */
  async function pagesOf(path: string): Promise<{ sizes: number[]; ids: string[] }> {
    const [sizes, found]: [number[], string[]] = [[], []]
    for (let cursor = ''; ;) {
      const { body } = await server.ask('GET', `${path}?limit=1000${cursor}`)
      sizes.push(body.messages.length)
      found.push(...body.messages.map(({ id }) => id))
      if (body.cursor === undefined) return { sizes, ids: found.sort() }
      cursor = `&cursor=${body.cursor}`
    }
  }

  for (const shards of [1, 3]) {
    it(`ends at some megabytes, and the next one continues, where a topic has ${shards} shards`, async () => {
      const topic = await filled({ shards })
      const listed = await pagesOf(`/v1/topics/${topic}/messages`)
      expect(listed.sizes).to.deep.equal([9, 9, 2])
      expect(listed.ids).to.deep.equal(ids)

      const leases: string[] = []
      const received: number[] = []
      while (leases.length < COUNT) {
        const { body } = await server.ask('POST', `/v1/topics/${topic}/receive`, { max: 500 })
        received.push(body.messages.length)
        leases.push(...body.messages.map(({ lease }) => lease))
      }
      // about 16 MiB
      expect(received).to.deep.equal([16, 4])

      await server.ask('POST', '/v1/leases/negative-acknowledge', { leases, reject: true })
      const dead = await pagesOf(`/v1/topics/${topic}/dead-letters`)
      expect(dead.sizes).to.deep.equal([9, 9, 2])
      expect(dead.ids).to.deep.equal(ids)
    })
  }
})

describe('the bodies of all requests under way', function () {
  this.timeout(60_000)
  const MOST = 200_000
  let server: TestService
  let topic: string
  const sockets = new Set<Socket>()
  beforeEach(async () => {
    server = await startTestService({ maxBodiesBytes: MOST })
    topic = server.topic()
    await server.ask('PUT', `/v1/topics/${topic}`, {})
  })
  afterEach(async () => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
    try {
      await eventually(async () => expect(await counted()).to.equal(0))
    } finally {
      await server.stop()
    }
  })

  async function counted(by = server): Promise<number> {
    const { body } = await by.ask('GET', '/metrics')
    return Number(/^redelayed_request_body_bytes (\d+)$/m.exec(body as unknown as string)?.[1])
  }
  const push = (body: string): Promise<Answer> => server.ask('POST', `/v1/topics/${topic}/messages`, { body })

  async function open(url = server.url): Promise<{ socket: Socket; text: () => string }> {
    const { hostname, port } = new URL(url)
    // it closes its side only if a test says so
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    sockets.add(socket)
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return { socket, text: () => text }
  }

  const head = (...lines: string[]): string => headFor(server, lines)
  const headFor = ({ key }: TestService, lines: readonly string[]): string =>
    [
      `POST /v1/topics/${topic}/messages HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${key}`,
      'Content-Type: application/json',
      ...lines,
      '',
      '',
    ].join('\r\n')
  const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`

  /** Requests that have begun to send `bytes` together. */
  async function underWay(bytes: number): Promise<Socket> {
    const { socket } = await open()
    socket.write(head(`Content-Length: ${bytes + 1}`) + ' '.repeat(bytes))
    await eventually(async () => expect(await counted()).to.equal(bytes))
    return socket
  }

  it('have room for what arrives, however much others announce and do not send', async () => {
    const length = 'Content-Length: 150000'
    const unsent = [
      head(length, 'Expect: 100-continue'),
      ['DELETE /ui/session HTTP/1.1', 'Host: x', 'Content-Type: application/json', length, '', ''].join('\r\n'),
    ]
    for (const each of [...unsent, ...unsent]) {
      const { socket, text } = await open()
      socket.write(each)
      // the request without a key has an answer: its route does not read a body
      await eventually(() =>
        expect(text()).to.match(each.startsWith('DELETE') ? /^HTTP\/1\.1 413 / : /^HTTP\/1\.1 100 /),
      )
    }
    expect(await counted()).to.equal(0)
    expect((await push('x'.repeat(100_000))).status).to.equal(201)
  })

  it('have a bound: one more is refused before it is read, and taken when there is room again', async () => {
    const other = await underWay(150_000)
    const { text, socket } = await open()
    socket.write(head('Content-Length: 60000')) // and no byte of the body
    await eventually(() => expect(text()).to.match(/^HTTP\/1\.1 503 /))
    expect(text())
      .to.include('too-many-bodies')
      .and.match(/retry-after: 1\r\n/i)
    expect((await push('x'.repeat(40_000))).status, 'one that fits').to.equal(201)
    other.destroy()
    await eventually(async () => expect((await push('x'.repeat(60_000))).status).to.equal(201))
  })

  it('are counted while they are read if they come in chunks', async () => {
    await underWay(150_000)
    const { text, socket } = await open()
    socket.write(head('Transfer-Encoding: chunked') + chunk(30_000))
    await eventually(async () => expect(await counted()).to.equal(180_000))
    socket.write(chunk(30_000))
    await eventually(() => expect(text()).to.match(/^HTTP\/1\.1 503 /))
    expect(text()).to.include('too-many-bodies')
  })

  it('are given back however a request ends', async () => {
    const long = 'x'.repeat(50_000)
    expect((await push(long)).status).to.equal(201)
    expect(
      (await server.ask('POST', `/v1/topics/${topic}/messages`, undefined, { raw: `{"a":"${long}` })).status,
    ).to.equal(400)
    expect(
      (
        await server.ask('POST', `/v1/topics/${topic}/messages`, undefined, {
          raw: long,
          headers: { 'content-type': 'text/plain' },
        })
      ).status,
    ).to.equal(415)
    expect((await server.ask('POST', '/v1/nothing', { body: long })).status).to.equal(404)

    const hungUp = await underWay(100_000)
    hungUp.destroy()
    await eventually(async () => expect(await counted()).to.equal(0))

    const inChunks = await open()
    inChunks.socket.write(head('Transfer-Encoding: chunked') + chunk(50_000))
    await eventually(async () => expect(await counted()).to.equal(50_000))
    inChunks.socket.destroy()
    await eventually(async () => expect(await counted()).to.equal(0))

    // a request that waits, and whose client hangs up
    const waiting = await open()
    const body = JSON.stringify({ wait: 60_000, max: 1 }).padEnd(10_000)
    const empty = server.topic()
    waiting.socket.write(head(`Content-Length: ${body.length}`).replace(`${topic}/messages`, `${empty}/receive`) + body)
    await eventually(async () => expect(await counted()).to.equal(10_000))
    waiting.socket.destroy()
    await eventually(async () => expect(await counted()).to.equal(0))

    // several requests on one connection, whose client hangs up before the first answer
    const pipelined = await open()
    const receive = head(`Content-Length: ${body.length}`).replace(`${topic}/messages`, `${empty}/receive`) + body
    pipelined.socket.write(receive + receive + receive)
    await eventually(async () => expect(await counted()).to.equal(30_000))
    pipelined.socket.destroy()
  })

  it('do not block the next request of a connection when no handler reads them', async () => {
    const { socket, text } = await open()
    socket.write(head('Transfer-Encoding: chunked').replace('application/json', 'text/plain') + chunk(100_000))
    await eventually(() => expect(text()).to.match(/^HTTP\/1\.1 415 /))
    socket.write(`${chunk(100_000)}0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n`)
    await eventually(() => expect(text()).to.match(/HTTP\/1\.1 200 /), 10_000)
  })

  it('are given back when a client neither sends the rest nor closes its connection', async () => {
    const strict = await startTestService({ maxBodiesBytes: MOST, requestTimeout: 1_000 })
    try {
      const { socket, text } = await open(strict.url)
      socket.write(`${headFor(strict, ['Content-Length: 50000'])}{`)
      await eventually(() => expect(text()).to.match(/^HTTP\/1\.1 408 /))
      await eventually(async () => expect(await counted(strict)).to.equal(0))
    } finally {
      await strict.stop()
    }
  })
})

describe('the answers under way', function () {
  this.timeout(60_000)
  let server: TestService
  let topic: string
  const sockets = new Set<Socket>()
  before(async () => {
    server = await startTestService({ maxAnswersBytes: 16 * 1_048_576 })
    topic = server.topic()
    for (const id of ids)
      await server.ask('POST', `/v1/topics/${topic}/messages`, { id, delay: 3_600_000, body: 'x'.repeat(MILLION) })
  })
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  })
  after(() => server.stop())

  const counted = async (): Promise<number> => {
    const metrics = await server.ask('GET', '/metrics')
    return Number(/^redelayed_answer_bytes (\d+)$/m.exec(metrics.body as unknown as string)?.[1])
  }
  /** A client that requests pages and does not read them. */
  async function asks(pages: number): Promise<Socket> {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname).pause()
    sockets.add(socket)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    const lines = [
      `GET /v1/topics/${topic}/messages HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${server.key}`,
      '',
      '',
    ]
    socket.write(lines.join('\r\n').repeat(pages))
    return socket
  }

  it('have a bound: one more page or receive is refused before anything is read, and served when others were read', async () => {
    const other = server.topic()
    await server.ask('POST', `/v1/topics/${other}/messages`, { id: 'small', body: 1 })
    // a page has about 8 MiB: only one that is sent has room
    const greedy = await asks(2)
    await eventually(async () => expect(await counted()).to.be.above(8 * MILLION))
    await eventually(async () => {
      const page = await server.ask('GET', `/v1/topics/${topic}/messages`)
      expect([page.status, page.body.code]).to.deep.equal([503, 'too-many-answers'])
      expect(page.headers.get('retry-after')).to.equal('1')
    })
    const path = `/v1/topics/${topic}/messages/${ids[0]}`
    const others = [
      server.ask('GET', path),
      server.ask('PATCH', path, { priority: 9 }),
      server.ask('GET', '/v1/deliveries'),
    ]
    for (const { status, body } of await Promise.all(others))
      expect([status, body.code]).to.deep.equal([503, 'too-many-answers'])
    const received = await server.ask('POST', `/v1/topics/${other}/receive`, {})
    expect([received.status, received.body.code]).to.deep.equal([503, 'too-many-answers'])
    expect((await server.ask('GET', `/v1/topics/${other}`)).body.counts).to.include({ visible: 1, inFlight: 0 })
    expect((await server.ask('POST', `/v1/topics/${other}/messages`, { body: 1 })).status, 'a push').to.equal(201)
    greedy.destroy()
    await eventually(async () => expect(await counted()).to.equal(0))
    expect((await server.ask('GET', `/v1/topics/${topic}/messages`)).status).to.equal(200)
    await eventually(async () => expect(await counted()).to.equal(0))
    const { status, body } = await server.ask('GET', path)
    expect([status, (body as unknown as { priority: number }).priority], 'nothing was changed').to.deep.equal([200, 0])
    await eventually(async () => expect(await counted()).to.equal(0))
    expect((await server.ask('POST', `/v1/topics/${other}/receive`, {})).body.messages).to.have.length(1)
  })
})
