// What the docstrings of src say: the code blocks in them, and which public methods and functions are without `@throws` (with the code
// of the error) or `@example`.
import { readFileSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { root } from './ensure-installed.mjs'

/** `line`: that of the fence before the code */
export interface Block {
  page: string
  line: number
  code: string
}

export function exampleBlocks(): Block[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(
      (file) =>
        file.endsWith('.ts') &&
        !file.endsWith('generated.ts') &&
        (!file.startsWith('server/') || /^server\/(client|journal)\//.test(file)),
    )
    .sort()
    .flatMap((file) => {
      const text = readFileSync(join(root, 'src', file), 'utf8')
      return Array.from(text.matchAll(/^[ \t]*\* ```ts\n(.*?)^[ \t]*\* ```$/gms), ({ index, 1: code = '' }) => ({
        page: `src/${file}`,
        line: text.slice(0, index).split('\n').length,
        code: code.replaceAll(/^[ \t]*\* ?/gm, ''),
      }))
    })
}

/**
 * The public methods and functions, by where they are declared, that have no tag of a name.
 * @param entries the sources of what the package exports
 */
export function methodsWithout(program: ts.Program, entries: readonly string[], tag: 'throws' | 'example') {
  const checker = program.getTypeChecker()
  return methodsOf(program, entries)
    .filter((method) => !tagsOf(checker, method).some(({ name }) => name === tag))
    .map(nameOf)
    .sort()
}

/** What `@throws` can say without an error of the package. */
const OTHERWISE = /^(nothing\b|as `|the reason of |what `|TypeError: |Error of )/

/** The tags `@throws` of the public methods that name an error without its code, with another one, or none at all. */
export function wrongThrows(program: ts.Program, entries: readonly string[]) {
  const checker = program.getTypeChecker()
  const codes = codesOfClasses(program, entries)
  return methodsOf(program, entries).flatMap((method) =>
    tagsOf(checker, method)
      .filter(({ name }) => name === 'throws')
      .flatMap(({ text }) => {
        const said = ts.displayPartsToString(text)
        const named = [...said.matchAll(/\b([A-Z]\w*Error)\b(?: `(ERR_[A-Z_]+)`)?/g)]
        // one that is named again, after its code was given, needs none
        const first = named.filter(([, name], at) => named.findIndex(([, other]) => other === name) === at)
        const isRight = first.every(([, name = '', code]) => !codes.has(name) || codes.get(name) === code)
        return isRight && (named.length > 0 || OTHERWISE.test(said)) ? [] : [`${nameOf(method)}: @throws ${said}`]
      }),
  )
}

/** The code of each error that the package exports, by the name of its class. */
function codesOfClasses(program: ts.Program, entries: readonly string[]) {
  const checker = program.getTypeChecker()
  return new Map(
    entries
      .flatMap((entry) => exportsOf(checker, program.getSourceFile(join(root, entry))))
      .flatMap(({ name, declarations = [] }) =>
        declarations.flatMap((declaration) => {
          const code = ts.isClassDeclaration(declaration) && /super\(\s*'(ERR_\w+)'/.exec(declaration.getText())?.[1]
          return code ? [[name, code] as const] : []
        }),
      ),
  )
}

function methodsOf(program: ts.Program, entries: readonly string[]) {
  const checker = program.getTypeChecker()
  const methods = new Map(
    entries
      .flatMap((entry) => exportsOf(checker, program.getSourceFile(join(root, entry))))
      .flatMap((symbol) => publicMethods(checker, symbol))
      .filter((method) => method.declarations?.[0]?.getSourceFile().fileName.startsWith(join(root, 'src/')))
      .map((method) => [method.declarations?.[0], method]),
  )
  return Array.from(methods.values())
}

function exportsOf(checker: ts.TypeChecker, file: ts.SourceFile | undefined) {
  const module = file && checker.getSymbolAtLocation(file)
  return (module ? checker.getExportsOfModule(module) : []).map((symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
  )
}

/** What users implement, and the library calls. */
const OF_USERS = [
  'Codec',
  'EventLogger',
  'Instrumentation',
  'IoredisClient',
  'JournalledQueue',
  'NameMapper',
  'TaskHandler',
  'ZstdImplementation',
]

/** What users call of an export: a function; the functions of an object such as `codecs`; the methods of an interface or a class. */
function publicMethods(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol[] {
  if (symbol.flags & ts.SymbolFlags.Function) return [symbol]
  if (symbol.flags & ts.SymbolFlags.Class) return methodsOfClass(checker, symbol)
  if (symbol.flags & ts.SymbolFlags.Interface && !OF_USERS.includes(symbol.name)) {
    const members = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
    return members.filter((member) => checker.getTypeOfSymbol(member).getCallSignatures().length > 0)
  }
  if (!(symbol.flags & ts.SymbolFlags.Variable)) return []
  const members = checker.getPropertiesOfType(checker.getTypeOfSymbol(symbol))
  return members.filter((member) => checker.getTypeOfSymbol(member).getCallSignatures().length > 0)
}

/** Also inherited ones. */
function methodsOfClass(checker: ts.TypeChecker, symbol: ts.Symbol) {
  const statics = checker.getPropertiesOfType(checker.getTypeOfSymbol(symbol))
  return [...checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)), ...statics].filter((member) => {
    const [declaration] = member.declarations ?? []
    if (declaration === undefined || !ts.isMethodDeclaration(declaration)) return false
    const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected
    return (
      !(ts.getCombinedModifierFlags(declaration) & hidden) &&
      !ts.isPrivateIdentifier(declaration.name) &&
      !member.getJsDocTags(checker).some(({ name }) => name === 'internal')
    )
  })
}

/** Of the function itself where an object only names it, as `codecs` does. */
function tagsOf(checker: ts.TypeChecker, method: ts.Symbol) {
  const [signature] = checker.getTypeOfSymbol(method).getCallSignatures()
  const own = method.getJsDocTags(checker)
  return own.length > 0 ? own : (signature?.getJsDocTags() ?? [])
}

function nameOf(method: ts.Symbol) {
  const [declaration] = method.declarations ?? []
  if (declaration === undefined) return method.name
  const { parent } = declaration
  const owner = ts.isClassLike(parent) || ts.isInterfaceDeclaration(parent) ? `${parent.name?.text}.` : ''
  return `${relative(root, declaration.getSourceFile().fileName)}: ${owner}${method.name}`
}
