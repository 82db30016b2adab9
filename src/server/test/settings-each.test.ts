import { expect } from 'chai'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { ConfigError, loadSettings, type Sources } from '../config/load-settings.js'
import {
  flagOf,
  helpLines,
  SETTING_NAMES,
  SETTINGS,
  variableOf,
  type ServerSettings,
  type SettingName,
} from '../config/server-settings.js'

const MiB = 1_048_576
const REDIS = 'expected redis://…, rediss://…'
const SWITCH = 'expected true or false'

interface Row<K extends SettingName> {
  /** Valid texts with their values. */
  readonly good: readonly (readonly [text: string, value: ServerSettings[K]])[]
  /** Invalid texts with their errors. */
  readonly bad: readonly (readonly [text: string, problem: string])[]
  /** The default in docs/service.md, if it is a value. */
  readonly shown?: string
  /** The file of the test for the effect of the setting. */
  readonly effect: string
}

/** The numbers just outside of a range, and invalid texts. */
const outside = (least: number, most: number): readonly (readonly [string, string])[] => {
  const said = `expected ${least} to ${most}`
  const texts = [...(least > 0 ? [String(least - 1)] : []), String(most + 1), '-1', '1.5', '1e3', '0x1', 'many', ' 1']
  return texts.map((text) => [text, said])
}
const outsideOf = (least: number, most: number, unit: string, ...more: string[]): (readonly [string, string])[] =>
  [String(most + 1), ...(least > 0 ? [String(least - 1)] : []), '-1', '1w', 'soon', ...more].map((text) => [
    text,
    `expected ${least} ${unit} to ${most} ${unit}`,
  ])

