import { expect } from 'chai'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadSettings } from '../config/load-settings.js'
import { startService, type Service } from '../service/service.js'

describe('the service with a Redis of its own', function () {
  this.timeout(60_000)
  let dataDir: string
  let service: Service | undefined

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'redelayed-service-'))
  })
  afterEach(async () => {
    await service?.close()
    service = undefined
    rmSync(dataDir, { recursive: true, force: true })
  })

  const start = (...more: string[]): Promise<Service> =>
    startService(loadSettings({ args: ['--port', '0', '--data-dir', dataDir, '--log-level', 'silent', ...more] }), '0')

  async function call(key: string, path: string, body: unknown): Promise<{ status: number; body: unknown }> {
    const response = await fetch(`${service?.url}/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: await response.json() }
  }

  it('has its messages and its key after a stop and a start', async function () {
    service = await start()
    if (service.ownRedis?.isDurable !== true) return this.skip() // there is no server on PATH
    const key = service.madeKey as string
    expect((await call(key, '/topics/orders/messages', { body: 7 })).status).to.equal(201)
    await service.close()
    service = await start()
    expect(service.madeKey).to.equal(undefined)
    const received = await call(key, '/topics/orders/receive', { wait: 5_000 })
    expect(received).to.have.nested.property('body.messages[0].body', 7)
  })

  it('is ready within seconds with nothing configured', async function () {
    this.timeout(120_000)
    let least = Infinity
    // about one second; a machine with other work has slow moments, and what is wrong waits for a time that runs out
    for (let n = 0; n < 3 && least > 15_000; n++) {
      const startedAt = performance.now()
      service = await start()
      expect((await fetch(`${service.url}/readyz`)).status).to.equal(200)
      least = Math.min(least, performance.now() - startedAt)
      await service.close()
      service = undefined
      rmSync(dataDir, { recursive: true, force: true })
    }
    expect(least).to.be.below(15_000)
  })

  it('refuses a second service on the same data, which leaves the first one what it has', async function () {
    service = await start()
    if (service.ownRedis?.isDurable !== true) return this.skip()
    const error: unknown = await start().catch((thrown: unknown) => thrown)
    expect(error)
      .to.have.property('message')
      .that.matches(/uses the Redis in .* another --data-dir/)
    expect((await call(service.madeKey as string, '/topics/orders/messages', { body: 7 })).status).to.equal(201)
  })

  it('is not ready for a while before it stops, and works until then', async () => {
    service = await start('--shutdown-delay', '5s')
    const { url, madeKey: key = '' } = service
    const readiness = async (): Promise<number> =>
      (await fetch(`${url}/readyz`, { headers: { connection: 'close' } })).status
    expect(await readiness()).to.equal(200)
    const closed = service.close()
    expect(await readiness()).to.equal(503)
    expect((await call(key, '/topics/orders/messages', { body: 7 })).status).to.equal(201)
    await closed
  })

  it('keeps no key that was never shown when it cannot listen, and leaves nothing running', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    const args = ['--port', String(port), '--data-dir', dataDir, '--log-level', 'silent']
    const refused: unknown = await startService(loadSettings({ args }), '0').catch((thrown: unknown) => thrown)
    await new Promise((resolve) => taken.close(resolve))
    expect(refused).to.have.property('code', 'EADDRINUSE')
    expect(existsSync(join(dataDir, 'api-keys'))).to.equal(false)
  })
})
