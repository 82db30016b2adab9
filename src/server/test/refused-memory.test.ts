import { expect } from 'chai'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { redisUrl } from '../../../test/support/redis.js'
import { makeKey } from '../api/api-keys.js'
import { eventually } from './support/eventually.js'
import { freePort } from './support/nginx.js'

const LIMIT = 10
/** The connections of all steps in CI: 100,000. */
const STEPS = 10
const WARM = 3
const EACH = process.env['CI'] ? 10_000 : 2_000
const AT_ONCE = 500
const MB = 1_048_576
const mb = (bytes: number): string => (bytes / MB).toFixed(1)
const program = fileURLToPath(new URL('../cli/main.ts', import.meta.url))
const probe = new URL('support/memory-probe.ts', import.meta.url).href

interface Memory {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
}

describe('the memory of a service that refuses connections', function () {
  this.timeout(300_000)
  let dir: string
  let port: number
  let child: ChildProcess
  const held: Socket[] = []
  afterEach(async () => {
    const closed = held.map((socket) => once(socket, 'close'))
    for (const socket of held.splice(0)) socket.destroy()
    await Promise.all(closed)
  })

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-refused-'))
    port = await freePort()
    writeFileSync(join(dir, 'api-keys'), `${makeKey().line}\n`)
    const flags = ['--api-keys', join(dir, 'api-keys'), '--data-dir', dir, '--log-level', 'error', '--no-ui']
    const limits = ['--max-connections', String(LIMIT), '--port', String(port), '--redis', redisUrl()]
    const nodeFlags = ['--expose-gc', '--import=tsx', `--import=${probe}`]
    child = spawn(process.execPath, [...nodeFlags, program, ...flags, ...limits], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    await eventually(async () => {
      expect((await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } })).status).to.equal(
        200,
      )
    }, 120_000)
  })
  after(async () => {
    const ended = once(child, 'close')
    if (child.exitCode === null && child.kill('SIGTERM')) await ended
    rmSync(dir, { recursive: true, force: true })
  })

  const open = (at: number): Socket =>
    createConnection({ host: '127.0.0.1', port, localAddress: `127.0.0.${2 + (at % 8)}` })
  const measure = async (): Promise<Memory> => {
    const answer = once(child, 'message')
    child.send('memory')
    const [memory] = (await answer) as [Memory]
    return memory
  }
  const refused = (at: number): Promise<boolean> =>
    new Promise((resolve) => {
      let answer = ''
      open(at)
        .on('data', (bytes: Buffer) => (answer += bytes.toString('latin1')))
        .once('error', () => undefined)
        .once('close', () => resolve(answer.startsWith('HTTP/1.1 503 ')))
    })
  /** A request on each of the open connections: the service closes those without one for 75 s. */
  const keep = async (): Promise<void> => {
    const answers = held.map((socket) => once(socket, 'data'))
    for (const socket of held) socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n')
    await Promise.all(answers)
  }
  const refuse = async (count: number): Promise<void> => {
    for (let from = 0; from < count; from += AT_ONCE) {
      const all = await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => refused(at)))
      await keep()
      expect(all.filter((isRefused) => isRefused)).to.have.length(AT_ONCE)
    }
  }

  it('is a plateau: what each further thousand leaves behind is nothing', async () => {
    for (let at = 0; at < LIMIT; at++) held.push(open(at))
    await keep()
    const seen: Memory[] = []
    for (let step = 0; step < STEPS; step++) {
      await refuse(EACH)
      seen.push(await measure())
    }
    const figures = seen
      .map((of) => `${mb(of.rss)} MB resident, ${mb(of.heapUsed)} heap, ${mb(of.external)} external`)
      .join('\n')
    // the first steps compile code and fill caches
    const [settled, last] = [seen[WARM], seen.at(-1)]
    if (settled === undefined || last === undefined) throw new Error('there are too few steps')
    const left = (STEPS - 1 - WARM) * EACH
    // a kept socket has some 2,000 bytes
    expect((last.heapUsed - settled.heapUsed) / left, figures).to.be.below(100)
    expect((last.external - settled.external) / left, figures).to.be.below(100)
    expect(last.rss - settled.rss, figures).to.be.below(24 * MB)
  })
})