/** A setting without a row fails here, in the types and in the first test. */
const ROWS: { readonly [K in SettingName]: Row<K> } = {
  host: {
    good: [
      ['0.0.0.0', '0.0.0.0'],
      ['::', '::'],
    ],
    bad: [['', 'expected a text, got an empty one']],
    shown: '127.0.0.1',
    effect: 'settings-effects.test.ts',
  },
  port: {
    good: [
      ['0', 0],
      ['65535', 65_535],
    ],
    bad: outside(0, 65_535),
    shown: '8080',
    effect: 'service.test.ts',
  },
  redis: {
    good: [
      ['redis://ada:s%23cret@host:1/7', 'redis://ada:s%23cret@host:1/7'],
      ['rediss://host', 'rediss://host'],
    ],
    bad: [
      ['host:6379', REDIS],
      ['http://host', REDIS],
      ['redis://host:0', 'expected a port of 1 to 65535'],
      ['redis://host/orders', 'expected the number of a database behind the /'],
      ['redis://host/1#2', 'expected each # of a password as %23'],
      ['redis://host?db=1', 'expected no query'],
      ['redis://:100%@host', 'expected each % of a user or password as %25'],
    ],
    effect: 'service-journal.test.ts',
  },
  redisCluster: {
    good: [['redis://a:1, redis://b:2', ['redis://a:1', 'redis://b:2']]],
    bad: [
      ['redis://a:1,', REDIS],
      ['a:1,b:2', REDIS],
      ['redis://a:1,rediss://b:2', 'expected the same scheme, user and password in all of them'],
      ['redis://x@a,redis://y@b', 'expected the same scheme, user and password in all of them'],
      ['redis://a/1', 'expected no database: a cluster has only 0'],
    ],
    effect: 'rights.test.ts',
  },
  redisSentinels: {
    good: [
      [
        'redis://watcher:s%23cret@a:26379, redis://watcher:s%23cret@[::1]',
        ['redis://watcher:s%23cret@a:26379', 'redis://watcher:s%23cret@[::1]'],
      ],
    ],
    bad: [
      ['redis://a:1,', REDIS],
      ['a:1,b:2', REDIS],
      ['redis://a:1,rediss://b:2', 'expected the same scheme, user and password in all of them'],
      ['redis://:x@a,redis://:y@b', 'expected the same scheme, user and password in all of them'],
      ['redis://a/1', 'expected no database: a sentinel has none'],
    ],
    effect: 'sentinel.test.ts',
  },
  journal: {
    good: [
      ['sqlite:./a.db', 'sqlite:./a.db'],
      ['postgres://u:p@host/db', 'postgres://u:p@host/db'],
      ['mysql://u:p@host/db', 'mysql://u:p@host/db'],
      ['off', 'off'],
    ],
    bad: ['on', 'oracle://host/db', 'sqlite:', 'postgres://'].map((text) => [
      text,
      'expected sqlite:<path>, postgres://…, mysql://… or off',
    ]),
    effect: 'service-journal.test.ts',
  },
  journalMode: {
    good: [
      ['async', 'async'],
      ['off', 'off'],
    ],
    bad: [['fast', 'expected sync or async or off']],
    shown: 'sync',
    effect: 'settings-effects.test.ts',
  },
  journalRetention: {
    good: [
      ['90d', 7_776_000_000],
      ['1m', 60_000],
    ],
    bad: outsideOf(60_000, 315_360_000_000, 'ms', '3651d'),
    shown: '7d',
    effect: 'settings-effects.test.ts',
  },
  dataDir: {
    good: [['/var/lib/redelayed', '/var/lib/redelayed']],
    bad: [['', 'expected a text, got an empty one']],
    shown: './redelayed-data',
    effect: 'service.test.ts',
  },
  apiKeys: {
    good: [['/etc/redelayed/api-keys', '/etc/redelayed/api-keys']],
    bad: [['', 'expected a text, got an empty one']],
    effect: 'support/service.ts',
  },
  ids: {
    good: [['snowflake', 'snowflake']],
    bad: [['uuid4', 'expected uuid7 or snowflake']],
    shown: 'uuid7',
    effect: 'snowflake.test.ts',
  },
  createTopics: {
    good: [['no', false]],
    bad: [['perhaps', SWITCH]],
    shown: 'true',
    effect: 'http-api.test.ts',
  },
  maxTopics: {
    good: [['7', 7]],
    bad: outside(1, 1_000_000),
    shown: '10000',
    effect: 'settings-effects.test.ts',
  },
  maxMessageBytes: {
    good: [
      ['64kb', 65_536],
      ['16mb', 16 * MiB],
    ],
    bad: outsideOf(1, 16 * MiB, 'bytes', '17mb', '1tb'),
    shown: '1mb',
    effect: 'hostile-requests.test.ts',
  },
  maxBatchBytes: {
    good: [['256mb', 256 * MiB]],
    bad: outsideOf(1, 256 * MiB, 'bytes'),
    shown: '16mb',
    effect: 'hostile-requests.test.ts',
  },
  maxBatch: {
    good: [['10000', 10_000]],
    bad: outside(1, 10_000),
    shown: '1000',
    effect: 'settings-effects.test.ts',
  },
  maxBodiesBytes: {
    good: [['1gb', 1_024 * MiB]],
    bad: outsideOf(4 * MiB, 65_536 * MiB, 'bytes'),
    shown: '256mb',
    effect: 'bounded-memory.test.ts',
  },
  maxAnswersBytes: {
    good: [['16mb', 16 * MiB]],
    bad: outsideOf(16 * MiB, 65_536 * MiB, 'bytes'),
    shown: '256mb',
    effect: 'bounded-memory.test.ts',
  },
  maxFanOut: {
    good: [['1000', 1_000]],
    bad: outside(1, 1_000),
    shown: '100',
    effect: 'fan-out.test.ts',
  },
  idempotencyPeriod: {
    good: [
      ['30d', 2_592_000_000],
      ['1s', 1_000],
    ],
    bad: outsideOf(1_000, 2_592_000_000, 'ms', '31d'),
    shown: '24h',
    effect: 'topic-ends.test.ts',
  },
  maxIdempotencyKeys: {
    good: [['1', 1]],
    bad: outside(1, 1_000_000_000),
    shown: '1000000',
    effect: 'topic-ends.test.ts',
  },
  maxConnections: {
    good: [['1', 1]],
    bad: outside(1, 1_000_000),
    shown: '10000',
    effect: 'connections.test.ts',
  },
  maxWait: {
    good: [
      ['0', 0],
      ['10m', 600_000],
    ],
    bad: outsideOf(0, 600_000, 'ms', '1.5ms', '11m'),
    shown: '60s',
    effect: 'settings-effects.test.ts',
  },
  maxEventStreams: {
    good: [['0', 0]],
    bad: outside(0, 10_000),
    shown: '100',
    effect: 'settings-effects.test.ts',
  },
  webhookPorts: {
    good: [['443, 8443', [443, 8_443]]],
    bad: ['', '0', '65536', '80,', '80-90'].map((text) => [text, 'expected 1 to 65535']),
    shown: '80,443',
    effect: 'settings-effects.test.ts',
  },
  webhookNetworks: {
    good: [['10.1.0.0/16, fd00::/8, 10.2.3.4', ['10.1.0.0/16', 'fd00::/8', '10.2.3.4']]],
    bad: ['', '10.1.0.0/33', 'fd00::/129', 'example.com', '10.1.0.0/', '10.1/16', 'fe80::1%eth0', '10.1.0.0/16,'].map(
      (text) => [text, 'expected networks such as 10.1.0.0/16 or fd00::/8'],
    ),
    effect: 'settings-effects.test.ts',
  },
  webhookHttp: {
    good: [['false', false]],
    bad: [['never', SWITCH]],
    shown: 'true',
    effect: 'settings-effects.test.ts',
  },
  webhookProxy: {
    good: [
      ['http://ada:s%40cret@proxy:3128', 'http://ada:s%40cret@proxy:3128'],
      ['https://proxy', 'https://proxy'],
    ],
    bad: [
      ['proxy:3128', 'expected http://[user:password@]host[:port] or https://…'],
      ['socks5://proxy', 'expected http://[user:password@]host[:port] or https://…'],
      ['http://proxy/path', 'expected nothing behind the host and the port'],
      ['http://ada:100%@proxy', 'expected each % of a user or password as %25'],
    ],
    effect: 'webhook-proxy.test.ts',
  },
  maxEndpoints: {
    good: [['0', 0]],
    bad: outside(0, 100_000),
    shown: '1000',
    effect: 'settings-effects.test.ts',
  },
  legacyRoutes: {
    good: [['yes', true]],
    bad: [['old', SWITCH]],
    shown: 'false',
    effect: 'legacy-routes.test.ts',
  },
  ui: {
    good: [['off', false]],
    bad: [['none', SWITCH]],
    shown: 'true',
    effect: 'page.test.ts',
  },
  readOnly: {
    good: [['on', true]],
    bad: [['only', SWITCH]],
    shown: 'false',
    effect: 'read-only.test.ts',
  },
  rateLimit: {
    good: [['0', 0]],
    bad: outside(0, 1_000_000),
    shown: '0',
    effect: 'http-api.test.ts',
  },
  requestTimeout: {
    good: [['1000', 1_000]],
    bad: outsideOf(1_000, 600_000, 'ms'),
    shown: '30s',
    effect: 'hostile-requests.test.ts',
  },
  shutdownDelay: {
    good: [['10s', 10_000]],
    bad: outsideOf(0, 600_000, 'ms'),
    shown: '0',
    effect: 'service.test.ts',
  },
  shutdownTimeout: {
    good: [['0', 0]],
    bad: outsideOf(0, 600_000, 'ms'),
    shown: '10s',
    effect: 'settings-effects.test.ts',
  },
  logLevel: {
    good: [['debug', 'debug']],
    bad: [['loud', 'expected fatal or error or warn or info or debug or silent']],
    shown: 'info',
    effect: 'settings-effects.test.ts',
  },
}

