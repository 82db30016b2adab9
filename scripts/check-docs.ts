// Type-checks every TypeScript block in README.md, docs/, benchmarks/README.md and the docstrings of src against the library's
// source, and checks that links between the pages lead somewhere, also in the tarball, and that a test that is named as `test/x.test.ts` "title" is
// there. A block after a line `<!-- path -->` has to be that file. It guards against examples that do not run any more, and promises
// that no test keeps any more. It also counts the public methods without `@throws` or `@example`, which may not become more.
//
//   node scripts/run.mjs check-docs --list      names these methods
//   node scripts/run.mjs check-docs --update    writes their number, if it fell, and the blocks that are files
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'
import { exampleBlocks, methodsWithout, wrongThrows, type Block } from './docstrings.js'
import { root } from './ensure-installed.mjs'
import { linkProblems, manifestProblems, withRepository } from './packed-links.js'

/** What the examples of docstrings may use without making it: `client`, `queue` and so on. */
const NAMES = join(root, 'test/types/example-names.ts')
/** How many public methods are without a tag. */
const MISSING = join(root, 'scripts/docstrings.json')

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'benchmarks/README.md',
  ...pagesIn('benchmarks/results'),
  ...pagesIn('docs'),
]
/** An example in a docstring names what a call gives, and goes no further. */
const UNUSED = [6133, 6192, 6196, 6198]
const problems: string[] = manifestProblems()
const dir = join(root, '.cache/docs')
rmSync(dir, { recursive: true, force: true })
mkdirSync(dir, { recursive: true })

const blocks = new Map<string, { page: string; line: number }>()
for (const page of pages) {
  const text = readFileSync(join(root, page), 'utf8')
  for (const match of text.matchAll(/^```ts\n(.*?)^```/gms)) {
    const line = text.slice(0, match.index).split('\n').length
    addBlock({ page, line, code: match[1] ?? '' })
  }
  for (const [, target = ''] of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
    if (!/^https?:/.test(target) && !existsSync(resolve(root, dirname(page), target))) {
      problems.push(`${page}: no such file: ${target}`)
    }
  }
}

let included = 0
const isUpdate = process.argv.includes('--update')
for (const page of pages) {
  const text = readFileSync(join(root, page), 'utf8')
  const updated = (isUpdate ? withRepository(text) : text).replaceAll(
    /^(<!-- (\S+) -->\n```\w+\n)(.*?)^```/gms,
    (block: string, head: string, path: string, code: string) => {
      included++
      const content = existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : undefined
      if (content === undefined) problems.push(`${page}: no such file: ${path}`)
      else if (content !== code && !isUpdate)
        problems.push(`${page}: a block is not ${path}; run "node scripts/run.mjs check-docs --update"`)
      return content === undefined ? block : `${head}${content}\`\`\``
    },
  )
  if (isUpdate && updated !== text) writeFileSync(join(root, page), updated)
  problems.push(...linkProblems(page, updated))
}

const examples = exampleBlocks()
const names = Array.from(
  readFileSync(NAMES, 'utf8').matchAll(/^export (declare const|interface) (\w+)/gm),
  ([, kind, name]) => (kind === 'interface' ? `type ${name}` : name),
)
for (const { code, ...place } of examples) {
  // in a block, so that an example can make what others are given
  const [, imports = '', rest = ''] = /^((?:.*from '.*'\n|\n)*)(.*)$/s.exec(code) ?? []
  addBlock({
    ...place,
    code: `import { ${names.join(', ')} } from '${NAMES.replace('.ts', '.js')}'; ${imports}{ ${rest}}`,
  })
}

/** What stands between quotes in a source, without its escapes. */
const unescaped = (source: string) => source.replaceAll(/\\(['"`])/g, '$1')

let tests = 0
for (const page of pages) {
  for (const [, file = '', title = ''] of readFileSync(join(root, page), 'utf8').matchAll(
    /`(test\/[^`]+\.ts)` "([^"]+)"/g,
  )) {
    tests++
    const found = existsSync(join(root, file)) && unescaped(readFileSync(join(root, file), 'utf8')).includes(title)
    if (!found) problems.push(`${page}: no such test: ${file} "${title}"`)
  }
}

const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
  config: { compilerOptions: object }
}
const { options } = ts.convertCompilerOptionsFromJson(
  { ...config.compilerOptions, rootDir: root, noEmit: true, paths: sourcesOfExports() },
  root,
)
/** What the library exports, and the typed client of the service. */
const entries = [...Object.values(sourcesOfExports()).flat(), 'src/server/client/index.ts']
const program = ts.createProgram([...blocks.keys(), ...entries.map((entry) => join(root, entry))], options)
for (const diagnostic of ts.getPreEmitDiagnostics(program)) {
  const file = diagnostic.file?.fileName
  const block = file === undefined ? undefined : blocks.get(resolve(file))
  const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, ' ')
  if (block === undefined || diagnostic.file === undefined) {
    problems.push(`${file === undefined ? '' : `${relative(root, file)}: `}${message}`)
    continue
  }
  if (block.page.startsWith('src/') && UNUSED.includes(diagnostic.code)) continue
  const { line } = diagnostic.file.getLineAndCharacterOfPosition(diagnostic.start ?? 0)
  problems.push(`${block.page}:${block.line + line + 1}: ${message}`)
}

const allowed = JSON.parse(readFileSync(MISSING, 'utf8')) as Record<'throws' | 'example', number>
for (const tag of ['throws', 'example'] as const) {
  const methods = methodsWithout(program, entries, tag)
  console.log(`${methods.length} public methods without @${tag}, of ${allowed[tag]} at most`)
  if (process.argv.includes('--list')) for (const method of methods) console.log(`  ${method}`)
  if (methods.length > allowed[tag])
    problems.push(`A public method has no @${tag}; see \`node scripts/run.mjs check-docs --list\`.`)
  allowed[tag] = Math.min(allowed[tag], methods.length)
}
for (const wrong of wrongThrows(program, entries))
  problems.push(`${wrong}: give the error with its code, such as \`ERR_CONNECTION\``)
if (isUpdate) writeFileSync(MISSING, `${JSON.stringify(allowed, null, 2)}\n`)

for (const problem of problems) console.error(problem)
console.log(
  `${blocks.size} code blocks (${examples.length} of docstrings), ${tests} tests named, ${included} files shown, the links of ${pages.length} pages: ${problems.length} problems`,
)
process.exitCode = problems.length === 0 && blocks.size > 0 ? 0 : 1

function addBlock({ page, line, code }: Block) {
  const file = join(dir, `${page.replace(/\W+/g, '-')}-${line}.ts`)
  writeFileSync(file, `${code}\nexport {}\n`)
  blocks.set(file, { page, line })
}

interface Manifest {
  exports: Record<string, string | { default: { types: string } }>
}

/** What the package exports, as its sources. */
function sourcesOfExports(): Record<string, string[]> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
  return Object.fromEntries(
    Object.entries(exports).flatMap(([path, entry]) =>
      typeof entry === 'string'
        ? []
        : [[`redelayed${path.slice(1)}`, [entry.default.types.replace('./dist/', './src/').replace('.d.ts', '.ts')]]],
    ),
  )
}

/** Installed packages are left out: one of them is a link to this repository. */
function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : pagesIn(path)
    return path.endsWith('.md') ? [path] : []
  })
}
