// The exported declarations of the package and their doc comments, read from the source without a type checker.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { root } from '../ensure-installed.mjs'

export interface Page {
  text: string
  count: number
  problems: string[]
}

/** The entries of the package, by what an import names. */
const ENTRIES: Readonly<Record<string, string>> = {
  redelayed: 'src/index.ts',
  'redelayed/java': 'src/java/index.ts',
  'redelayed/logging': 'src/observability/log-events.ts',
  'redelayed/opentelemetry': 'src/observability/opentelemetry.ts',
  'redelayed/prometheus': 'src/observability/prometheus.ts',
  'redelayed/testing': 'src/testing/index.ts',
}

export type Declaration = ts.InterfaceDeclaration | ts.TypeAliasDeclaration | ts.ClassDeclaration

export interface Exported {
  entry: string
  node: Declaration
}

const parsed = new Map<string, ts.SourceFile>()

export function parse(file: string): ts.SourceFile {
  const found = parsed.get(file)
  if (found !== undefined) return found
  const text = readFileSync(join(root, file), 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  parsed.set(file, source)
  return source
}

/** What the package exports: interfaces, type aliases and classes, by name. */
export function exportedDeclarations(): Map<string, Exported> {
  const all = new Map<string, Exported>()
  for (const [entry, file] of Object.entries(ENTRIES)) {
    for (const node of declarationsOf(file)) if (!all.has(nameOf(node))) all.set(nameOf(node), { entry, node })
  }
  return all
}

/** Those that a file declares and exports, and those that it passes on from other files. */
function declarationsOf(file: string): Declaration[] {
  return parse(file).statements.flatMap((statement) => {
    if (isDeclaration(statement)) return isExported(statement) ? [statement] : []
    if (!ts.isExportDeclaration(statement) || !statement.exportClause || !ts.isNamedExports(statement.exportClause))
      return []
    const { moduleSpecifier } = statement
    if (moduleSpecifier === undefined || !ts.isStringLiteral(moduleSpecifier)) return []
    const from = join(dirname(file), moduleSpecifier.text).replace(/\.js$/, '.ts')
    const names = new Set(statement.exportClause.elements.map((element) => (element.propertyName ?? element.name).text))
    return declarationsOf(from).filter((node) => names.has(nameOf(node)))
  })
}

function isDeclaration(node: ts.Node): node is Declaration {
  return (
    ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || (ts.isClassDeclaration(node) && !!node.name)
  )
}

function isExported(node: Declaration) {
  return node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false
}

export const nameOf = (node: Declaration) => node.name?.text ?? ''

/** The text of a doc comment in one line, without its tags. */
export function docOf(node: ts.Node): string {
  const comments = ts.getJSDocCommentsAndTags(node).filter((part): part is ts.JSDoc => ts.isJSDoc(part))
  const text = ts.getTextOfJSDocComment(comments.at(-1)?.comment) ?? ''
  return text
    .replaceAll(/\{@link (\w+)\}/g, '`$1`')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** A type as it is written, in one line, without the `undefined` that each option has. */
export function typeText(node: ts.TypeNode | undefined): string {
  return (node?.getText() ?? 'unknown')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ \| undefined(?=$|[;}])/g, '')
    .replaceAll('readonly ', '')
}

/** Text in a cell of a table. */
export const cell = (text: string) => text.replaceAll('|', '\\|')
export const code = (text: string) => (text === '' ? '' : `\`${cell(text)}\``)
