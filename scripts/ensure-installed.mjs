// Installs the dependencies when they are missing or not those of package-lock.json, so that every command a newcomer
// types works in a fresh clone and after a pull. It stays plain JavaScript and imports no package: it runs before the
// installation (run.mjs).
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of package.json, with a slash at the end. */
export const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * Runs `npm ci` in `dir` if needed; ends the process with a message when that fails.
 * @param {string} [dir]
 * @param {{ workspaces?: boolean }} [options] whether what only the packages inside this one need has to be there, too
 */
export function ensureInstalled(dir = root, options = {}) {
  if (isInstalled(dir, options)) return
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
 * @param {string} [dir]
 * @param {{ workspaces?: boolean }} [options]
 */
export function isInstalled(dir = root, { workspaces = false } = {}) {
  const all = packages(join(dir, 'package-lock.json'))
  const needed = workspaces ? new Set(Object.keys(all)) : neededByRoot(all)
  const wanted = Object.fromEntries(Object.entries(all).filter(([path]) => needed.has(path)))
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

/**
 * @typedef {Record<string, string>} Names
 * @typedef {{ version?: string, optional?: boolean, dependencies?: Names, devDependencies?: Names, optionalDependencies?: Names, peerDependencies?: Names }} Installed
 */

/**
 * Where the packages are that the one in the folder itself needs: npm looks for each in the folders above the one that needs it.
 * @param {Record<string, Installed>} all
 */
function neededByRoot(all) {
  const needed = new Set()
  const visit = (/** @type {string} */ path) => {
    const found = all[path]
    if (needed.has(path) || !found) return
    needed.add(path)
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = found
    for (const name in { ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies }) {
      for (let from = path; ; from = from.slice(0, Math.max(0, from.lastIndexOf('node_modules/') - 1))) {
        const candidate = `${from}${from && '/'}node_modules/${name}`
        if (candidate in all) visit(candidate)
        if (candidate in all || from === '') break
      }
    }
  }
  visit('')
  return needed
}

/** @param {string} file @returns {Record<string, Installed>} */
function packages(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages
}
