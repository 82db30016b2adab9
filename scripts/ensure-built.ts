// Builds dist when it is not what src is now, so that the tests never run yesterday's code. File times say little after a checkout.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
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
  return hashOf('src', (path) => /\.c?ts$/.test(path) && !path.includes(SERVER), ['tsconfig.json'])
}

/** Of the library, too: the service takes its types. */
function hashOfServer() {
  const isSource = (path: string) => !/[\\/](dist|node_modules|test)[\\/]/.test(path)
  return hashOfSource() + hashOf(SERVER, isSource, ['scripts/build-server.ts', 'scripts/page-bundle.ts'])
}

/** `isWanted`: by the path below this checkout. */
function hashOf(folder: string, isWanted: (path: string) => boolean, others: readonly string[]) {
  const hash = createHash('sha256')
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter(isWanted)
    .sort()
  for (const file of [...files, ...others]) hash.update(file).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}
