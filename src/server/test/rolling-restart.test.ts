import { expect } from 'chai'
import { spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { redisUrl } from '../../../test/support/redis.js'
import { makeKey } from '../api/api-keys.js'
import { eventually } from './support/eventually.js'
import { freePort, hasNginx, Nginx } from './support/nginx.js'

const program = fileURLToPath(new URL('../cli/main.ts', import.meta.url))
/** Longer than the leases of messages that a killed instance had handed out and not sent. */
const VISIBILITY_MS = 3_000

/** One instance in a process of its own, on a fixed port. */
class Instance {
  readonly port: number
  readonly #args: readonly string[]
  #child: ChildProcess | undefined
  #output = ''

  constructor(port: number, args: readonly string[]) {
    this.port = port
    this.#args = args
  }

  async start(): Promise<void> {
    const args = ['--import=tsx', program, '--port', String(this.port), '--redis', redisUrl(), ...this.#args]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.on('data', (bytes: Buffer) => (this.#output += bytes.toString()))
    child.stderr.on('data', (bytes: Buffer) => (this.#output += bytes.toString()))
    this.#child = child
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`it ended: ${this.#output}`)
      const ready = await fetch(`http://127.0.0.1:${this.port}/readyz`, { headers: { connection: 'close' } })
      expect(ready.status).to.equal(200)
    }, 120_000)
  }

  /** Resolves with the exit code, when it has ended. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    child.kill(signal)
    return ended
  }
}

/** Sends pushes, long polls and acknowledgements through nginx, without retries, until it is stopped. */
class Load {
  readonly accepted = new Set<string>()
  /** The messages that a consumer got. */
  readonly received = new Set<string>()
  /** The requests that were not answered with a 2xx. */
  readonly failures: string[] = []
  readonly #url: string
  readonly #key: string
  readonly #topic: string
  readonly #running: Promise<void>[]
  #isPushing = true
  #isReceiving = true

  constructor(url: string, key: string, topic: string) {
    this.#url = url
    this.#key = key
    this.#topic = `/v1/topics/${topic}`
    this.#running = [
      ...Array.from({ length: 3 }, () => this.#push()),
      ...Array.from({ length: 4 }, () => this.#receive()),
    ]
  }

  /** Resolves when `count` more messages were accepted. */
  async more(count: number): Promise<void> {
    const until = this.accepted.size + count
    await eventually(() => expect(this.accepted.size).to.be.at.least(until), 60_000)
  }

  /** Stops pushing, and resolves when a consumer got everything. */
  async finish(): Promise<void> {
    this.#isPushing = false
    try {
      await eventually(() => {
        const lost = [...this.accepted].filter((id) => !this.received.has(id))
        expect(lost, 'accepted and not received').to.deep.equal([])
      }, 60_000)
    } finally {
      this.#isReceiving = false
      await Promise.all(this.#running)
    }
  }

  async #push(): Promise<void> {
    while (this.#isPushing) {
      const id = randomUUID()
      const pushed = await this.#ask(`${this.#topic}/messages`, { id, delay: 20, body: id }, { 'idempotency-key': id })
      if (pushed !== undefined) this.accepted.add(id)
      await new Promise((resolve) => setTimeout(resolve, 10)) // up to a hundred pushes a second
    }
  }

  async #receive(): Promise<void> {
    while (this.#isReceiving) {
      const received = await this.#ask(`${this.#topic}/receive`, { max: 10, wait: 2_000 })
      const messages = (received?.['messages'] ?? []) as { id: string; lease: string }[]
      for (const { id } of messages) this.received.add(id)
      if (messages.length > 0) await this.#ask('/v1/leases/acknowledge', { leases: messages.map(({ lease }) => lease) })
    }
  }

  async #ask(path: string, body: object, headers: object = {}): Promise<Record<string, unknown> | undefined> {
    try {
      const response = await fetch(this.#url + path, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${this.#key}`, 'content-type': 'application/json', connection: 'close' },
          ...headers,
        },
        body: JSON.stringify(body),
      })
      const text = await response.text()
      if (response.ok) return JSON.parse(text) as Record<string, unknown>
      this.failures.push(`${path}: ${response.status} ${text.slice(0, 200)}`)
    } catch (error) {
      this.failures.push(`${path}: ${String(error)}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50)) // a client waits before it tries again
    return undefined
  }
}

describe('two instances behind the nginx of compose.yaml', function () {
  this.timeout(480_000)
  let dir: string
  let key: string
  let topic: string
  let instances: [Instance, Instance]
  let nginx: Nginx

  before(function () {
    if (hasNginx) return
    if (process.env['CI']) throw new Error('nginx is not installed')
    console.log('      SKIPPED: nginx is not installed, so nothing was restarted behind it')
    this.skip()
  })
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-rolling-'))
    const made = makeKey()
    key = made.key
    topic = `rolling-${process.pid}-${Date.now().toString(36)}`
    writeFileSync(join(dir, 'api-keys'), `${made.line}\n`)
    const args = ['--api-keys', join(dir, 'api-keys'), '--data-dir', dir, '--log-level', 'warn']
    const [one, two] = [await freePort(), await freePort()]
    instances = [new Instance(one, args), new Instance(two, args)]
    await Promise.all(instances.map((instance) => instance.start()))
    nginx = await Nginx.start([one, two])
    const made201 = await ask('PUT', `/v1/topics/${topic}`, { visibilityTimeout: VISIBILITY_MS })
    expect(made201.status).to.equal(201)
  })
  afterEach(async () => {
    await ask('DELETE', `/v1/topics/${topic}?force`).catch(() => undefined)
    await nginx?.stop()
    await Promise.all((instances ?? []).map((instance) => instance.end('SIGKILL')))
    rmSync(dir, { recursive: true, force: true })
  })

  const ask = (method: string, path: string, body?: object): Promise<Response> =>
    fetch(nginx.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
      ...(body && { body: JSON.stringify(body) }),
    })

  it('answers each request while one after the other is restarted, and loses nothing', async () => {
    const load = new Load(nginx.url, key, topic)
    await load.more(50)
    for (const instance of instances) {
      expect(await instance.end('SIGTERM'), 'the exit code').to.equal(0)
      await load.more(50)
      await instance.start()
      await load.more(50)
    }
    await load.finish()
    expect(load.failures, nginx.log.slice(-2_000)).to.deep.equal([])
  })

  it('loses no accepted message when one is killed', async () => {
    const load = new Load(nginx.url, key, topic)
    await load.more(50)
    await instances[0].end('SIGKILL')
    await load.more(100)
    await load.finish()
    // what the killed instance had not answered can have come to its client as an error, for a moment
    expect(load.failures.length, load.failures.join('\n')).to.be.below(20)
  })

  it('keeps metrics of one instance to itself', async () => {
    expect((await ask('GET', '/metrics')).status).to.equal(404)
    expect((await ask('GET', '/readyz')).status).to.equal(200)
  })
})