/** Further settings that some need to be valid. */
const BESIDE: Partial<Record<SettingName, Readonly<Record<string, string>>>> = {
  readOnly: { REDIS_URL: 'redis://a' },
  redisSentinels: { REDELAYED_REDIS: 'redis://orders' },
}

describe('each setting of the service', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-settings-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  function file(content: object): string {
    const path = join(dir, 'settings.yaml')
    writeFileSync(path, stringify(content))
    return path
  }

  const problemsOf = (sources: Sources): readonly string[] => {
    try {
      loadSettings(sources)
      return []
    } catch (thrown) {
      expect(thrown).to.be.instanceOf(ConfigError)
      return (thrown as ConfigError).problems
    }
  }

  it('has a row in the table of this test', () => {
    expect(Object.keys(ROWS)).to.have.members(SETTING_NAMES)
    for (const name of SETTING_NAMES) {
      expect(ROWS[name].good, name).to.not.have.length(0)
      expect(ROWS[name].bad, name).to.not.have.length(0)
    }
  })

  it('is taken from a flag, a variable and a file alike', () => {
    for (const name of SETTING_NAMES) {
      for (const [text, value] of ROWS[name].good) {
        const env = BESIDE[name] ?? {}
        const config = file({ [flagOf(name)]: text })
        const sources: Sources[] = [
          { args: [`--${flagOf(name)}`, text], env },
          { args: [`--${flagOf(name)}=${text}`], env },
          { env: { ...env, [variableOf(name)]: text } },
          { args: ['--config', config], env },
          { env: { ...env, REDELAYED_CONFIG: config } },
        ]
        for (const each of sources) expect(loadSettings(each)[name], `${name} ${text}`).to.deep.equal(value)
      }
    }
  })

  it('is refused from each of them if it is invalid, without repeating the value', () => {
    for (const name of SETTING_NAMES) {
      for (const [text, problem] of ROWS[name].bad) {
        const [flag, variable, config] = [`--${flagOf(name)}`, variableOf(name), file({ [flagOf(name)]: text })]
        const cases: [Sources, string][] = [
          [{ args: [`${flag}=${text}`] }, flag],
          [{ args: ['--config', config] }, `${config}: ${flagOf(name)}`],
          // an empty variable counts as not set
          ...(text === '' ? [] : ([[{ env: { [variable]: text } }, variable]] as [Sources, string][])),
        ]
        for (const [sources, where] of cases) {
          const [first = ''] = problemsOf(sources)
          expect(first, `${name} ${text}`).to.equal(`${where}: ${problem}`)
        }
      }
    }
  })

  it('is among the mistakes that are reported at once when all are invalid', () => {
    const wrong = SETTING_NAMES.map((name) => [name, ROWS[name].bad[0]?.[0] ?? ''] as const)
    const flags = problemsOf({ args: wrong.map(([name, text]) => `--${flagOf(name)}=${text}`) })
    expect(flags.filter((line) => line.startsWith('--'))).to.have.length(SETTING_NAMES.length)
    const config = file(Object.fromEntries(wrong.map(([name, text]) => [flagOf(name), text])))
    const lines = problemsOf({ args: ['--config', config] })
    expect(lines.filter((line) => line.startsWith(config))).to.have.length(SETTING_NAMES.length)
  })

  it('can come from a file only if it can be secret, and is then never shown', () => {
    for (const name of SETTING_NAMES) {
      const [text, value] = ROWS[name].good[0] as readonly [string, unknown]
      const path = join(dir, 'secret')
      writeFileSync(path, `${text}\n`)
      const env = BESIDE[name] ?? {}
      const given: Sources[] = [
        { args: [`--${flagOf(name)}-file`, path], env },
        { env: { ...env, [`${variableOf(name)}_FILE`]: path } },
        { args: ['--config', file({ [`${flagOf(name)}-file`]: path })], env },
      ]
      if (SETTINGS[name].isSecret) {
        for (const each of given) expect(loadSettings(each)[name], name).to.deep.equal(value)
        const twice = file({ [flagOf(name)]: text, [`${flagOf(name)}-file`]: path })
        expect(problemsOf({ args: ['--config', twice], env }), name).to.deep.equal([
          `${twice}: ${flagOf(name)}-file: given twice`,
        ])
      } else {
        expect(problemsOf(given[0] ?? {})[0], name).to.match(/there is no such setting/)
        expect(problemsOf(given[2] ?? {})[0], name).to.match(/there is no such setting/)
      }
    }
    const secret = SETTING_NAMES.filter((name) => SETTINGS[name].isSecret)
    expect(secret).to.have.members(['redis', 'redisCluster', 'redisSentinels', 'journal', 'webhookProxy'])
  })

  it('is in the help and in the table of docs/service.md, with its default', () => {
    const help = helpLines()
    const page = readFileSync(fileURLToPath(new URL('../../../docs/service.md', import.meta.url)), 'utf8')
    const rows = Array.from(page.matchAll(/^\| `--([a-z-]+)` \| `(REDELAYED_\w+)` \| (.*?) \|/gm), (row) =>
      row.slice(1),
    )
    expect(rows.map(([flag]) => flag)).to.have.members(SETTING_NAMES.map(flagOf))
    for (const name of SETTING_NAMES) {
      expect(help.filter((line) => line.startsWith(`  --${flagOf(name)} `))).to.have.length(1)
      const row = rows.find(([flag]) => flag === flagOf(name))
      expect(row?.[1], name).to.equal(variableOf(name))
      const { initial } = SETTINGS[name]
      const { shown } = ROWS[name]
      if (shown !== undefined)
        expect([row?.[2], SETTINGS[name].read(shown)], name).to.deep.equal([`\`${shown}\``, initial])
      else expect([undefined, '[]'], name).to.include(Array.isArray(initial) ? JSON.stringify(initial) : initial)
    }
  })

  it('is given by a test of its effect', () => {
    const here = fileURLToPath(new URL('.', import.meta.url))
    for (const name of SETTING_NAMES) {
      const text = readFileSync(join(here, ROWS[name].effect), 'utf8')
      expect(new RegExp(`\\b${name}: |--${flagOf(name)}\\b`).test(text), `${name}: ${ROWS[name].effect}`).to.equal(true)
    }
  })
})

