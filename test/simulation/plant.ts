import { build } from 'esbuild'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'
import { withSources } from '../support/broken-sources.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** A fault that a change could bring into the code. */
export interface Fault {
  readonly what: string
  /** Where the search begins: a seed that shows the fault as the code is now. It may grow old: the search goes on from there. */
  readonly firstSeed?: number
  readonly changes: readonly Change[]
}

/**
 * One change of the code. `place` names a declaration wherever its file is: `MAX_STUCK`, `keepPinging`, `Sweeper`, `Sweeper.#tick`.
 * A pattern is an expression, or a property such as `limit: $ms`, that must occur once within the place. In it `$name` stands for any
 * expression and `$$name` for the remaining arguments; formatting, comments, parentheses and `?.` make no difference.
 */
export interface Change {
  readonly place: string
  readonly describe: string
  /** The text to put instead of a range of the file; throws if the place does not have what is to be changed. */
  readonly edit: (place: ts.Node) => Edit
}

interface Edit {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Removes the statement that contains the pattern. */
export function drop(place: string, pattern: string): Change {
  const edit = (node: ts.Node): Edit => {
    const statement = ts.findAncestor(find(pattern, node).node, ts.isStatement)
    if (statement === undefined || !ts.isExpressionStatement(statement)) {
      throw new Error(`\`${pattern}\` is not a statement of its own`)
    }
    return { from: statement.getStart(), to: statement.end, text: ';' }
  }
  return { place, describe: `drop \`${pattern}\``, edit }
}

/** Puts other code in the place of the pattern; it may use what the pattern's `$names` stand for. */
export function replace(place: string, pattern: string, code: string): Change {
  const edit = (node: ts.Node): Edit => {
    const found = find(pattern, node)
    const text = code.replaceAll(/\$+\w+/g, (name) => found.bound.get(name) ?? name)
    return { from: found.node.getStart(), to: found.node.end, text }
  }
  return { place, describe: `replace \`${pattern}\``, edit }
}

/** Begins a function or method with other code, such as `return`. */
export function begin(place: string, code: string): Change {
  const edit = (node: ts.Node): Edit => {
    const body = ts.isFunctionLike(node) && 'body' in node ? node.body : undefined
    if (body === undefined || !ts.isBlock(body)) throw new Error('it is not a function with a body')
    return { from: body.getStart() + 1, to: body.getStart() + 1, text: `${code};` }
  }
  return { place, describe: `begin with \`${code}\``, edit }
}

/** Gives a constant another value. */
export function setValue(place: string, code: string): Change {
  const edit = (node: ts.Node): Edit => {
    const value = ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) ? node.initializer : undefined
    if (value === undefined) throw new Error('it is not a constant')
    return { from: value.getStart(), to: value.end, text: code }
  }
  return { place, describe: `set to \`${code}\``, edit }
}

/** The exports of some files of `src`, or of a copy with a fault. */
export async function load(files: readonly string[], fault?: Fault): Promise<object> {
  if (fault !== undefined) return loadWith(fault, files)
  const modules = files.map((file) => import(new URL(`../../src/${file}`, import.meta.url).href) as Promise<object>)
  return Object.assign({}, ...(await Promise.all(modules))) as object
}

/** In one bundle: to compile the files of a copy one by one takes longer than to find most faults. */
async function loadWith(fault: Fault, files: readonly string[]): Promise<object> {
  const src = join(ROOT, 'src')
  const base = join(ROOT, '.cache/broken-variants')
  mkdirSync(base, { recursive: true })
  const folder = mkdtempSync(join(base, 'v-'))
  const broken = plant(fault, sources())
  const bundle = join(folder, 'bundle.mjs')
  try {
    await build({
      stdin: { contents: files.map((file) => `export * from './${file}'\n`).join(''), resolveDir: src },
      outfile: bundle,
      ...withSources(broken),
    })
    return (await import(pathToFileURL(bundle).href)) as object
  } finally {
    rmSync(folder, { recursive: true })
  }
}

let parsed: readonly ts.SourceFile[] | undefined

/** The files of `src`, parsed once for each process. */
export function sources(): readonly ts.SourceFile[] {
  const src = join(ROOT, 'src')
  parsed ??= readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('generated.ts'))
    .map((file) => parse(file, readFileSync(join(src, file), 'utf8')))
  return parsed
}

export function parse(file: string, text: string): ts.SourceFile {
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
}

