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
    'src/codec/msgpack.ts': "import 'msgpackr'",
    'src/timing/timer.ts': "import '../errors.js'",
    'src/lua/run.ts': "import '../keys.js'",
    'src/connection/link.ts': "import 'ioredis'; import '../lua/run.js'",
    'src/transfer/transfer-task.ts': "import '../timing/timer.js'",
    'src/queues/delayed.ts': "import '../transfer/transfer-task.js'",
    'src/client.ts': "import './queues/delayed.js'; import './codec/msgpack.js'; import './connection/link.js'",
    'src/index.ts': "import './client.js'",
    'src/service/main.ts': "import '../index.js'; import 'cac'",
    'src/service/doctor/look.ts':
      "import '../../keys.js'; import '../../lua/run.js'; import '../../connection/link.js'",
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
      { 'src/lua/run.ts': "import '../connection/link.js'" },
      'layer-lua: src/lua/run.ts -> src/connection/link.ts',
    ],
    [
      'a type imported against the order',
      { 'src/errors.ts': "import type { K } from './keys.js'; export type T = K", 'src/keys.ts': 'export type K = 1' },
      'layer-base: src/errors.ts -> src/keys.ts',
    ],
    [
      'the library using the service',
      { 'src/index.ts': "import './service/other.js'", 'src/service/other.ts': 'export {}' },
      'layer-index: src/index.ts -> src/service/other.ts',
    ],
    [
      'the service using the inside of the library',
      { 'src/service/main.ts': "import '../keys.js'" },
      'service-uses-the-public-api: src/service/main.ts -> src/keys.ts',
    ],
    [
      'the doctor using what makes timers',
      { 'src/service/doctor/look.ts': "import '../../queues/delayed.js'" },
      'doctor-looks-below-the-queues: src/service/doctor/look.ts -> src/queues/delayed.ts',
    ],
    [
      'ioredis outside connection',
      { 'src/queues/delayed.ts': "import 'ioredis'" },
      'ioredis-only-in-one-place: src/queues/delayed.ts -> node_modules/ioredis/index.js',
    ],
    [
      'msgpackr outside its codec',
      { 'src/codec/other.ts': "import 'msgpackr'" },
      'msgpackr-only-in-one-place: src/codec/other.ts -> node_modules/msgpackr/index.js',
    ],
    [
      'cac in the library',
      { 'src/client.ts': "import 'cac'" },
      'cac-only-in-one-place: src/client.ts -> node_modules/cac/index.js',
    ],
    [
      'a timer that knows key names',
      { 'src/timing/timer.ts': "import '../keys.js'" },
      'pure-timing-and-transfer-task: src/timing/timer.ts -> src/keys.ts',
    ],
    [
      'a transfer task that knows Lua',
      { 'src/transfer/transfer-task.ts': "import '../lua/run.js'" },
      'pure-timing-and-transfer-task: src/transfer/transfer-task.ts -> src/lua/run.ts',
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
