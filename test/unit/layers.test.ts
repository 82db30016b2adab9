import { expect } from 'chai'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import extractOptions from 'dependency-cruiser/config-utl/extract-depcruise-options'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const config = join(import.meta.dirname, '../../.dependency-cruiser.cjs')

/** A small src that keeps all the rules; `changes` replaces files of it or adds some. */
async function violations(changes: Record<string, string> = {}): Promise<string[]> {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'redelayed-layers-')))
  const files: Record<string, string> = {
    'package.json': '{"type":"module","dependencies":{"ioredis":"6","msgpackr":"2","cac":"7"}}',
    'node_modules/ioredis/package.json': '{"name":"ioredis","main":"index.js"}',
    'node_modules/ioredis/index.js': '',
    'node_modules/msgpackr/package.json': '{"name":"msgpackr","main":"index.js"}',
    'node_modules/msgpackr/index.js': '',
    'node_modules/cac/package.json': '{"name":"cac","main":"index.js"}',
    'node_modules/cac/index.js': '',
    'src/errors.ts': 'export class E {}',
    'src/keys.ts': "import './errors.js'",
    'src/codecs/msgpack.ts': "import 'msgpackr'",
    'src/timing/timer.ts': "import '../errors.js'",
    'src/store/run.ts': "import '../keys.js'",
    'src/store/sender.ts': 'export interface Sender {}',
    'src/store/list-store.ts': "import './run.js'; export type End = 1",
    'src/redis/connections/reconnecting-connection.ts':
      "import 'ioredis'; import '../../store/sender.js'; import type { End } from '../../store/list-store.js'; export type E = End",
    'src/scheduler/due-scheduler.ts': "import '../timing/timer.js'",
    'src/queues/delayed.ts': "import '../scheduler/due-scheduler.js'",
    'src/client.ts':
      "import './queues/delayed.js'; import './codecs/msgpack.js'; import './redis/connections/reconnecting-connection.js'",
    'src/index.ts': "import './client.js'",
    'src/cli/main.ts': "import '../index.js'; import 'cac'",
    'src/doctor/look.ts':
      "import '../keys.js'; import '../store/list-store.js'; import '../redis/connections/reconnecting-connection.js'",
    ...changes,
  }
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, file)), { recursive: true })
      writeFileSync(join(dir, file), `${text}\n`)
    }
    const { ruleSet, ...options } = await extractOptions(config)
    const { output } = await cruise(['src'], { ...options, ...(ruleSet && { ruleSet }), validate: true, baseDir: dir })
    return (output as ICruiseResult).summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

describe('layer check', () => {
  it('passes a house in order', async () => {
    expect(await violations()).to.deep.equal([])
  })

  const cases: [what: string, change: Record<string, string>, found: string][] = [
    [
      'an import against the order',
      { 'src/store/run.ts': "import '../redis/connections/reconnecting-connection.js'" },
      'layer-store: src/store/run.ts -> src/redis/connections/reconnecting-connection.ts',
    ],
    [
      'a type imported against the order',
      { 'src/errors.ts': "import type { K } from './keys.js'; export type T = K", 'src/keys.ts': 'export type K = 1' },
      'layer-base: src/errors.ts -> src/keys.ts',
    ],
    [
      'key names using codecs',
      { 'src/keys.ts': "import './codecs/msgpack.js'" },
      'layer-keys: src/keys.ts -> src/codecs/msgpack.ts',
    ],
    [
      'the library using the command line',
      { 'src/index.ts': "import './cli/other.js'", 'src/cli/other.ts': 'export {}' },
      'layer-index: src/index.ts -> src/cli/other.ts',
    ],
    [
      'the command line using the inside of the library',
      { 'src/cli/main.ts': "import '../keys.js'" },
      'cli-uses-the-public-api: src/cli/main.ts -> src/keys.ts',
    ],
    [
      'the doctor using what makes timers',
      { 'src/doctor/look.ts': "import '../queues/delayed.js'" },
      'doctor-looks-below-the-queues: src/doctor/look.ts -> src/queues/delayed.ts',
    ],
    [
      'the library using what is for Java',
      { 'src/client.ts': "import './java/kryo.js'", 'src/java/kryo.ts': 'export {}' },
      'java-is-an-entry-of-its-own: src/client.ts -> src/java/kryo.ts',
    ],
    [
      'ioredis outside redis',
      { 'src/queues/delayed.ts': "import 'ioredis'" },
      'ioredis-only-in-one-place: src/queues/delayed.ts -> node_modules/ioredis/index.js',
    ],
    [
      'msgpackr outside its codec',
      { 'src/codecs/other.ts': "import 'msgpackr'" },
      'msgpackr-only-in-one-place: src/codecs/other.ts -> node_modules/msgpackr/index.js',
    ],
    [
      'cac in the library',
      { 'src/client.ts': "import 'cac'" },
      'cac-only-in-one-place: src/client.ts -> node_modules/cac/index.js',
    ],
    [
      'a timer that knows key names',
      { 'src/timing/timer.ts': "import '../keys.js'" },
      'pure-timing-and-due-scheduler: src/timing/timer.ts -> src/keys.ts',
    ],
    [
      'a due scheduler that knows Lua',
      { 'src/scheduler/due-scheduler.ts': "import '../store/run.js'" },
      'pure-timing-and-due-scheduler: src/scheduler/due-scheduler.ts -> src/store/run.ts',
    ],
    [
      'a script outside the store',
      { 'src/queues/delayed.ts': "import '../store/run.js'" },
      'only-the-store-knows-scripts: src/queues/delayed.ts -> src/store/run.ts',
    ],
    [
      'a connection that calls a store',
      { 'src/redis/pool.ts': "import '../store/list-store.js'" },
      'connections-know-no-store: src/redis/pool.ts -> src/store/list-store.ts',
    ],
    [
      'a cycle inside a layer',
      { 'src/queues/delayed.ts': "import './other.js'", 'src/queues/other.ts': "import './delayed.js'" },
      'no-circular: src/queues/delayed.ts -> src/queues/other.ts',
    ],
    [
      'a folder without a place in the order',
      { 'src/extra/thing.ts': "import '../errors.js'" },
      'no-unknown-layer: src/extra/thing.ts -> src/errors.ts',
    ],
    [
      'an import of what is not there',
      { 'src/client.ts': "import './gone.js'" },
      'no-unresolvable: src/client.ts -> ./gone.js',
    ],
  ]
  for (const [what, change, found] of cases) {
    it(`finds ${what}`, async () => {
      expect(await violations(change)).to.include(found)
    })
  }
})