/** The files that the fault changes, with their new text. */
export function plant({ what, changes }: Fault, files: readonly ts.SourceFile[]): Map<string, string> {
  const edits = new Map<ts.SourceFile, Edit[]>()
  for (const { place, describe, edit } of changes) {
    const fail = (why: string): never => {
      throw new Error(`The fault "${what}" cannot be planted: ${describe} in ${place}: ${why}`)
    }
    const names = place.split('.')
    const [node, ...others] = files
      .filter(({ text }) => names.every((name) => text.includes(name))) // a walk costs a hundred times as much
      .flatMap((file) => declarations(file, names))
    if (node === undefined) return fail(`there is no ${place}`)
    if (others.length > 0) {
      fail(`there are several: ${[node, ...others].map((each) => each.getSourceFile().fileName).join(', ')}`)
    }
    const file = node.getSourceFile()
    try {
      edits.set(file, [...(edits.get(file) ?? []), edit(node)])
    } catch (error) {
      fail((error as Error).message)
    }
  }
  return new Map(Array.from(edits, ([file, those]) => [file.fileName, edited(file.text, those)]))
}

function edited(text: string, edits: readonly Edit[]): string {
  return [...edits]
    .sort((a, b) => b.from - a.from)
    .reduce((so, { from, to, text: put }) => so.slice(0, from) + put + so.slice(to), text)
}

/** The declarations with a name within a node, whatever lies between; each further name is looked for within the one before. */
function declarations(within: ts.Node, [name, ...rest]: readonly string[]): ts.Node[] {
  const found: ts.Node[] = []
  const visit = (node: ts.Node): void => {
    if (nameOf(node) === name) found.push(node)
    else ts.forEachChild(node, visit)
  }
  ts.forEachChild(within, visit)
  return rest.length === 0 ? found : found.flatMap((node) => declarations(node, rest))
}

function nameOf(node: ts.Node): string | undefined {
  const isCode = ts.isMethodDeclaration(node) || ts.isFunctionDeclaration(node)
  if (isCode) return node.body && node.name?.getText() // not the signatures of an overloaded one
  const isNamed = ts.isClassDeclaration(node) || ts.isVariableDeclaration(node) || ts.isClassElement(node)
  return isNamed ? node.name?.getText() : undefined
}

interface Found {
  readonly node: ts.Node
  /** The texts that the `$names` stand for. */
  readonly bound: ReadonlyMap<string, string>
}

/** The one place within a node that the pattern fits. */
function find(pattern: string, within: ts.Node): Found {
  const wanted = parsePattern(pattern)
  const found: Found[] = []
  const visit = (node: ts.Node): void => {
    const bound = new Map<string, string>()
    if (!ts.isParenthesizedExpression(node) && matches(wanted, node, bound)) found.push({ node, bound })
    ts.forEachChild(node, visit)
  }
  visit(within)
  const [only] = found
  if (only === undefined || found.length > 1)
    throw new Error(`\`${pattern}\` is there ${found.length} times instead of once`)
  return only
}

function parsePattern(pattern: string): ts.Node {
  const isProperty = /^\w+: /.test(pattern)
  const [statement] = parse('pattern.ts', isProperty ? `({ ${pattern} })` : `(${pattern})`).statements
  const expression = unwrapped((statement as ts.ExpressionStatement).expression)
  return isProperty ? (expression as ts.ObjectLiteralExpression).properties[0]! : expression
}

function matches(pattern: ts.Node, node: ts.Node, bound: Map<string, string>): boolean {
  ;[pattern, node] = [unwrapped(pattern), unwrapped(node)]
  if (ts.isIdentifier(pattern) && pattern.text.startsWith('$')) {
    if (!ts.isExpression(node)) return false
    const earlier = bound.get(pattern.text)
    bound.set(pattern.text, node.getText())
    return earlier === undefined || earlier === node.getText()
  }
  if (pattern.kind !== node.kind) return false
  const [wanted, parts] = [partsOf(pattern), partsOf(node)]
  if (wanted.length === 0) return pattern.getText() === node.getText()
  const rest = wanted.at(-1)!
  if (ts.isIdentifier(rest) && rest.text.startsWith('$$')) {
    wanted.pop()
    bound.set(
      rest.text,
      parts
        .splice(wanted.length)
        .map((part) => part.getText())
        .join(', '),
    )
  }
  return wanted.length === parts.length && wanted.every((part, at) => matches(part, parts[at]!, bound))
}

function unwrapped(node: ts.Node): ts.Node {
  return ts.isParenthesizedExpression(node) ? unwrapped(node.expression) : node
}

/** `a?.b` has another token where `a.b` has a dot. */
const MEANINGLESS = [
  ts.SyntaxKind.CommaToken,
  ts.SyntaxKind.DotToken,
  ts.SyntaxKind.QuestionDotToken,
  ts.SyntaxKind.JSDoc,
]

function partsOf(node: ts.Node): ts.Node[] {
  return node.getChildren().filter(({ kind }) => !MEANINGLESS.includes(kind))
}
