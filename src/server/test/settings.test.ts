import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError, loadSettings, unknownVariables, whereabouts, type Sources } from '../config/load-settings.js'
import { flagOf, SETTING_NAMES, SETTINGS, variableOf } from '../config/server-settings.js'

describe('the settings of the service', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-settings-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  function file(name: string, content: string): string {
    const path = join(dir, name)
    writeFileSync(path, content)
    return path
  }

  function problems(sources: Sources): readonly string[] {
    try {
      loadSettings(sources)
    } catch (thrown) {
      expect(thrown).to.be.instanceOf(ConfigError)
      return (thrown as ConfigError).problems
    }
    return []
  }

  it('have their defaults if nothing is given', () => {
    const settings = loadSettings({})
    for (const name of SETTING_NAMES) expect(settings[name], name).to.equal(SETTINGS[name].initial)
  })

  it('have the same name as flag, as variable and as line of the file', () => {
    for (const name of SETTING_NAMES) {
      expect(variableOf(name)).to.equal(`REDELAYED_${flagOf(name).toUpperCase().replaceAll('-', '_')}`)
    }
    const config = file('a.yaml', 'max-body: 1\nmax-batch: 7\n')
    expect(problems({ args: ['--config', config] })).to.deep.equal([`${config}: max-body: there is no such setting`])
    expect(loadSettings({ args: ['--max-batch', '5'] }).maxBatch).to.equal(5)
    expect(loadSettings({ env: { REDELAYED_MAX_BATCH: '6' } }).maxBatch).to.equal(6)
    expect(loadSettings({ env: { REDELAYED_CONFIG: file('b.yaml', 'max-batch: 7') } }).maxBatch).to.equal(7)
  })

  it('a flag goes before a variable, and that before the file', () => {
    const config = file('c.json', JSON.stringify({ port: 1, host: 'file', 'max-batch': 3, 'create-topics': false }))
    const env = { REDELAYED_CONFIG: config, REDELAYED_PORT: '2', REDELAYED_HOST: 'variable' }
    const { port, host, maxBatch, createTopics } = loadSettings({ args: ['--port=4'], env })
    expect([port, host, maxBatch, createTopics]).to.deep.equal([4, 'variable', 3, false])
  })

  it('say where Redis and the journal are, whatever is wrong with the others', () => {
    const config = file('d.yaml', 'redis: redis://a:1\njournal-mode: async\nport: none\nread-only: true\n')
    const { redis, journal } = whereabouts({ REDELAYED_CONFIG: config, REDELAYED_PORT: 'none' })
    expect({ redis, journal }).to.deep.equal({ redis: 'redis://a:1', journal: SETTINGS.journal.initial })
  })

  it('a wrong mode of the journal is one mistake, not two', () => {
    const args = ['--redis', 'redis://a:1', '--journal-mode', 'often']
    expect(problems({ args })).to.have.length(1)
  })

  it('take durations, sizes, switches and lists', () => {
    expect(loadSettings({ args: ['--max-wait', '1.5s'] }).maxWait).to.equal(1_500)
    expect(problems({ args: ['--max-wait', '1.5ms'] })).to.deep.equal(['--max-wait: expected 0 ms to 600000 ms'])
    const args = ['--max-wait=2m', '--max-message-bytes', '64kb', '--no-create-topics']
    const env = { REDELAYED_REDIS_CLUSTER: 'redis://a:1, redis://b:2' }
    const { maxWait, maxMessageBytes, createTopics, redisCluster } = loadSettings({ args, env })
    expect([maxWait, maxMessageBytes, createTopics]).to.deep.equal([120_000, 65_536, false])
    expect(redisCluster).to.deep.equal(['redis://a:1', 'redis://b:2'])
    const config = file('list.yaml', 'redis-cluster:\n  - redis://a:1\n  - redis://b:2\n')
    expect(loadSettings({ args: ['--config', config] }).redisCluster).to.have.length(2)
    expect(loadSettings({ args: ['--create-topics', '--port', '1'] }).createTopics).to.equal(true)
  })

  it('all mistakes are reported at once, without the values', () => {
    const config = file('d.yaml', 'prot: 1\nmax-batch: {}\nlog-level: loud\n')
    const args = [
      '--port',
      '99999',
      '--unknown',
      'x',
      '--max-wait=3w',
      'serve',
      '--host',
      '--config',
      config,
      '--port=1',
    ]
    const env = { REDELAYED_REDIS: 'http://ada:secret@x', REDELAYED_CREATE_TOPICS: 'perhaps' }
    const all = problems({ args, env })
    expect(all).to.deep.equal([
      '--unknown: there is no such setting',
      'argument 4: expected a flag',
      'argument 6: expected a flag',
      '--host: expected a value',
      '--port: given twice',
      `${config}: prot: there is no such setting`,
      `${config}: max-batch: expected a text, a number, true, false or a list of texts`,
      'REDELAYED_REDIS: expected redis://…, rediss://…',
      'REDELAYED_CREATE_TOPICS: expected true or false',
      '--max-wait: expected 0 ms to 600000 ms',
      `${config}: log-level: expected fatal or error or warn or info or debug or silent`,
    ])
    expect(new ConfigError(all).message).to.include('11 mistakes').and.not.include('secret')
  })

  it('secrets come from files', () => {
    const path = file('redis', 'redis://:secret@host:1\n')
    expect(loadSettings({ env: { REDELAYED_REDIS_FILE: path } }).redis).to.equal('redis://:secret@host:1')
    expect(loadSettings({ args: ['--redis-file', path] }).redis).to.equal('redis://:secret@host:1')
    expect(loadSettings({ args: ['--config', file('e.yaml', `redis-file: ${path}`)] }).redis).to.include('secret')
    expect(problems({ env: { REDELAYED_REDIS_FILE: path, REDELAYED_REDIS: 'redis://a' } })).to.have.length(1)
    expect(problems({ env: { REDELAYED_REDIS_FILE: join(dir, 'none') } })[0]).to.match(
      /^REDELAYED_REDIS_FILE: .*cannot be read/,
    )
    expect(problems({ args: ['--port-file', path] }), 'no secret').to.deep.equal([
      '--port-file: there is no such setting',
      'argument 2: expected a flag',
    ])
  })

  it('REDIS_URL is the Redis if no other is given', () => {
    expect(loadSettings({ env: { REDIS_URL: 'redis://a' } }).redis).to.equal('redis://a')
    expect(loadSettings({ args: ['--redis=redis://b'], env: { REDIS_URL: 'redis://a' } }).redis).to.equal('redis://b')
    expect(loadSettings({ env: { REDIS_URL: 'redis://a', REDELAYED_REDIS_CLUSTER: 'redis://c' } }).redis).to.equal(
      undefined,
    )
    expect(problems({ args: ['--redis=redis://b', '--redis-cluster=redis://c'] })).to.deep.equal([
      'redis and redis-cluster: give one of them',
    ])
  })

  it('sentinels need the name of the master as the host of the Redis', () => {
    const flag = '--redis-sentinels=redis://a,redis://b:26380'
    const loaded = loadSettings({ args: [flag], env: { REDIS_URL: 'rediss://u:p@Orders_1/2' } })
    expect(loaded.redis).to.equal('rediss://u:p@Orders_1/2')
    expect(loaded.redisSentinels).to.deep.equal(['redis://a', 'redis://b:26380'])
    expect(problems({ args: [flag] })).to.deep.equal([
      'redis-sentinels: give the name of the master as the host of redis, such as redis://:password@name',
    ])
    for (const wrong of ['redis://orders:6379', 'redis://orders%zz', 'redis://orders%ff']) {
      expect(problems({ args: [flag, `--redis=${wrong}`] }), wrong).to.deep.equal([
        'redis: expected the name of the master without a port, with redis-sentinels',
      ])
    }
    expect(problems({ args: [flag, '--redis-cluster=redis://c'] })).to.deep.equal([
      'redis-sentinels and redis-cluster: give one of them',
    ])
  })

  it('all bodies together may have what the largest one has', () => {
    const expected = ['max-bodies-bytes: expected at least max-batch-bytes, and twice max-message-bytes']
    expect(problems({ args: ['--max-bodies-bytes=15mb'] })).to.deep.equal(expected)
    expect(problems({ args: ['--max-bodies-bytes=20mb', '--max-message-bytes=11mb'] })).to.deep.equal(expected)
    expect(problems({ args: ['--max-bodies-bytes=22mb', '--max-message-bytes=11mb'] })).to.deep.equal([])
    const { maxBodiesBytes } = loadSettings({ env: { REDELAYED_MAX_BODIES_BYTES: '16mb' } })
    expect(maxBodiesBytes).to.equal(16 * 1_048_576)
  })

  it('variables with their prefix that are not settings are reported', () => {
    const env = {
      REDELAYED_PROT: '1',
      REDELAYED_PORT: '1',
      REDELAYED_REDIS_FILE: 'x',
      REDELAYED_CONFIG: 'x',
      OTHER: '1',
    }
    expect(unknownVariables(env)).to.deep.equal(['REDELAYED_PROT'])
  })

  it('a file that is not a configuration is a mistake', () => {
    for (const [content, expected] of [
      ['- a\n- b', /expected lines such as/],
      ['a: [', /cannot be read/],
      ['text', /expected lines such as/],
    ] as const) {
      expect(problems({ args: ['--config', file('f.yaml', content)] })[0]).to.match(expected)
    }
    expect(problems({ args: ['--config', join(dir, 'none.yaml')] })[0]).to.match(/cannot be read/)
    expect(problems({ args: ['--config', file('g.yaml', '')] })).to.deep.equal([])
  })
})
