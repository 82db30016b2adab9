// `npm run build`: src -> dist with plain tsc. Refuses to build from a stale Lua module, and clears dist first, so that
// a file deleted from src cannot live on in a package. What is built is CommonJS, which every tool can load. `import` gets a
// face of it: an ES module with the same names, so that a process never has the library twice.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { markBuilt } from './ensure-built.js'
import { root } from './ensure-installed.mjs'
import { generate, LUA_FOLDERS } from './generate-lua.js'

const problems = LUA_FOLDERS.flatMap((dir) => generate({ dir, check: true }).problems)
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exit(1)

rmSync(join(root, 'dist'), { recursive: true, force: true })
const commonJs = ['--module', 'commonjs', '--moduleResolution', 'bundler', '--verbatimModuleSyntax', 'false']
const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', ...commonJs]
const { status } = spawnSync(process.execPath, tsc, { cwd: root, stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)

writeFileSync(join(root, 'dist/package.json'), '{ "type": "commonjs" }\n')
for (const { default: file } of entryPoints()) writeFace(join(root, file))

const cli = join(root, 'dist/cli/main.js')
if (existsSync(cli)) chmodSync(cli, 0o755)
markBuilt()
console.log('Built dist/')

function entryPoints() {
  type Exports = Record<string, string | { readonly default: { readonly default: string } }>
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Exports }
  return Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [] : [entry.default]))
}

/** @param file a module of CommonJS; its face is written beside it */
function writeFace(file: string) {
  const names = Object.keys(createRequire(import.meta.url)(file) as object).sort()
  const from = JSON.stringify(`./${basename(file)}`)
  const face = [`import library from ${from}`, `export const { ${names.join(', ')} } = library`, '']
  writeFileSync(file.replace(/\.js$/, '.mjs'), face.join('\n'))
  writeFileSync(file.replace(/\.js$/, '.d.mts'), `export * from ${from}\n`)
}
