// Installs the dependencies when they are missing or not those of package-lock.json, so that every command a newcomer
// types works in a fresh clone and after a pull. It stays plain JavaScript and imports no package: it runs before the
// installation (run.mjs).
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of package.json, with a slash at the end. */
export const root = fileURLToPath(new URL('..', import.meta.url))

/** Runs `npm ci` in `dir` if needed; ends the process with a message when that fails. */
export function ensureInstalled(dir = root) {
  if (isInstalled(dir)) return
  console.log('Installing the dependencies (npm ci) ...')
  const started = performance.now()
  if (npm(['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: dir }).status !== 0) {
    console.error('The installation failed. Run `npm ci` to see why.')
    process.exit(1)
  }
  console.log(`Installed in ${Math.round((performance.now() - started) / 1000)} s.`)
}

/**
 * Compares what npm has installed with what package-lock.json asks for; file times say little after a checkout. What lies
 * beside the folder, as the package itself for its examples, is a link, whatever its version.
 */
export function isInstalled(dir = root) {
  const wanted = packages(join(dir, 'package-lock.json'))
  const listed = join(dir, 'node_modules/.package-lock.json')
  const present = existsSync(listed) ? packages(listed) : {}
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    const found = present[path]
    return path === '' || path.startsWith('../') || (found ? found.version === version : optional)
  })
}

/**
 * Runs npm, the one that runs this script if there is one.
 * @param {string[]} args
 * @param {import('node:child_process').SpawnSyncOptions} [options]
 */
export function npm(args, options = {}) {
  const inherited = process.env.npm_execpath
  const stdio = /** @type {const} */ ('inherit')
  if (inherited && /npm-cli\.[cm]?js$/.test(inherited))
    return spawnSync(process.execPath, [inherited, ...args], { stdio, ...options })
  return spawnSync('npm', args, { stdio, shell: process.platform === 'win32', ...options })
}

/** @param {string} file @returns {Record<string, { version?: string, optional?: boolean }>} */
function packages(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages
}
