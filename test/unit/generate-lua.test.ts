import { expect } from 'chai'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { generate, parseScript } from '../../scripts/generate-lua.js'

const good = `-- Moves one entry, and keeps the others.
--
-- KEYS[1] timeouts  zset  packed entry -> due time
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] channel  text     wake-up channel
-- ARGV[2] delayMs  integer  milliseconds
-- ARGV[3..] values bytes*   any number more
--
-- returns integer  how many moved,
--         or nil when there was nothing
redis.call('zadd', KEYS.timeouts, ARGV.delayMs, 'KEYS.other in a string') -- ARGV.other in a comment
for i = 3, #ARGV do redis.call('rpush', KEYS.order, ARGV[i]) end
redis.call('publish', ARGV.channel, "\\0\\\\ \`\${x}")
return 1
`

/** What Redis gets. */
const numbered = good
  .replace("'zadd', KEYS.timeouts, ARGV.delayMs", "'zadd', KEYS[1], ARGV[2]")
  .replace("'rpush', KEYS.order", "'rpush', KEYS[2]")
  .replace("'publish', ARGV.channel", "'publish', ARGV[1]")

const problemsOf = (text: string, file = 'src/store/move-one.lua') => parseScript(file, text).problems

describe('generate-lua', () => {
  let dir: string

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-lua-'))
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  it('turns a header into names, types and the source with numbers', async () => {
    writeFileSync(join(dir, 'move-one.lua'), good)
    writeFileSync(join(dir, 'another.lua'), '-- Says when it is.\n--\n-- returns text\nreturn redis.call("time")[1]\n')

    expect(generate({ dir })).to.deep.equal({ problems: [], count: 2, changed: true })

    const generated = (await import(pathToFileURL(join(dir, 'generated.ts')).href)) as Record<string, unknown>
    expect(Object.keys(generated)).to.deep.equal(['another', 'moveOne'])
    expect(generated.moveOne).to.deep.equal({
      name: 'move-one',
      sha1: createHash('sha1').update(numbered).digest('hex'),
      keys: ['timeouts', 'order'],
      args: { channel: 'text', delayMs: 'integer', values: 'bytes*' },
      source: numbered,
    })
    expect(Object.keys((generated.moveOne as { args: object }).args)).to.deep.equal(['channel', 'delayMs', 'values'])
  })

  describe('shared code', () => {
    const asking = (name: string) => `-- Asks.\n--\n-- returns integer\n-- include ${name}\nreturn one()\n`
    const shared = (text: string) => {
      mkdirSync(join(dir, 'shared'))
      writeFileSync(join(dir, 'shared/one.lua'), text)
    }

    it('is put where the script asks for it, and counts for the SHA-1', async () => {
      shared('local function one() return 1 end\n')
      writeFileSync(join(dir, 'ask.lua'), asking('shared/one.lua'))
      expect(generate({ dir }).problems).to.deep.equal([])
      const { ask } = (await import(pathToFileURL(join(dir, 'generated.ts')).href)) as { ask: Record<string, string> }
      const source = '-- Asks.\n--\n-- returns integer\nlocal function one() return 1 end\nreturn one()\n'
      expect(ask).to.include({ source, sha1: createHash('sha1').update(source).digest('hex') })
    })

    for (const [what, name, text, problem] of [
      ['is missing', 'shared/two.lua', '', 'no such file'],
      ['is elsewhere', '../one.lua', '', 'no such file'],
      ['reads keys of its own', 'shared/one.lua', 'local function one() return KEYS[1] end', 'must not use KEYS'],
      ['includes more', 'shared/one.lua', '-- include shared/one.lua', 'includes nothing'],
    ] as const) {
      it(`is refused when it ${what}`, () => {
        shared(text)
        writeFileSync(join(dir, 'ask.lua'), asking(name))
        expect(generate({ dir }).problems.join('\n')).to.include(problem)
      })
    }
  })

  it('finds a stale module, and leaves it as it is', () => {
    const target = join(dir, 'generated.ts')
    writeFileSync(join(dir, 'move-one.lua'), good)
    generate({ dir })
    expect(generate({ dir, check: true }).problems).to.deep.equal([])
    const before = readFileSync(target, 'utf8')

    writeFileSync(join(dir, 'move-one.lua'), good.replace('return 1', 'return 2'))

    expect(generate({ dir, check: true }).problems).to.have.lengthOf(1)
    expect(generate({ dir, check: true }).problems[0]).to.match(/generated\.ts: stale; run `npm run generate`/)
    expect(readFileSync(target, 'utf8')).to.equal(before)
  })

  it('writes nothing while a header is wrong', () => {
    writeFileSync(join(dir, 'move-one.lua'), good.replace('zset', 'heap'))
    expect(generate({ dir }).problems).to.have.lengthOf(1)
    expect(() => readFileSync(join(dir, 'generated.ts'))).to.throw('ENOENT')
  })

  it('refuses a folder without scripts', () => {
    expect(generate({ dir, check: true }).problems[0]).to.match(/no \.lua files found/)
  })

  it('accepts the fixture that the cases below break', () => {
    expect(problemsOf(good)).to.deep.equal([])
  })

  const cases: [what: string, change: (text: string) => string, problem: string][] = [
    [
      'a number out of order',
      (t) => t.replace('KEYS[2] order', 'KEYS[3] order').replace("'rpush', KEYS.order", "'rpush', KEYS.timeouts"),
      ':4: KEYS[3] is out of order: KEYS[2] comes next',
    ],
    [
      'a key used but undeclared',
      (t) => t.replace("'rpush', KEYS.order", "'rpush', KEYS.order, KEYS.orders"),
      ':13: KEYS.orders is used, but the header does not declare it',
    ],
    [
      'a key of a number that is undeclared',
      (t) => t.replace("'rpush', KEYS.order", "'rpush', KEYS.order, KEYS[3]"),
      ':13: KEYS[3] is used, but the header does not declare it',
    ],
    [
      'a key read by its number',
      (t) => t.replace("'rpush', KEYS.order", "'rpush', KEYS[2]"),
      ':13: KEYS[2] must be read by its name, KEYS.order',
    ],
    [
      'an argument read by its number',
      (t) => t.replace('ARGV.delayMs', 'ARGV[2]'),
      ':12: ARGV[2] must be read by its name, ARGV.delayMs',
    ],
    [
      'a tail read by its name',
      (t) => t.replace('ARGV[i]', 'ARGV.values'),
      ':13: ARGV.values is used, but the header does not declare it',
    ],
    [
      'an argument used but undeclared',
      (t) =>
        t
          .replace(/.*ARGV\[3\.\.\].*\n/, '')
          .replace('#ARGV', 'ARGV.values')
          .replace('ARGV[i]', 'i'),
      ':12: ARGV.values is used, but the header does not declare it',
    ],
    [
      'a key declared but unused',
      (t) => t.replace("'rpush', KEYS.order", "'rpush', KEYS.timeouts"),
      ':4: KEYS[2] order is declared, but never used',
    ],
    [
      'an argument declared but unused',
      (t) => t.replace("ARGV.delayMs, 'KEYS", "5, 'KEYS"),
      ':7: ARGV[2] delayMs is declared, but never used',
    ],
    [
      'a tail declared but unused',
      (t) => t.replace(/^for .*\n/m, "redis.call('del', KEYS.order)\n"),
      ':8: ARGV[3..] values is declared, but never used',
    ],
    [
      'a variable index without a tail',
      (t) => t.replace(/.*ARGV\[3\.\.\].*\n/, ''),
      ':12: ARGV is read with a variable index, but the header declares no variable tail (ARGV[n..])',
    ],
    [
      'an unknown key type',
      (t) => t.replace('zset', 'heap'),
      ':3: unknown type "heap" of KEYS[1]; expected one of string, list, zset, hash, set, stream, any',
    ],
    [
      'an unknown argument type',
      (t) => t.replace('text  ', 'string'),
      ':6: unknown type "string" of ARGV[1]; expected one of text, integer, number, bytes, flag',
    ],
    [
      'a tail with the type of one value',
      (t) => t.replace('bytes*', 'bytes'),
      ':8: unknown type "bytes" of ARGV[3]; expected one of bytes*, text*',
    ],
    [
      'a tail that is not the last',
      (t) =>
        t
          .replace('--\n-- returns', '-- ARGV[4] late  flag  too late\n--\n-- returns')
          .replace('return 1', 'return ARGV[4]'),
      ':9: ARGV[4] stands after the variable tail, which must be the last',
    ],
    ['a tail of keys', (t) => t.replace('KEYS[2] order', 'KEYS[2..] order'), ':4: only ARGV can have a variable tail'],
    [
      'a key read with a variable',
      (t) => t.replace("'rpush', KEYS.order", "'rpush', KEYS[i], KEYS.order"),
      ':13: KEYS must be read by names, so that the header says what each one is',
    ],
    [
      'a missing returns line',
      (t) => t.replace('-- returns integer', '-- gives integer'),
      ':11: the header has no "returns" line',
    ],
    ['a name used twice', (t) => t.replace('delayMs ', 'channel '), ':7: the name "channel" is used twice'],
    [
      'a name that is not camelCase',
      (t) => t.replace('delayMs ', 'delay_ms'),
      ':7: the name "delay_ms" must be camelCase',
    ],
    [
      'a line without a type',
      (t) => t.replace(/KEYS\[2\] order .*/, 'KEYS[2] order'),
      ':4: expected "KEYS[n] name type meaning" or "ARGV[n] name type meaning", got "KEYS[2] order"',
    ],
    ['a missing purpose', (t) => t.slice(t.indexOf('\n') + 1), ':1: the header must open with what the script is for'],
    [
      'a command that wipes the server',
      (t) => t.replace('return 1', "redis.call('FLUSH" + "ALL')"),
      ':15: a script never wipes a server that others may use',
    ],
    [
      'carriage returns',
      (t) => t.replace('return 1\n', 'return 1\r\n'),
      ':1: carriage returns would change the SHA-1: save the file with plain newlines',
    ],
  ]
  for (const [what, change, problem] of cases) {
    it(`refuses ${what}`, () => {
      const broken = change(good)
      expect(broken).to.not.equal(good)
      expect(problemsOf(broken)).to.include(`src/store/move-one.lua${problem}`)
    })
  }

  it('refuses a file name that is not kebab-case', () => {
    expect(problemsOf(good, 'src/store/moveOne.lua')).to.deep.equal([
      'src/store/moveOne.lua:1: the file name must be kebab-case, not "moveOne.lua"',
    ])
  })

  it('does not count a use in a multi-line string or comment', () => {
    const text = good.replace('return 1', '--[[ KEYS[7]\nKEYS.other ]]\nlocal s = [=[ ARGV.other ]=]\nreturn 1')
    expect(problemsOf(text)).to.deep.equal([])
  })
})
