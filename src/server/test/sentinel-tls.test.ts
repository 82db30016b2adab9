import { expect } from 'chai'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { writeCertificate } from '../../../test/support/certificate.js'
import { requireServerBin, startSentinel, type SentinelSetup } from '../../../test/support/redis-server.js'
import { makeKey } from '../api/api-keys.js'
import { eventually } from './support/eventually.js'

const program = fileURLToPath(new URL('../cli/main.ts', import.meta.url))

interface Answered {
  readonly status: number
  readonly body: { readonly messages?: readonly { readonly id: string; readonly lease: string }[] }
}

/** A service in a process of its own, as Node reads additional authorities only at the start of a process. */
class Instance {
  readonly #child: ChildProcess
  readonly #key: string
  output = ''

  constructor(dir: string, env: NodeJS.ProcessEnv) {
    const { key, line } = makeKey()
    this.#key = key
    writeFileSync(join(dir, 'api-keys'), `${line}\n`)
    const args = ['--import=tsx', program, '--port', '0', '--data-dir', dir, '--api-keys', join(dir, 'api-keys')]
    this.#child = spawn(process.execPath, args, {
      env: { ...process.env, REDIS_URL: undefined, NODE_EXTRA_CA_CERTS: undefined, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (bytes: Buffer) => (this.output += bytes.toString()))
  }

  /** Resolves when it listens, or has ended. */
  async ready(): Promise<void> {
    await eventually(() => {
      if (this.#child.exitCode === null) expect(this.output).to.match(/http:\/\/127\.0\.0\.1:\d+/)
    }, 60_000)
  }

  /** Resolves with its exit code, when it ends by itself. */
  async ended(): Promise<number | null> {
    await eventually(() => expect(this.#child.exitCode, this.output).to.not.equal(null), 60_000)
    return this.#child.exitCode
  }

  async ask(method: string, path: string, body?: object): Promise<Answered> {
    const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(this.output) ?? []
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json', connection: 'close' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Answered['body'] }
  }

  /** @returns its exit code */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode
    const ended = new Promise<number | null>((resolve) => this.#child.once('close', resolve))
    this.#child.kill('SIGTERM')
    return ended
  }
}

describe('a service that finds Redis through sentinels, by TLS', function () {
  this.timeout(180_000)
  let setup: SentinelSetup
  let dir: string
  let authority: string

  before(async function () {
    requireServerBin(this)
    dir = mkdtempSync(join(tmpdir(), 'redelayed-sentinel-tls-'))
    authority = join(dir, 'authority.pem')
    try {
      writeCertificate(dir, 'authority')
      writeCertificate(dir, 'server', 'authority')
      const files = { certificate: join(dir, 'server.pem'), key: join(dir, 'server.key'), authority }
      setup = await startSentinel({ tls: files })
    } catch (error) {
      // Debian's server has TLS, and so has that of CI
      if (process.env['CI'] !== undefined || !/tls-port|openssl ENOENT/.test(String(error))) throw error
      console.log('        SKIPPED: no openssl, or a redis-server without TLS.')
      this.skip()
    }
  })
  after(async () => {
    await setup?.stop()
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true })
  })

  /** @param sentinels `rediss` for TLS to the sentinels */
  function start(sentinels: 'redis' | 'rediss', env: NodeJS.ProcessEnv = { NODE_EXTRA_CA_CERTS: authority }): Instance {
    const ports =
      sentinels === 'rediss' ? setup.sentinels.map(({ port }) => port) : setup.sentinelServers.map(({ port }) => port)
    return new Instance(dir, {
      REDELAYED_REDIS: `rediss://${setup.name}`,
      REDELAYED_REDIS_SENTINELS: ports.map((port) => `${sentinels}://127.0.0.1:${port}`).join(','),
      ...env,
    })
  }

  async function works(service: Instance, id: string): Promise<void> {
    const pushed = await service.ask('POST', '/v1/topics/orders/messages', { id, delay: 10, existing: 'keep' })
    expect(pushed.status).to.be.oneOf([200, 201])
    const { status, body } = await service.ask('POST', '/v1/topics/orders/receive', { wait: 2_000 })
    expect([status, body.messages?.map((message) => message.id)]).to.deep.equal([200, [id]])
    const leases = body.messages?.map(({ lease }) => lease)
    expect((await service.ask('POST', '/v1/leases/acknowledge', { leases })).status).to.equal(200)
    // the doctor is a process of its own, and asks the sentinels by itself
    expect((await service.ask('GET', '/v1/doctor')).status).to.equal(200)
  }

  /** How many connections came to the port without TLS, beside this question. */
  const unencryptedAt = async (port: number): Promise<number> => {
    const redis = new Redis(port)
    try {
      const lines = String(await redis.call('CLIENT', 'LIST')).split('\n')
      return lines.filter((line) => line.includes(` laddr=127.0.0.1:${port} `)).length - 1
    } finally {
      redis.disconnect()
    }
  }

  it('works with all connections encrypted, and goes on after a failover', async () => {
    const service = start('rediss')
    try {
      await service.ready()
      await works(service, 'before')
      const master = await setup.masterPort()
      for (const { port } of [...setup.servers, ...setup.sentinelServers])
        expect(await unencryptedAt(port), String(port)).to.equal(0)
      await setup.failover()
      expect(await setup.masterPort()).to.not.equal(master)
      await eventually(() => works(service, 'after'), 60_000)
      await setup.agreed()
    } finally {
      expect(await service.stop()).to.equal(0)
    }
  })

  it('encrypts the connections to the servers only, when the sentinels have no TLS', async () => {
    const service = start('redis')
    try {
      await service.ready()
      await works(service, 'mixed')
      for (const { port } of setup.servers) expect(await unencryptedAt(port), String(port)).to.equal(0)
      const asked = await Promise.all(setup.sentinelServers.map(({ port }) => unencryptedAt(port)))
      expect(Math.max(...asked)).to.be.greaterThan(0)
    } finally {
      expect(await service.stop()).to.equal(0)
    }
  })

  it('does not start with an authority that it does not know, and prints why', async () => {
    const refused = (['redis', 'rediss'] as const).map(async (sentinels) => {
      const service = start(sentinels, {})
      try {
        expect(await service.ended(), sentinels).to.equal(1)
        expect(service.output, sentinels).to.match(/self-signed certificate.*NODE_EXTRA_CA_CERTS/)
      } finally {
        await service.stop()
      }
    })
    await Promise.all(refused)
  })
})
