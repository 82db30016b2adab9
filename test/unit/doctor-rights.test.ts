import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError, UnsupportedServerError } from '../../src/index.js'
import * as generated from '../../src/store/scripts/generated.js'
import { allowedBy } from '../../src/doctor/inspect-acl.js'
import type { Server } from '../../src/doctor/access.js'
import { MEANINGS, meaningOf, type Code } from '../../src/doctor/finding.js'
import { inspectAcl } from '../../src/doctor/inspect-acl.js'
import { NEEDED } from '../../src/doctor/needed-commands.js'
import { Refusals } from '../../src/doctor/refusals.js'
import { exportsOf } from '../support/exports.js'

const root = join(import.meta.dirname, '../..')
const page = (name: string): string => readFileSync(join(root, 'docs', name), 'utf8')
const needed = NEEDED.flatMap(({ commands }) => commands.map(({ name }) => name))

function calledBy(source: string): string[] {
  return Array.from(source.matchAll(/redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?/g), ([, command = '', sub]) =>
    needed.includes(`${command}|${sub ?? ''}`) ? `${command}|${sub ?? ''}` : command,
  )
}

describe('what the doctor knows and the docs say', () => {
  it('are the same commands, in the same groups', () => {
    const section = /^## Commands\n(.*?)^## /ms.exec(page('wire-format.md'))?.[1] ?? ''
    const groups = Array.from(section.matchAll(/`([A-Z|\s]+)`/g), ([, names = '']) => names.split(/\s+/))
    expect(groups).to.deep.equal(NEEDED.map(({ commands }) => commands.map(({ name }) => name)))
  })

  it('are all the commands that scripts call', () => {
    const others = /^check-ordered$|^reliable-/ // LPOS of the doctor alone; reliable queues, which it does not know
    const called = Object.values(exportsOf(generated))
      .filter(({ name }) => !others.test(name))
      .flatMap(({ source }) => calledBy(source))
    expect([...new Set(called)].filter((command) => !needed.includes(command))).to.deep.equal([])
    expect(called).to.include.members(['ZADD', 'PUBSUB|NUMSUB', 'LSET'])
  })

  it('and what reliable queues call beside them is on their page', () => {
    const wordsIn = (list: RegExp, file: string): string[] => list.exec(page(file))?.[1]?.split(/\s+/) ?? []
    const listed = [
      ...wordsIn(/`(HGET HMGET[A-Z\s]+)`/, 'reliable-queue.md'),
      ...['XADD', 'XREAD'].flatMap((first) => wordsIn(new RegExp(`\`(${first} [A-Z\\s]+)\``), 'changes.md')),
    ]
    const called = Object.values(exportsOf(generated))
      .filter(({ name }) => name.startsWith('reliable-'))
      .flatMap(({ source }) => calledBy(source))
    const missing = new Set(called.filter((command) => !needed.includes(command) && !listed.includes(command)))
    expect([...missing]).to.deep.equal([])
    expect(called).to.include.members(['HSET', 'ZADD', 'PUBSUB|NUMSUB'])
  })

  it('are the same findings, each with what --fix does', () => {
    const rows = Array.from(page('doctor.md').matchAll(/^\| `([\w-]+)` \|(.*)\|$/gm), ([, code = '', rest = '']) => ({
      code,
      isFixed: !rest.trimEnd().endsWith('| –'),
    }))
    const known = (Object.keys(MEANINGS) as Code[]).map((code) => ({
      code,
      isFixed: meaningOf(code).fix !== undefined,
    }))
    expect(rows).to.deep.equal(known)
  })
})

describe('the rules of an ACL user', () => {
  const categories = { write: ['zadd', 'rpush'], slow: ['zadd', 'client|unblock'] }
  const cases: [rules: string, words: string[], allowed: boolean][] = [
    ['+@all', ['ZADD'], true],
    ['-@all', ['ZADD'], false],
    ['', ['ZADD'], false],
    ['-@all +zadd', ['ZADD', 'k'], true],
    ['-@all +zadd', ['RPUSH', 'k'], false],
    ['+@all -zadd', ['ZADD', 'k'], false],
    ['+@all -zadd +zadd', ['ZADD', 'k'], true],
    ['-@all +@write', ['RPUSH', 'k'], true],
    ['-@all +@write -rpush', ['RPUSH', 'k'], false],
    ['-@all +@slow', ['CLIENT', 'UNBLOCK'], true],
    ['-@all +@slow', ['CLIENT', 'ID'], false],
    ['-@all +client', ['CLIENT', 'ID'], true],
    ['-@all +client|id', ['CLIENT', 'ID'], true],
    ['-@all +client|id', ['CLIENT', 'UNBLOCK'], false],
    ['+@all -client|unblock', ['CLIENT', 'UNBLOCK', '1'], false],
  ]
  for (const [rules, words, allowed] of cases) {
    it(`"${rules}" ${allowed ? 'allow' : 'forbid'} ${words.join(' ')}`, () => {
      expect(allowedBy({ rules, categories }, words)).to.equal(allowed)
    })
  }

  /** A server as it was before the dry run, or without users; the real one is asked in the integration test. */
  const serverThat = (answers: Record<string, unknown>): Server => {
    const ask = async (...words: string[]): Promise<unknown> => {
      const answer = answers[words.slice(0, 2).join(' ')]
      if (answer instanceof Error) throw answer
      return answer
    }
    return { address: 'redis:6379', ask, askBytes: ask }
  }
  const noDryRun = { 'ACL DRYRUN': new CommandError('ERR', 'ERR Unknown subcommand or wrong number of arguments') }

  it('are read before Redis 7', async () => {
    const user = ['flags', ['on'], 'commands', '+@all -@slow -lmove', 'keys', ['*']]
    const server = serverThat({ ...noDryRun, 'ACL WHOAMI': 'app', 'ACL GETUSER': user, 'ACL CAT': ['zadd', 'cluster'] })
    const single = await inspectAcl(server, false, new Refusals())
    expect(single).to.deep.equal({
      user: 'app',
      missing: ['ZADD'],
      missingFor: [{ purpose: 'deques', commands: ['LMOVE'] }],
    })
    expect((await inspectAcl(server, true, new Refusals()))?.missing).to.deep.equal([
      'ZADD',
      'CLUSTER|SLOTS',
      'CLUSTER|INFO',
      'CLUSTER|KEYSLOT',
    ])
  })

  it('are not examined before Redis 6', async () => {
    const refusals = new Refusals()
    const server = serverThat({ 'ACL WHOAMI': new UnsupportedServerError('ERR unknown command `ACL`') })
    expect(await inspectAcl(server, false, refusals)).to.equal(undefined)
    expect(refusals.list).to.deep.equal([])
  })

  it('are noted as not examined where the user may not read them', async () => {
    for (const denied of ['ACL WHOAMI', 'ACL GETUSER']) {
      const refusals = new Refusals()
      const no = new CommandError('NOPERM', 'NOPERM no permissions')
      const server = serverThat({ ...noDryRun, 'ACL WHOAMI': 'app', [denied]: no })
      expect(await inspectAcl(server, false, refusals)).to.equal(undefined)
      expect(refusals.list.map(([, why]) => why)).to.deep.equal([no.message])
    }
  })
})
