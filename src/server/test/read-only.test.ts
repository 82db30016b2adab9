/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-member-access, @typescript-eslint/no-unsafe-argument, @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-return --
   answers of many forms: a wrong guess fails the test */
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { freePort, startRedis } from '../../../test/support/redis-server.js'
import { ConfigError, loadSettings } from '../config/load-settings.js'
import { startLibraryRedis, type LibraryRedis } from './support/library-redis.js'
import { startTestService, type TestService } from './support/service.js'

type Json = Record<string, any>

describe('the service with --read-only', function () {
  this.timeout(180_000)
  let redis: LibraryRedis
  let service: TestService
  before(async () => {
    redis = await startLibraryRedis()
    // a user of Redis that may read, and run scripts in which again it may only read
    service = await startTestService({ redis: redis.readerUrl, readOnly: true })
  })
  after(async () => {
    await service?.stop()
    await redis?.stop()
  })

  const get = async (path: string, key = service.key): Promise<{ status: number; body: Json }> => {
    const { status, body } = await service.ask('GET', path, undefined, { key })
    return { status, body: body as unknown as Json }
  }
  const fine = async (path: string, key?: string): Promise<Json> => {
    const { status, body } = await get(path, key)
    expect(status, JSON.stringify(body)).to.equal(200)
    return body
  }

  it('lists the queues of libraries, Java’s, sharded and reliable ones too, in pages', async () => {
    const { queues, total } = await fine('/v1/queues')
    expect(total).to.equal(4)
    const row = (name: string): Json => queues.find((one: Json) => one['name'] === name) as Json
    expect(row('java')).to.include({ kind: 'delayed', shards: null, pending: 1, ready: 0, quarantined: 1, dead: null })
    expect(row('java')['nextDueAt']).to.equal(redis.javaDue)
    expect(row('orders')).to.include({ kind: 'delayed', pending: 2, subscribers: 0, error: null })
    expect(row('mails')).to.include({ kind: 'reliable', pending: 1, ready: 1, inFlight: 0, dead: 1 })
    expect(row('parts')).to.include({ kind: 'delayed', pending: 8 })
    expect(row('parts')['shards']).to.be.greaterThan(1)

    const seen: string[] = []
    for (let cursor = ''; ;) {
      const page = await fine(`/v1/queues?limit=3${cursor}`)
      seen.push(...page['queues'].map(({ name }: Json) => name as string))
      if (page['cursor'] === undefined) break
      cursor = `&cursor=${page['cursor']}`
    }
    expect(seen).to.deep.equal(['java', 'mails', 'orders', 'parts'])
    expect((await fine('/v1/queues?search=ava'))['queues']).to.have.length(1)
    expect((await get('/v1/queues?cursor=x')).status).to.equal(400)
  })

  it('lists names of any characters and any length once, in pages', async () => {
    const long = 'ü'.repeat(5_000)
    const names = ['a', 'a\tb', 'a\0', `${long}1`, `${long}2`, long, '\u{1f600}'.repeat(400)]
    const own = await startRedis()
    const admin = new Redis(own.url)
    for (const name of names) await admin.zadd(`redisson_delay_queue_timeout:{${name}}`, 1, 'x')
    await admin.quit()
    const other = await startTestService({ redis: own.url, readOnly: true })
    try {
      const seen: string[] = []
      for (let cursor = ''; seen.length <= names.length;) {
        const { status, body } = await other.ask('GET', `/v1/queues?limit=1${cursor}`)
        expect(status, JSON.stringify(body).slice(0, 500)).to.equal(200)
        seen.push(...(body as unknown as Json)['queues'].map(({ name }: Json) => name as string))
        if (body['cursor'] === undefined) break
        cursor = `&cursor=${body['cursor']}`
      }
      expect(seen).to.have.length(names.length)
      expect(seen).to.have.members(names)
    } finally {
      await other.stop()
      await own.stop()
    }
  })

  it('shows next messages, the quarantine and dead letters, decoded by a codec or as hex', async () => {
    const java = await fine('/v1/queues/java?codec=string')
    expect(java['reliable']).to.equal(null)
    expect(java['delayed'].scheduled[0]).to.include({ at: redis.javaDue, state: 'delayed' })
    expect(java['delayed'].scheduled[0].payload.text).to.equal('"from Java"')
    expect(java['delayed'].quarantined[0]).to.include({ hex: 'ff00', size: 2 })
    const wrong = await fine('/v1/queues/java?codec=json')
    expect(wrong['delayed'].scheduled[0].payload).to.include({ text: null, size: 9 })
    expect(wrong['delayed'].scheduled[0].payload.hex).to.equal(Buffer.from('from Java').toString('hex'))

    const mails = (await fine('/v1/queues/mails'))['reliable']
    expect(mails.messages.map(({ id, state }: Json) => [id, state])).to.deep.equal([
      ['now', 'visible'],
      ['later', 'delayed'],
    ])
    expect(mails.deadLetters[0]).to.include({ id: 'dead', state: 'dead', failure: 'Error: no such address' })
    const { payload } = mails.messages[0]
    expect([payload.isCut, payload.text.length]).to.deep.equal([true, 4_096])
    for (const path of ['java?codec=none', 'java?codec=a%00b', 'a%00b', 'a%00b/agenda'])
      expect((await get(`/v1/queues/${path}`)).status, path).to.equal(400)
  })

  it('hides payloads from keys that may not see them, and everything from keys of some topics', async () => {
    const blind = service.addKey(['read'], ['*'], true)
    const some = service.addKey(['read'], ['orders'])
    const java = await fine('/v1/queues/java?codec=string', blind)
    expect(java['delayed'].scheduled[0].payload).to.equal(null)
    expect(JSON.stringify([java, await fine('/v1/queues/mails', blind)])).to.not.match(/from Java|ff00|xxx/)
    for (const path of ['/v1/queues', '/v1/queues/java', '/v1/queues/java/agenda'])
      expect((await get(path, some)).status, path).to.equal(403)
  })

  it('counts what is due when, in all shards', async () => {
    const agenda = await fine('/v1/queues/parts/agenda?buckets=4')
    expect(agenda['buckets'].map(({ count }: Json) => count as number)).to.deep.equal([0, 8, 0, 0])
    expect(await fine('/v1/queues/orders/agenda')).to.include({ overdue: 1, later: 1 })
    expect(await fine('/v1/queues/mails/agenda')).to.include({ later: 1 })
  })

  it('is examined by the doctor', async () => {
    const { findings } = await fine('/v1/doctor')
    expect(findings.map(({ code, queue }: Json) => `${code} ${queue}`)).to.include('no-subscriber orders')
  })

  it('signs in, says that it only reads, and refuses everything else', async () => {
    const signedIn = await service.ask('POST', '/ui/session', { key: service.key }, { key: '-' })
    expect(signedIn.status).to.equal(200)
    expect(signedIn.body).to.include({ readOnly: true, journal: false })
    const cookie = (signedIn.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const byCookie = await fetch(`${service.url}/v1/queues`, { headers: { cookie, connection: 'close' } })
    expect(byCookie.status).to.equal(200)
    await byCookie.arrayBuffer()
    expect((await get('/readyz', '-')).status).to.equal(200)
    for (const [method, path] of [
      ['POST', '/v1/topics/orders/messages'],
      ['PUT', '/v1/topics/orders'],
      ['DELETE', '/v1/queues/java'],
      ['POST', '/v1/queues/java'],
    ] as const) {
      const { status, body } = await service.ask(method, path, method === 'DELETE' ? undefined : {})
      expect([status, body.code], `${method} ${path}`).to.deep.equal([403, 'read-only'])
    }
    expect((await get('/v1/topics')).status).to.equal(404)
  })

  it('sends only commands that read, and leaves every key as it was', async () => {
    const before = await redis.digest()
    const monitor = await redis.admin.monitor()
    const sent = new Set<string>()
    monitor.on('monitor', (_time: string, [command = '']: string[]) => sent.add(command.toLowerCase()))
    // other requests than above, as answers are cached for a moment
    await fine('/v1/queues/orders?limit=7')
    await fine('/v1/queues/mails?limit=7')
    await fine('/v1/queues/not-there/agenda')
    await redis.admin.echo('the last one')
    while (!sent.has('echo')) await once(monitor, 'monitor')
    monitor.disconnect()
    const flags = (await redis.admin.command('INFO', ...sent)) as [string, number, string[]][]
    const writing = flags.filter((each) => each !== null && each[2].includes('write')).map(([name]) => name)
    expect([...sent]).to.include.members(['zcount', 'evalsha', 'lrange'])
    expect(writing).to.deep.equal([])
    expect(await redis.digest()).to.equal(before)
  })

  it('needs no rights with which it could disturb others', async () => {
    const reader = new Redis(redis.readerUrl)
    try {
      for (const [command, ...args] of [
        ['CLIENT', 'KILL', 'ID', '1'],
        ['CLIENT', 'PAUSE', '1'],
        ['SCRIPT', 'FLUSH'],
      ] as const) {
        const answer = await reader.call(command, ...args).catch(({ message }: Error) => message)
        expect(answer, `${command} ${args[0]}`).to.match(/^NOPERM/)
      }
    } finally {
      await reader.quit()
    }
  })

  it('needs a Redis', () => {
    expect(() => loadSettings({ args: ['--read-only'] })).to.throw(ConfigError, 'read-only: give the Redis')
  })

  it('is started by "redelayed ui", with a key for this run', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-ui-'))
    const require = createRequire(import.meta.url)
    const library = dirname(require.resolve('redelayed/package.json'))
    // the service of this checkout, in the place where npm would have put it
    const installed = join(dir, 'node_modules/redelayed-server')
    mkdirSync(installed, { recursive: true })
    mkdirSync(join(dir, 'node_modules/redelayed'))
    symlinkSync(join(library, 'dist'), join(dir, 'node_modules/redelayed/dist'))
    const main = relative(installed, fileURLToPath(new URL('../cli/main.ts', import.meta.url)))
    const manifest = { name: 'redelayed-server', bin: { 'redelayed-server': main } }
    writeFileSync(join(installed, 'package.json'), JSON.stringify(manifest))
    // another one, in the folder of the caller
    const caller = join(dir, 'caller')
    mkdirSync(join(caller, 'node_modules/redelayed-server'), { recursive: true })
    const broken = { ...manifest, bin: { 'redelayed-server': 'none.js' } }
    writeFileSync(join(caller, 'node_modules/redelayed-server/package.json'), JSON.stringify(broken))
    const port = await freePort()
    const program = join(dir, 'node_modules/redelayed/dist/cli/main.js')
    const args = [program, 'ui', '--url', redis.readerUrl, '--port', String(port)]
    const env = {
      ...{ ...process.env, TMPDIR: dir, NODE_OPTIONS: `--import=${pathToFileURL(require.resolve('tsx')).href}` },
      // of a delay service: they would open the page to the network, and give it other keys
      ...{ REDELAYED_HOST: '0.0.0.0', REDELAYED_API_KEYS: join(dir, 'keys') },
    }
    const child = spawn(process.execPath, args, { cwd: caller, env, stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    try {
      for await (const part of child.stdout) {
        out += String(part)
        if (/rdk_\S+\n/.test(out)) break
      }
      const [key = ''] = /rdk_\S+/.exec(out) ?? []
      const url = `http://127.0.0.1:${port}`
      expect(out).to.contain(`${url}/ui`)
      const headers = { authorization: `Bearer ${key}`, connection: 'close' }
      const answer = await fetch(`${url}/v1/queues`, { headers })
      expect(await answer.json()).to.include({ total: 4 })
    } finally {
      child.kill('SIGHUP') // like a closed terminal
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
    expect(child.exitCode).to.equal(0)
    expect(readdirSync(dir).filter((name) => name.startsWith('redelayed'))).to.deep.equal([])
    rmSync(dir, { recursive: true, force: true })
  })
})
