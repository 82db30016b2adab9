// Holds docs/redisson-parity.json, the list of the methods of Redisson's queue interfaces, against the library and its tests,
// and writes docs/redisson-parity.md from it. A row fails when it has neither a Node call nor a reason; when the class has
// no such method; or when the test file that it names does not call it.
//
//   npm run parity               writes the page
//   npm run parity -- --check    writes nothing; exits 1 when something is wrong or the page is stale
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'

interface Row {
  java: string
  node?: string
  test?: string
  note?: string
  reason?: string
}

interface Section {
  interface: string
  class: string
  module: string
  extends?: string
  rows: Row[]
}

const PAGE = 'docs/redisson-parity.md'
const LIST = 'docs/redisson-parity.json'

const sections = JSON.parse(readFileSync(join(root, LIST), 'utf8')) as Section[]
const problems: string[] = []

for (const section of sections) {
  const prototype = await prototypeOf(section)
  const seen = new Set()
  for (const row of section.rows) {
    const where = `${section.interface}.${row.java}`
    if (seen.has(row.java)) problems.push(`${where}: listed twice`)
    seen.add(row.java)
    if (row.node === undefined) {
      if (!row.reason) problems.push(`${where}: neither a Node call nor a reason why there is none`)
      continue
    }
    if (row.reason) problems.push(`${where}: has a Node call and a reason why there is none`)
    checkCall(where, prototype, row)
  }
}

const page = render(sections)
const target = join(root, PAGE)
const stale = !existsSync(target) || readFileSync(target, 'utf8') !== page
if (process.argv.includes('--check')) {
  if (stale) problems.push(`${PAGE}: stale; run \`npm run parity\``)
} else if (problems.length === 0 && stale) writeFileSync(target, page)

for (const problem of problems) console.error(problem)
const rows = sections.flatMap((section) => section.rows)
const ported = rows.filter((row) => row.node !== undefined).length
console.log(
  `${rows.length} Java methods: ${ported} ported, ${rows.length - ported} with a reason, ${problems.length} problems`,
)
process.exitCode = problems.length === 0 ? 0 : 1

/** The prototype that instances have, from the source: a build may be older. */
async function prototypeOf(section: Section): Promise<object> {
  const { [section.class]: found } = (await import(`../src/${section.module}`)) as Record<string, unknown>
  if (typeof found !== 'function') throw new Error(`${section.module} has no class ${section.class}`)
  return found.prototype as object
}

/** The first word of the Node call must be a method, and the test must call it. */
function checkCall(where: string, prototype: object, row: Row) {
  const method = /^\w+/.exec(row.node ?? '')?.[0] ?? ''
  if (!(method in prototype)) problems.push(`${where}: there is no method ${method} here`)
  if (row.test === undefined) {
    problems.push(`${where}: no test is named`)
    return
  }
  const file = join(root, 'test', row.test)
  if (!existsSync(file)) problems.push(`${where}: no such test file: ${row.test}`)
  // called by name, or named in a list of methods to call
  else if (!new RegExp(`\\.${method}\\(|'${method}'`).test(withoutComments(readFileSync(file, 'utf8')))) {
    problems.push(`${where}: ${row.test} does not call ${method}`)
  }
}

function withoutComments(code: string) {
  return code.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}

function render(all: Section[]) {
  const lines = [
    '# Parity with Redisson',
    '',
    '<!-- Written by scripts/parity.ts from redisson-parity.json. Do not edit: run `npm run parity`. -->',
    '',
    `Every public method of the five interfaces of Redisson 4.7.1, and the method of this package. The Async, Reactive and Rx variants are
omitted: every call here returns a promise. [differences-from-redisson.md](differences-from-redisson.md) lists where the behaviour differs on purpose.
The last table has the operations of Redisson PRO's reliable queue by their names in its documentation; their arguments have this package's names.`,
    '',
  ]
  for (const section of all) {
    const more = section.extends === undefined ? '' : `, and everything of ${section.extends}`
    lines.push(`## ${section.interface}`, '', `\`${section.class}\`${more}.`, '')
    lines.push('| Java | here | test | note |', '|---|---|---|---|')
    for (const { java, node, test, note = '', reason } of section.rows) {
      const call = node === undefined ? 'not ported' : code(node)
      const link = test === undefined ? '' : code(`test/${test}`) // no link: tests are not in the package
      lines.push(`| ${code(java)} | ${call} | ${link} | ${reason ?? note} |`)
    }
    lines.push('')
  }
  return `${lines.join('\n').trimEnd()}\n`
}

function code(text: string) {
  return `\`${text.replaceAll('|', '\\|')}\``
}
