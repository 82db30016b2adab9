// Compiles the .lua files of each folder below into one committed module beside them, generated.ts.
//
// The header comment of each .lua file is its contract: what KEYS[n] and ARGV[n] are, and what comes back. This script
// reads it, holds it against the body, and turns it into names and types that `tsc` then checks at every call. It guards
// against the mistake Redis cannot see: two keys or arguments swapped, forgotten, or left over. The body says `KEYS.order` and
// `ARGV.limit`, by the names in its header, for which Redis gets the numbers; an editor that knows Lua takes these for fields that are not there. The rest of
// the text is kept verbatim, comments included. What several scripts need stands in a file of `shared/`, and the steps of a long one in a
// folder of its own; the line `-- include shared/x.lua` is replaced by the file.
//
//   npm run generate               writes them
//   npm run generate -- --check    writes nothing; exits 1 when one is stale or a header is wrong
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where the scripts of the library and of the service are, and the modules are written. */
export const LUA_FOLDERS = [
  'src/store/scripts',
  'src/server/topics/scripts',
  'src/server/delivery/scripts',
  'src/server/records/scripts',
  'src/server/console/scripts',
].map((folder) => fileURLToPath(new URL(`../${folder}`, import.meta.url)))

const KEY_TYPES = ['string', 'list', 'zset', 'hash', 'set', 'stream', 'any']
const ARG_TYPES = ['text', 'integer', 'number', 'bytes', 'flag']
const TAIL_TYPES = ['bytes*', 'text*']

interface Slot {
  name: string
  type: string
  line: number
  tail: boolean
}

interface Script {
  exportName: string
  name: string
  keys: string[]
  args: Record<string, string>
  source: string
}

/**
 * Reads one script. A problem is a line for people: `file:line: what is wrong`.
 * @param file the path to show in messages
 */
export function parseScript(file: string, text: string): { script: Script; problems: string[] } {
  const problems: string[] = []
  const fail = (line: number, what: string) => void problems.push(`${file}:${line}: ${what}`)

  const fileName = file.split(/[/\\]/).at(-1) ?? file
  const stem = fileName.replace(/\.lua$/, '')
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(stem)) fail(1, `the file name must be kebab-case, not "${fileName}"`)
  if (text.includes('\r')) fail(1, 'carriage returns would change the SHA-1: save the file with plain newlines')

  const lines = text.split('\n')
  lines.forEach((line, index) => {
    if (/\bflush(all|db)\b/i.test(line)) fail(index + 1, 'a script never wipes a server that others may use')
  })
  const bodyStart = lines.findIndex((line) => !line.startsWith('--'))
  const header = readHeader(lines.slice(0, bodyStart === -1 ? lines.length : bodyStart), fail)
  checkNames([...header.keys, ...header.args], fail)
  const body = bodyStart === -1 ? lines.length : bodyStart
  checkUse(lines, body, header, fail)

  const script = {
    exportName: stem.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    name: stem,
    keys: header.keys.map((key) => key.name),
    args: Object.fromEntries(header.args.map((arg) => [arg.name, arg.type])),
    source: withNumbers(text, lines.slice(0, body).join('\n').length, header),
  }
  return { script, problems }
}

