// Builds dist when it is not what src is now, so that the tests never run yesterday's code. File times say little after a checkout.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'

const STAMP = join(root, '.cache/built')
/** A package of its own. */
const SERVER = join('src', 'server')

/** Says nothing unless the build fails; then it ends the process. */
export function ensureBuilt() {
  if (existsSync(join(root, 'dist/index.js')) && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === hashOfSource())
    return
  const build = [join(root, 'scripts/run.mjs'), 'build']
  const { status, stdout, stderr } = spawnSync(process.execPath, build, { cwd: root, encoding: 'utf8' })
  if (status === 0) return
  console.error(`${stdout}${stderr}`.trimEnd())
  process.exit(status ?? 1)
}

/** To be called when dist was built. */
export function markBuilt() {
  mkdirSync(join(root, '.cache'), { recursive: true })
  writeFileSync(STAMP, hashOfSource())
}

function hashOfSource() {
  const hash = createHash('sha256')
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.c?ts$/.test(entry.name) && !entry.parentPath.includes(SERVER))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  for (const file of [...files, join(root, 'tsconfig.json')])
    hash.update(file.slice(root.length)).update(readFileSync(file))
  return hash.digest('hex')
}
