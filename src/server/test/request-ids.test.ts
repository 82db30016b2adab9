import { expect } from 'chai'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeKey } from '../api/api-keys.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'

const program = fileURLToPath(new URL('../cli/main.ts', import.meta.url))
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

interface Line {
  readonly level: number
  readonly msg?: string
  readonly reqId?: string
  readonly requestId?: string
  readonly method?: string
  readonly route?: string
  readonly status?: number
  readonly key?: string
  readonly err?: { readonly code?: string }
}

describe('the log of requests', function () {
  this.timeout(180_000)
  const { key, line: keyLine } = makeKey()
  const keyId = key.split('_')[1]
  let dir: string
  let redis: LosableRedis
  let service: ChildProcess
  let output = ''
  let url = ''

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-log-'))
    writeFileSync(join(dir, 'api-keys'), keyLine)
    redis = await LosableRedis.start()
    output = ''
    const flags = ['--port', '0', '--redis', redis.url, '--data-dir', dir, '--log-level', 'debug']
    service = spawn(process.execPath, ['--import=tsx', program, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
    service.stdout?.on('data', (bytes: Buffer) => (output += bytes.toString()))
    await eventually(async () => {
      url = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0] ?? ''
      expect(url).to.not.equal('')
    }, 120_000)
  })
  afterEach(async () => {
    const ended = new Promise((resolve) => service.once('close', resolve))
    service.kill('SIGKILL')
    await ended
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const lines = (): Line[] =>
    output
      .split('\n')
      .filter((text) => text.startsWith('{'))
      .map((text) => JSON.parse(text) as Line)
  /** Sends a request; resolves with its id and the lines that have it, at least one of them with this text. */
  const linesOf = async (text: string, method: string, path: string, body?: string): Promise<Line[]> => {
    const headers = {
      authorization: `Bearer ${key}`,
      connection: 'close',
      // the service draws its own id: a client could repeat that of another request
      'x-request-id': 'of-the-client',
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const answer = await fetch(`${url}${path}`, { method, headers, ...(body !== undefined && { body }) })
    const id = answer.headers.get('x-request-id') ?? ''
    expect(id).to.match(UUID)
    const shown = await answer.text()
    if (answer.status >= 400) expect(JSON.parse(shown)).to.include({ requestId: id, status: answer.status })
    let own: Line[] = []
    await eventually(async () => {
      own = lines().filter(({ reqId }) => reqId === id)
      expect(own.map(({ msg }) => msg)).to.include(text)
    }, 60_000)
    const last = own.find(({ msg }) => msg === text)
    if (last?.status !== undefined) expect(last.status).to.equal(answer.status)
    return own
  }

  it('has the id of a request, which its answer has, in each of its lines, and no other id', async () => {
    const topic = '/v1/topics/:topic'
    const answered: [string, string, string?][] = [
      ['POST', '/v1/topics/orders/messages', '{"body":1}'],
      ['GET', '/v1/topics/orders/messages/none'],
      ['POST', '/v1/topics/orders/messages', '{'],
      ['GET', '/nowhere'],
      ['GET', '/livez'],
    ]
    for (const [method, path, body] of answered) {
      const own = await linesOf('answered', method, path, body)
      expect(own, path).to.have.length(1)
      expect(own[0], path).to.include({ level: 20, method })
    }
    const put = await linesOf('answered', 'PUT', '/v1/topics/mails', '{}')
    expect(put.map(({ msg }) => msg)).to.have.members(['administration', 'answered'])
    for (const own of put) expect(own).to.include({ method: 'PUT', status: 201, key: keyId })
    const [administration] = put.filter(({ msg }) => msg === 'administration')
    expect(administration?.requestId).to.equal(administration?.reqId)

    await redis.kill()
    const failed = await linesOf('failed', 'GET', '/v1/topics/orders')
    expect(failed.map(({ msg, level }) => [msg, level])).to.deep.include(['failed', 40])
    expect(failed.filter(({ err }) => err !== undefined)).to.have.length(1)
    expect(failed.find(({ msg }) => msg === 'failed')).to.include({ route: topic, status: 503 })
    const ids = lines().flatMap(({ reqId, msg }) => (msg === 'answered' || msg === 'failed' ? [reqId] : []))
    expect(new Set(ids).size, 'one id for each request').to.equal(ids.length)
  })
})
