// Builds dist when it is not what src is now, so that the tests never run yesterday's code. File times say little after a checkout.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'

const STAMP = join(root, '.cache/built')
const STAMP_OF_SERVER = join(root, '.cache/built-server')
/** A package of its own. */
const SERVER = join('src', 'server')

/** Says nothing unless the build fails; then it ends the process. */
export function ensureBuilt() {
  if (existsSync(join(root, 'dist/index.js')) && isStamp(STAMP, hashOfSource())) return
  build('build')
}

/** To be called when dist was built. */
export function markBuilt() {
  mark(STAMP, hashOfSource())
}

/** The same for src/server/dist, with the page. */
export function ensureServerBuilt() {
  ensureBuilt()
  const built = ['dist/cli/main.js', 'dist/ui/index.html'].every((path) => existsSync(join(root, SERVER, path)))
  if (built && isStamp(STAMP_OF_SERVER, hashOfServer())) return
  build('build-server')
}

/** To be called when src/server/dist was built. */
export function markServerBuilt() {
  mark(STAMP_OF_SERVER, hashOfServer())
}

function build(script: string) {
  const args = [join(root, 'scripts/run.mjs'), script]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
  if (status === 0) return
  console.error(`${stdout}${stderr}`.trimEnd())
  process.exit(status ?? 1)
}

function isStamp(path: string, hash: string) {
  return existsSync(path) && readFileSync(path, 'utf8') === hash
}

function mark(path: string, hash: string) {
  mkdirSync(join(root, '.cache'), { recursive: true })
  writeFileSync(path, hash)
}

function hashOfSource() {
  return hashOf('src', (path) => /\.c?ts$/.test(path), /^server$/, ['tsconfig.json'])
}

/** Of the library, too: the service takes its types. Packing changes package.json for a moment, which the build does not read. */
function hashOfServer() {
  const isSource = (path: string) => !/package\.json/.test(path)
  const without = /^(dist(\.\d.*)?|node_modules|test)$/
  return hashOfSource() + hashOf(SERVER, isSource, without, ['scripts/build-server.ts', 'scripts/page-bundle.ts'])
}

/** `isWanted`: by the path below this checkout. `without`: names of folders that are not read; another process may be building them. */
function hashOf(folder: string, isWanted: (path: string) => boolean, without: RegExp, others: readonly string[]) {
  const hash = createHash('sha256')
  for (const file of [...filesIn(folder, without).filter(isWanted).sort(), ...others])
    hash.update(file).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

function filesIn(folder: string, without: RegExp): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isFile()) return [path]
    return entry.isDirectory() && !without.test(entry.name) ? filesIn(path, without) : []
  })
}
