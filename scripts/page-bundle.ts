// Builds the page: src/server/ui -> src/server/dist/ui, the document, and assets with the hash of what is in them in their names, each also compressed.
import { build } from 'esbuild'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { root } from './ensure-installed.mjs'

/** What is in the bundle, with the licences that say so. */
const BUNDLED = ['preact', 'uplot']
const SOURCE = join(root, 'src/server/ui')
const OUT = join(root, 'src/server/dist/ui')

/** Builds the page where it was not built, or has changed since. */
export async function ensureUi() {
  const document = join(OUT, 'index.html')
  const built = existsSync(document) ? statSync(document).mtimeMs : 0
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  if (files.some((file) => statSync(join(SOURCE, file)).mtimeMs > built)) await buildUi()
}

/** Returns what it has done, in a line. */
export async function buildUi(out = OUT) {
  const outputs = await bundle()
  rmSync(out, { recursive: true, force: true })
  mkdirSync(join(out, 'assets'), { recursive: true })
  const names: Record<string, string> = {}
  for (const { name, contents } of outputs) {
    names[name.endsWith('.css') ? 'style' : name.endsWith('.svg') ? 'icon' : 'script'] = name
    write(join(out, 'assets', name), contents)
  }
  write(join(out, 'assets/licences.txt'), licences())
  const document = readFileSync(join(SOURCE, 'index.html'), 'utf8')
  const filled = document.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => names[name] ?? '')
  const bytes =
    write(join(out, 'index.html'), Buffer.from(filled)) +
    outputs.reduce((sum, { contents }) => sum + brotli(contents).length, 0)
  return `Built src/server/dist/ui/, ${(bytes / 1024).toFixed(1)} KiB compressed`
}

async function bundle() {
  const { outputFiles } = await build({
    entryPoints: { page: join(SOURCE, 'main.tsx'), style: join(SOURCE, 'styles/page.css') },
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['es2022', 'chrome111', 'firefox115', 'safari16.4'],
    legalComments: 'none',
    banner: { js: '/*! Contains preact and uPlot, MIT: see licences.txt */' },
    outdir: OUT,
    entryNames: '[name]-[hash]',
    tsconfig: join(SOURCE, 'tsconfig.json'),
    write: false,
  })
  const icon = readFileSync(join(SOURCE, 'icon.svg'))
  const hash = createHash('sha256').update(icon).digest('hex').slice(0, 8).toUpperCase()
  const built = outputFiles.map(({ path, contents }) => ({ name: basename(path), contents }))
  return [...built, { name: `icon-${hash}.svg`, contents: icon }]
}

function licences() {
  const texts = BUNDLED.map((name) => `${name}\n\n${readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8')}`)
  return Buffer.from(texts.join('\n\n'))
}

/** Writes a file and its compressed forms, and returns the size of the smallest. */
function write(path: string, contents: Uint8Array) {
  const smallest = brotli(contents)
  writeFileSync(path, contents)
  writeFileSync(`${path}.gz`, gzipSync(contents, { level: 9 }))
  writeFileSync(`${path}.br`, smallest)
  return smallest.length
}

function brotli(contents: Uint8Array) {
  return brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
}