function readHeader(lines: string[], fail: (line: number, what: string) => void) {
  const slots: { KEYS: Slot[]; ARGV: Slot[] } = { KEYS: [], ARGV: [] }
  let purpose = false
  let returns = false
  lines.forEach((text, index) => {
    const line = index + 1
    const content = text.replace(/^--\s*/, '')
    const declaration = /^(KEYS|ARGV)\[/.exec(content)
    if (declaration) readSlot(slots, content, line, fail)
    else if (/^returns\s+\S/.test(content)) returns = true
    else if (content !== '' && slots.KEYS.length === 0 && slots.ARGV.length === 0) purpose = true
  })
  if (!purpose) fail(1, 'the header must open with what the script is for')
  if (!returns) fail(Math.max(1, lines.length), 'the header has no "returns" line')
  return { keys: slots.KEYS, args: slots.ARGV }
}

/** One line such as `ARGV[2] delayMs  integer  milliseconds`. */
function readSlot(
  slots: { KEYS: Slot[]; ARGV: Slot[] },
  content: string,
  line: number,
  fail: (line: number, what: string) => void,
) {
  const match = /^(KEYS|ARGV)\[(\d+)(\.\.)?\]\s+(\S+)\s+(\S+)/.exec(content)
  if (!match) {
    fail(line, `expected "KEYS[n] name type meaning" or "ARGV[n] name type meaning", got "${content}"`)
    return
  }
  const [, kind, number, dots, name, type] = match as unknown as [
    string,
    'KEYS' | 'ARGV',
    string,
    string,
    string,
    string,
  ]
  const list = slots[kind]
  const tail = dots !== undefined

  if (Number(number) !== list.length + 1)
    fail(line, `${kind}[${number}] is out of order: ${kind}[${list.length + 1}] comes next`)
  if (list.at(-1)?.tail) fail(line, `${kind}[${number}] stands after the variable tail, which must be the last`)
  if (tail && kind === 'KEYS') fail(line, 'only ARGV can have a variable tail')
  const allowed = kind === 'KEYS' ? KEY_TYPES : tail ? TAIL_TYPES : ARG_TYPES
  if (!allowed.includes(type))
    fail(line, `unknown type "${type}" of ${kind}[${number}]; expected one of ${allowed.join(', ')}`)
  list.push({ name, type, line, tail })
}

function checkNames(slots: Slot[], fail: (line: number, what: string) => void) {
  const seen = new Set()
  for (const { name, line } of slots) {
    if (!/^[a-z][A-Za-z0-9]*$/.test(name)) fail(line, `the name "${name}" must be camelCase`)
    if (seen.has(name)) fail(line, `the name "${name}" is used twice`)
    seen.add(name)
  }
}

/** Holds the header against what the body reads. */
function checkUse(
  lines: string[],
  bodyStart: number,
  header: { keys: Slot[]; args: Slot[] },
  fail: (line: number, what: string) => void,
) {
  const body = blankOut(lines.slice(bodyStart).join('\n'))
  const used = { KEYS: new Set<number>(), ARGV: new Set<number>() }
  const variable = { KEYS: 0, ARGV: 0 }
  const tail = header.args.at(-1)?.tail ? header.args.length : Infinity

  body.split('\n').forEach((text, index) => {
    const line = bodyStart + index + 1
    for (const [whole, kind, name, digits] of text.matchAll(USE) as Iterable<
      [string, 'KEYS' | 'ARGV', string?, string?]
    >) {
      const slots = kind === 'KEYS' ? header.keys : header.args
      if (name !== undefined) {
        const number = numberOf(slots, name)
        if (number === 0) fail(line, `${whole} is used, but the header does not declare it`)
        else used[kind].add(number)
      } else if (digits === undefined) {
        variable[kind] ||= line
      } else if (kind === 'ARGV' && Number(digits) >= tail) {
        used[kind].add(Number(digits))
      } else {
        const { name: called } = slots[Number(digits) - 1] ?? {}
        if (called === undefined) fail(line, `${whole} is used, but the header does not declare it`)
        else fail(line, `${whole} must be read by its name, ${kind}.${called}`)
      }
    }
  })

  if (variable.KEYS) fail(variable.KEYS, 'KEYS must be read by names, so that the header says what each one is')
  if (variable.ARGV && tail === Infinity)
    fail(variable.ARGV, 'ARGV is read with a variable index, but the header declares no variable tail (ARGV[n..])')
  header.keys.forEach((key, index) => {
    if (!used.KEYS.has(index + 1)) fail(key.line, `KEYS[${index + 1}] ${key.name} is declared, but never used`)
  })
  header.args.forEach((arg, index) => {
    const reached = arg.tail ? variable.ARGV > 0 || [...used.ARGV].some((n) => n >= tail) : used.ARGV.has(index + 1)
    if (!reached) fail(arg.line, `ARGV[${index + 1}${arg.tail ? '..' : ''}] ${arg.name} is declared, but never used`)
  })
}

/** A use of a key or an argument: by its name, by its number, or in another way. */
const USE = /\b(KEYS|ARGV)\b(?:\.([A-Za-z0-9]+)|\s*\[\s*(\d+)\s*\])?/g

/** The number of a name, 0 if there is none; those of a variable tail have numbers only. */
function numberOf(slots: readonly Slot[], name: string): number {
  return 1 + slots.findIndex((slot) => slot.name === name && !slot.tail)
}

/** The text for Redis, which knows keys and arguments by their numbers. */
function withNumbers(text: string, bodyStart: number, header: { keys: Slot[]; args: Slot[] }): string {
  let numbered = text.slice(0, bodyStart)
  let at = bodyStart
  for (const use of blankOut(text.slice(bodyStart)).matchAll(USE)) {
    const [whole, kind, name] = use as unknown as [string, 'KEYS' | 'ARGV', string?]
    if (name === undefined) continue
    const start = bodyStart + use.index
    numbered += `${text.slice(at, start)}${kind}[${numberOf(kind === 'KEYS' ? header.keys : header.args, name)}]`
    at = start + whole.length
  }
  return numbered + text.slice(at)
}

/** The code with comments and strings blanked out, so that a mention in either is not taken for a use. */
function blankOut(code: string) {
  const commentOrString =
    /--\[(=*)\[[\s\S]*?\]\1\]|--[^\n]*|\[(=*)\[[\s\S]*?\]\2\]|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'/g
  return code.replace(commentOrString, (text) => text.replace(/[^\n]/g, ' '))
}

function emitScript({ exportName, name, keys, args, source }: Script) {
  const text = JSON.stringify
  const argLines = Object.entries(args).map(([arg, type]) => `${arg}: ${text(type)}`)
  return [
    `export const ${exportName} = {`,
    `  name: ${text(name)},`,
    `  sha1: ${text(createHash('sha1').update(source).digest('hex'))},`,
    `  keys: [${keys.map((key) => text(key)).join(', ')}],`,
    `  args: {${argLines.length ? ` ${argLines.join(', ')} ` : ''}},`,
    `  source: ${text(source)},`,
    '} as const',
    '',
  ].join('\n')
}

/**
 * Puts a file where a script asks for it. It gets what it needs as arguments of its functions, because the header that
 * says what KEYS and ARGV are is not its own.
 */
function withIncludes(dir: string, source: string, problems: string[]) {
  return source.replace(/^-- include (.*)$/gm, (line, name: string) => {
    const path = join(dir, name)
    const shown = relative(process.cwd(), path)
    if (!/^[a-z]+\/[a-z-]+\.lua$/.test(name) || !existsSync(path)) {
      problems.push(`${shown}: there is no such file to include`)
      return line
    }
    const text = readFileSync(path, 'utf8').trimEnd()
    if (/\b(KEYS|ARGV)\b/.test(blankOut(text))) problems.push(`${shown}: what is included must not use KEYS or ARGV`)
    if (/^-- include /m.test(text)) problems.push(`${shown}: what is included includes nothing`)
    return text
  })
}

/** Compiles every .lua file of a folder. */
export function compileFolder(dir: string): { code: string; problems: string[]; count: number } {
  const files = existsSync(dir)
    ? readdirSync(dir)
        .filter((file) => file.endsWith('.lua'))
        .sort()
    : []
  const parsed = files.map((file) => {
    const path = join(dir, file)
    const { script, problems } = parseScript(relative(process.cwd(), path), readFileSync(path, 'utf8'))
    return { script: { ...script, source: withIncludes(dir, script.source, problems) }, problems }
  })
  const problems = parsed.flatMap((one) => one.problems)
  if (files.length === 0) problems.push(`${relative(process.cwd(), dir)}: no .lua files found`)
  const code = [
    '// Generated from the .lua files in this folder by scripts/generate-lua.ts. Do not edit: run `npm run generate`.',
    '',
    ...parsed.map(({ script }) => emitScript(script)),
  ].join('\n')
  return { code, problems, count: files.length }
}

export function generate({ dir, check = false }: { dir: string; check?: boolean }): {
  problems: string[]
  count: number
  changed: boolean
} {
  const target = join(dir, 'generated.ts')
  const { code, problems, count } = compileFolder(dir)
  const changed = !existsSync(target) || readFileSync(target, 'utf8') !== code
  if (problems.length === 0 && changed) {
    if (check) problems.push(`${relative(process.cwd(), target)}: stale; run \`npm run generate\``)
    else writeFileSync(target, code)
  }
  return { problems, count, changed }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const dir of LUA_FOLDERS) {
    const { problems, count, changed } = generate({ dir, check: process.argv.includes('--check') })
    for (const problem of problems) console.error(problem)
    if (problems.length > 0) process.exitCode = 1
    else console.log(`${relative(process.cwd(), dir)}: ${count} scripts, ${changed ? 'written' : 'up to date'}`)
  }
}
