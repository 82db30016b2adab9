import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient, type RedelayedClient } from 'redelayed'
import { ApiKeys } from '../api/api-keys.js'
import { createJournal } from '../index.js'
import { startCluster } from '../../../test/support/redis-server.js'
import { startSqlite, statement, type TestServer } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'

const HOUR = 3_600_000
const program = fileURLToPath(new URL('../cli/main.ts', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function cli(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const child = spawn(process.execPath, ['--import=tsx', program, ...args], {
    env: { ...process.env, REDELAYED_JOURNAL: undefined, REDIS_URL: undefined, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })))
}

describe('redelayed-server --check-config', function () {
  this.timeout(240_000)

  it('prints all mistakes at once, of flags, variables and relations, and ends with 2', async () => {
    const args = ['--check-config', '--port', '99999', '--nonsense=1', '--max-bodies-bytes', '5mb']
    const { code, out, err } = await cli(args, { REDELAYED_LOG_LEVEL: 'loud' })
    expect([code, out]).to.deep.equal([2, ''])
    expect(err.trim().split('\n')).to.deep.equal([
      'the configuration has 4 mistakes:',
      '  --nonsense: there is no such setting',
      '  --port: expected 0 to 65535',
      '  REDELAYED_LOG_LEVEL: expected fatal or error or warn or info or debug or silent',
      '  max-bodies-bytes: expected at least max-batch-bytes, and twice max-message-bytes',
    ])
  })

  it('says that a configuration is fine, and starts nothing', async () => {
    const { code, out, err } = await cli(['--check-config', '--port', '0'])
    expect([code, out]).to.deep.equal([0, 'The configuration is fine.\n'])
    expect(err).to.not.include('mistake')
  })
})

describe('redelayed-server key', function () {
  this.timeout(240_000)

  it('makes a key, and a line for the file of the service', async () => {
    const { code, out, err } = await cli([
      'key',
      '--scopes',
      'push,consume',
      '--topics=orders, mails-*',
      '--hide-payloads',
    ])
    expect([code, err]).to.deep.equal([0, ''])
    const [, key = ''] = /^The key, for the client: +(rdk_\S+)$/m.exec(out) ?? []
    const [, line = ''] = /^A line for the file of the keys: +(.*)$/m.exec(out) ?? []
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-key-'))
    try {
      writeFileSync(join(dir, 'api-keys'), `${line}\n`)
      const found = new ApiKeys(join(dir, 'api-keys'), () => undefined).find(key)
      expect([...(found?.scopes ?? [])]).to.have.members(['push', 'consume'])
      expect(found).to.deep.include({ topics: ['orders', 'mails-*'], hidePayloads: true })
    } finally {
      rmSync(dir, { recursive: true })
    }
  })

  it('reports all mistakes, and then makes no key', async () => {
    const wrong = await cli(['key', '--scopes', 'push,all', '--topics', 'a/b'])
    expect([wrong.code, wrong.out]).to.deep.equal([2, ''])
    expect(wrong.err.trim().split('\n')).to.deep.equal([
      '--scopes: expected some of push,consume,admin,read',
      '--topics: expected names of topics, or prefixes with *',
    ])
    const unknown = await cli(['key', '--scope', 'push'])
    expect([unknown.code, unknown.out]).to.deep.equal([2, ''])
    expect(unknown.err).to.match(/--scope/)
    const help = await cli(['key', '--help'])
    expect([help.code, help.err]).to.deep.equal([0, ''])
    expect(help.out).to.match(/--scopes .*\n.*--topics .*\n.*--hide-payloads/)
  })
})

describe('redelayed-server journal', function () {
  this.timeout(240_000)
  const databases: TestServer = startSqlite()
  let redis: LosableRedis
  let client: RedelayedClient
  let url: string

  before(async () => {
    redis = await LosableRedis.start()
  })
  after(async () => {
    await redis?.stop()
    await databases.stop()
  })
  beforeEach(async () => {
    url = await databases.fresh()
    client = createClient({ url: redis.url })
  })
  afterEach(() => client.shutdown())

  it('makes the tables, and says if they exist already', async () => {
    const args = ['journal', 'migrate', '--journal', url]
    const { code, out } = await cli(args)
    expect([code, out]).to.deep.equal([0, 'Done: 0001-messages, 0002-digest, 0003-biz-key, 0004-group.\n'])
    expect(await cli(['journal', 'migrate'], { REDELAYED_JOURNAL: url })).to.include({
      code: 0,
      out: 'The tables are of this version.\n',
    })
  })

  it('verifies, restores what is missing, and finds no difference then', async () => {
    const queue = client.getReliableQueue<string>('mails')
    const journal = await createJournal({ url })
    const mails = await journal.attach(queue)
    await mails.addMany(['a', 'b', 'c', '007'].map((id) => ({ payload: id, id, delay: HOUR })))
    await mails.drain()
    await journal.close()
    await queue.setConfig({ changes: false }) // so that the journal does not hear of it
    await queue.remove('a', 'b')
    const where = ['--journal', url, '--redis', redis.url, '--queue', 'mails']

    const dry = await cli(['journal', 'restore', ...where, '--dry-run', '--id', 'a'])
    expect([dry.code, dry.err]).to.deep.equal([0, ''])
    expect(dry.out).to.match(/^mails: 1 open in SQL, 1 would be restored, 0 refused\.$/m)
    expect(await queue.size(), 'a dry run changes nothing').to.equal(2)
    const other = await cli(['journal', 'restore', ...where, '--dry-run', '--id', '007'])
    expect(other.out).to.match(/^mails: 1 open in SQL, 0 would be restored, 0 refused\.$/m)
    const restored = await cli(['journal', 'restore', ...where])
    expect([restored.code, restored.err]).to.deep.equal([0, ''])
    expect(restored.out).to.match(/^mails: 4 of 4 checked, 2 restored, \d+ a second, 0 s left$/m)
    expect(await queue.size()).to.equal(4)
    const verified = await cli(['journal', 'verify', ...where])
    expect([verified.code, verified.err]).to.deep.equal([0, ''])
    expect(verified.out).to.match(/^mails: 0 differences\.$/m)
  })

  it('restores expired messages only on request', async () => {
    const queue = client.getReliableQueue<string>('expired')
    const journal = await createJournal({ url })
    const mails = await journal.attach(queue)
    await mails.add('a', { id: 'a', timeToLive: 1 })
    await eventually(async () => {
      expect(await queue.poll()).to.equal(null)
      await mails.drain()
      expect((await mails.get('a'))?.state).to.equal('expired')
    })
    await journal.close()
    const restore = async (...args: string[]): Promise<string> =>
      (await cli(['journal', 'restore', '--journal', url, '--redis', redis.url, '--queue', 'expired', ...args])).out
    expect(await restore()).to.match(/^expired: 0 open in SQL, 0 restored, 0 refused\.$/m)
    const dry = await restore('--expired', '--dry-run')
    expect(dry).to.match(/^expired: 1 open in SQL, 1 would be restored, 0 refused\.$/m)
    expect(await queue.size()).to.equal(0)
    expect(await restore('--expired')).to.match(/^expired: 1 open in SQL, 1 restored, 0 refused\.$/m)
    expect((await queue.poll())?.id, 'it expires no more').to.equal('a')
  })

  it('restores and verifies the shards of a queue in a cluster', async () => {
    const cluster = await startCluster()
    const urls = cluster.servers.map((server) => server.url)
    const nodes = urls.join(', ')
    const own = createClient({ cluster: urls })
    try {
      const queue = own.getShardedReliableQueue<string>('parts', { shards: 4 })
      const journal = await createJournal({ url })
      const parts = await journal.attach(queue)
      const ids = Array.from({ length: 40 }, (_, n) => `m${n}`)
      await parts.addMany(ids.map((id) => ({ payload: id, id, delay: HOUR })))
      await parts.drain()
      await journal.close()
      await queue.setConfig({ changes: false }) // so that the journal does not hear of it
      expect(await queue.remove(...ids.slice(0, 30))).to.equal(30)
      const where = ['--journal', url, '--redis-cluster', nodes, '--queue', 'parts', '--shards', '4']
      const one = await cli(['journal', 'restore', ...where, '--id', 'm0'])
      expect([one.code, one.err]).to.deep.equal([0, ''])
      expect(await queue.size()).to.equal(11)
      const restored = await cli(['journal', 'restore', ...where], { REDIS_URL: 'redis://127.0.0.1:1' })
      expect([restored.code, restored.err]).to.deep.equal([0, ''])
      expect(restored.out.match(/ restored, 0 refused\.$/gm), 'of each shard and of its dead letters').to.have.length(8)
      expect(await queue.size()).to.equal(40)
      const verified = await cli(
        ['journal', 'verify', ...where.filter((each) => !each.startsWith('--redis') && each !== nodes)],
        {
          REDELAYED_REDIS_CLUSTER: nodes,
        },
      )
      expect([verified.code, verified.err]).to.deep.equal([0, ''])
      expect(verified.out.match(/: 0 differences\.$/gm)).to.have.length(8)
    } finally {
      await own.shutdown()
      await cluster.stop()
    }
  })

  it('finds Redis and SQL where the service with the same environment has them, also in files', async () => {
    const queue = client.getReliableQueue<string>('as-the-service')
    const journal = await createJournal({ url })
    const mails = await journal.attach(queue)
    await mails.add('a', { id: 'a', delay: HOUR })
    await mails.drain()
    await journal.close()
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-secrets-'))
    const file = (name: string, text: string): string => {
      writeFileSync(join(dir, name), `${text}\n`)
      return join(dir, name)
    }
    try {
      const args = ['journal', 'verify', '--queue', 'as-the-service']
      const files = { REDELAYED_REDIS_FILE: file('redis', redis.url), REDELAYED_JOURNAL_FILE: file('journal', url) }
      const config = file('config.yaml', `redis: ${redis.url}\njournal: ${JSON.stringify(url)}\nport: 9000`)
      const wrong = { REDIS_URL: 'redis://127.0.0.1:1', REDELAYED_PORT: 'tcp://10.0.0.1:8080' }
      for (const env of [files, { REDELAYED_REDIS: redis.url, REDELAYED_JOURNAL: url }, { REDELAYED_CONFIG: config }]) {
        const { code, out, err } = await cli(args, { ...wrong, ...env })
        expect([code, err], JSON.stringify(env)).to.deep.equal([0, ''])
        expect(out).to.match(/^as-the-service: 0 differences\.$/m)
      }
      const refused = await cli(args, { REDELAYED_REDIS: 'http://x', REDELAYED_JOURNAL: 'oracle://x' })
      expect(refused.code).to.equal(2)
      expect(refused.err).to.match(/2 mistakes/)
    } finally {
      rmSync(dir, { recursive: true })
    }
  })

  it('names the differences, and ends with 1', async () => {
    const queue = client.getReliableQueue<string>('others')
    const journal = await createJournal({ url })
    const others = await journal.attach(queue)
    await others.add('x', { id: 'known', delay: HOUR })
    await others.drain()
    await journal.close()
    await statement(url, `update redelayed_messages set priority = 5`)
    const { code, out } = await cli(['journal', 'verify', '--journal', url, '--redis', redis.url, '--queue', 'others'])
    expect(code).to.equal(1)
    expect(out).to.match(/^others "known": priority \(SQL: 5, Redis: 0\)$/m)
  })

  it('removes only messages that were final for long enough', async () => {
    const queue = client.getReliableQueue<string>('pruned')
    const journal = await createJournal({ url })
    const mails = await journal.attach(queue)
    const ids = ['old', 'young', 'open', 'dead']
    await mails.addMany(ids.map((id) => ({ payload: id, id, delay: HOUR })))
    for (const id of ['old', 'young']) expect(await mails.cancel(id)).to.equal(true)
    await mails.drain()
    await journal.close()
    const daysAgo = (days: number): number => Date.now() - days * 24 * HOUR
    const make = (id: string, days: number): Promise<void> =>
      statement(url, `update redelayed_messages set updated_at = ${daysAgo(days)} where cast(id as text) = '${id}'`)
    await make('old', 31)
    await make('young', 29)
    await make('open', 31)
    await statement(url, `update redelayed_message_flow set at = ${daysAgo(31)} where cast(id as text) = 'old'`)
    const prune = (...args: string[]): Promise<Ended> => cli(['journal', 'prune', '--journal', url, ...args])

    const { code, out } = await prune('--older-than', '30')
    expect([code, out]).to.deep.equal([0, 'Removed 1 messages that were final and 2 changes.\n'])
    const again = await prune('--older-than', '30')
    expect([again.code, again.out]).to.deep.equal([0, 'Removed 0 messages that were final and 0 changes.\n'])
    const byDefault = await prune()
    expect(byDefault.out, 'seven days').to.equal('Removed 1 messages that were final and 0 changes.\n')
  })

  for (const [what, args, code, says] of [
    ['an unknown action', ['journal', 'forget', '--journal', 'sqlite:x'], 2, /expected migrate, verify/],
    ['no journal', ['journal', 'verify', '--queue', 'q'], 2, /REDELAYED_JOURNAL is missing/],
    [
      'a bad number of shards',
      ['journal', 'verify', '--journal', 'sqlite:x', '--queue', 'q', '--shards', '0'],
      2,
      /--shards takes a whole number from 1 to 256/,
    ],
    [
      'a Redis and a cluster',
      [
        'journal',
        'verify',
        '--journal',
        'sqlite:x',
        '--queue',
        'q',
        '--redis',
        'redis://h',
        '--redis-cluster',
        'redis://h',
      ],
      2,
      /exclude each other/,
    ],
    [
      'sentinels without the name of a master',
      ['journal', 'verify', '--journal', 'sqlite:x', '--queue', 'q', '--redis-sentinels', 'redis://a'],
      2,
      /redis-sentinels: give the name of the master/,
    ],
    ['no queue', ['journal', 'verify', '--journal', 'sqlite:x'], 2, /--queue is missing/],
    ['a bad number of days', ['journal', 'prune', '--journal', 'sqlite:x', '--older-than', 'x'], 2, /a number of days/],
    ['another scheme', ['journal', 'migrate', '--journal', 'oracle://host/db'], 1, /sqlite:<path>/],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const ended = await cli(args)
      expect(ended.code).to.equal(code)
      expect(ended.err)
        .to.match(says)
        .and.not.match(/ at .*\.ts/)
    })
  }

  it('says what to do about a file that is not a database, missing tables, and a file that is open', async () => {
    const path = url.slice('sqlite:'.length)
    writeFileSync(path, 'no database '.repeat(500))
    expect((await cli(['journal', 'migrate', '--journal', url])).err).to.match(/give the path of a SQLite file/)
    rmSync(path)
    const old = await cli(['journal', 'prune', '--journal', url])
    expect([old.code, /journal migrate/.test(old.err)]).to.deep.equal([1, true])
    const journal = await createJournal({ url })
    const locked = await cli(['journal', 'prune', '--journal', url])
    await journal.close()
    expect([locked.code, /another process has it open/.test(locked.err)]).to.deep.equal([1, true])
  })
})
