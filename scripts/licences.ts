// Checks the licence of every package of the lock files, so that nothing comes in that users may not use or that this repository may not
// contain. A package without a licence in the lock file is looked up where it is installed, or named below.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'

/** What users of the two packages get. */
const ALLOWED = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'BlueOak-1.0.0']
/** What only runs here. */
const ALLOWED_HERE = [...ALLOWED, 'Unlicense', 'CC0-1.0', 'Zlib', 'Python-2.0', 'PSF-2.0', 'CC-BY-4.0', 'MPL-2.0']
/** Packages whose package.json names no licence as SPDX does, with that of their LICENSE file. */
const READ_BY_HAND: Readonly<Record<string, string>> = { buildcheck: 'MIT', 'cpu-features': 'MIT', ssh2: 'MIT' }
/** The lock files; users of the package do not get what is installed in the last two. */
const LOCKS = [
  { dir: '', isForUsers: true },
  { dir: 'benchmarks', isForUsers: false },
  { dir: 'docs/examples', isForUsers: false },
  { dir: 'docs/site', isForUsers: false },
]

interface Locked {
  license?: string
  dev?: boolean
  link?: boolean
}

const problems: string[] = []
let count = 0
for (const { dir, isForUsers } of LOCKS) {
  const lock = join(root, dir, 'package-lock.json')
  const { packages } = JSON.parse(readFileSync(lock, 'utf8')) as { packages: Record<string, Locked> }
  for (const [path, { license, dev, link }] of Object.entries(packages)) {
    if (!path.includes('node_modules/') || link) continue
    count++
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const found = license ?? installedLicence(join(root, dir, path)) ?? READ_BY_HAND[name] ?? ''
    const allowed = isForUsers && !dev ? ALLOWED : ALLOWED_HERE
    if (!isAllowed(found, allowed)) {
      problems.push(
        `${join(dir, path)}: ${found === '' ? 'no licence' : `the licence ${found}`}, which scripts/licences.ts does not allow`,
      )
    }
  }
}

for (const problem of problems) console.error(problem)
console.log(`${count} packages, ${problems.length} problems`)
process.exitCode = problems.length === 0 && count > 0 ? 0 : 1

/** An expression of SPDX: of "or" one part must be allowed, of "and" all. */
function isAllowed(expression: string, allowed: readonly string[]): boolean {
  const any = expression.replaceAll(/[()]/g, '').split(' OR ')
  return any.some((all) => all.split(' AND ').every((each) => allowed.includes(each.trim())))
}

function installedLicence(dir: string): string | undefined {
  const file = join(dir, 'package.json')
  if (!existsSync(file)) return undefined
  const { license } = JSON.parse(readFileSync(file, 'utf8')) as { license?: unknown }
  return typeof license === 'string' ? license : undefined
}
