// Checks the links of the pages that are in the tarball: what they lead to must be in the tarball too, or be an address of the repository, as
// package.json names it. Only there its organisation is named; `--update` writes it to the pages. Pictures are an exception: they are relative and not in
// the tarball, because GitHub shows them so, npm takes them from the repository, and an installed page has their description in their place.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { npm, root } from './ensure-installed.mjs'

interface Manifest {
  repository: { url: string }
  bugs: string
  homepage: string
}

const MANIFESTS = ['package.json', 'src/server/package.json']
/** An address of this repository, whatever organisation it has. */
const ADDRESS = /https:\/\/github\.com\/[\w.-]+\/redelayed(?=[/#)\s.]|$)/g

/** `https://github.com/…/redelayed` */
export function repository(): string {
  return manifest('package.json').repository.url.replace(/^git\+|\.git$/g, '')
}

/** Of the two packages: all of them name the same repository. */
export function manifestProblems(): string[] {
  const here = repository()
  return MANIFESTS.flatMap((file) => {
    const { repository: its, bugs, homepage } = manifest(file)
    return [its.url.replace(/^git\+/, ''), bugs, homepage]
      .filter((address) => !address.startsWith(here))
      .map((address) => `${file}: ${address} is not of the repository ${here}`)
  })
}

/** The page with the repository's own name in its addresses. */
export function withRepository(text: string): string {
  return text.replaceAll(ADDRESS, repository())
}

export function linkProblems(page: string, text: string): string[] {
  const files = packedFiles()
  const here = repository()
  const problems = Array.from(text.matchAll(ADDRESS), ([address]) => address)
    .filter((address) => address !== here)
    .map((address) => `${page}: ${address} is not ${here}; run "node scripts/run.mjs check-docs --update"`)
  for (const [, picture, target = ''] of text.matchAll(/(!\[[^\]]+)?\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
    const file = /^https:\/\/github\.com\/[\w.-]+\/redelayed\/(?:blob|tree)\/main\/(.+)$/.exec(target)?.[1]
    if (file !== undefined && !existsSync(join(root, file))) problems.push(`${page}: no such file: ${file}`)
    if (/^https?:/.test(target) || !files.has(page)) continue
    const path = posix.join(dirname(page), target).replace(/\/$/, '')
    if (picture !== undefined && /\.png$/.test(path) && existsSync(join(root, path))) continue
    const isPacked = files.has(path) || [...files].some((each) => each.startsWith(`${path}/`))
    if (!isPacked) {
      problems.push(
        `${page}: ${path} is not in the tarball: add it to "files", link to ${here}/blob/main/${path}, or name it without a link`,
      )
    }
  }
  return problems
}

let packed: Set<string> | undefined

/** What npm would pack, by its own rules. */
function packedFiles(): Set<string> {
  if (packed !== undefined) return packed
  const how = { cwd: root, stdio: 'pipe', encoding: 'utf8' } as const
  const { status, stdout, stderr } = npm(['pack', '--dry-run', '--json', '--ignore-scripts'], how)
  if (status !== 0) throw new Error(String(stderr))
  // a list, or by name in later versions of npm
  const [report] = Object.values(JSON.parse(String(stdout)) as Record<string, { files: { path: string }[] }>)
  packed = new Set(report?.files.map(({ path }) => path))
  return packed
}

function manifest(file: string): Manifest {
  return JSON.parse(readFileSync(join(root, file), 'utf8')) as Manifest
}