describe('settings together', () => {
  const problemsOf = (sources: Sources): readonly string[] => {
    try {
      loadSettings(sources)
      return []
    } catch (thrown) {
      return (thrown as ConfigError).problems
    }
  }

  it('have no journal mode without a journal', () => {
    const env = { REDIS_URL: 'redis://a' }
    expect(problemsOf({ args: ['--journal-mode=async'], env })).to.deep.equal([
      '--journal-mode: there is no journal: give journal, or off',
    ])
    expect(problemsOf({ env: { ...env, REDELAYED_JOURNAL_MODE: 'sync' } })).to.have.length(1)
    expect(problemsOf({ args: ['--journal-mode=off'], env })).to.deep.equal([])
    expect(problemsOf({ args: ['--journal-mode=sync', '--journal=off'], env })).to.deep.equal([])
    expect(problemsOf({ args: ['--journal-mode=async', '--journal=sqlite:a'], env })).to.deep.equal([])
    expect(problemsOf({ args: ['--journal-mode=async'] }), 'a Redis of its own has one').to.deep.equal([])
  })

  it('need the file of the API keys to start the service', () => {
    const args = ['--api-keys', join(tmpdir(), 'redelayed-none', 'api-keys')]
    expect(problemsOf({ args })).to.deep.equal([])
    expect(problemsOf({ args, needsFiles: true })).to.have.length(1)
    expect(problemsOf({ args, needsFiles: true })[0]).to.match(/^--api-keys: .*api-keys cannot be read: ENOENT/)
    expect(problemsOf({ args: ['--api-keys', fileURLToPath(import.meta.url)], needsFiles: true })).to.deep.equal([])
  })

  it('treat empty variables as not set, also those of files, and an empty flag as a mistake', () => {
    const env = { REDELAYED_REDIS: '', REDELAYED_REDIS_FILE: '', REDELAYED_PORT: '', REDELAYED_CONFIG: '' }
    expect(problemsOf({ env })).to.deep.equal([])
    const path = fileURLToPath(import.meta.url)
    expect(problemsOf({ env: { REDELAYED_JOURNAL: '', REDELAYED_JOURNAL_FILE: path } })).to.have.length(1)
    expect(problemsOf({ args: ['--config='] })).to.deep.equal(['--config: expected a value'])
  })
})
