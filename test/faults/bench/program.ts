import { build } from 'esbuild'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withSources } from '../../support/broken-sources.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface Bundle<K extends string> {
  readonly paths: Readonly<Record<K, string>>
  remove(): void
}

/** Files with the library in them, by the names of their entries. `broken` has other texts of files of `src`. */
export async function bundle<K extends string>(
  folder: string,
  entries: Readonly<Record<K, string>>,
  broken: ReadonlyMap<string, string>,
): Promise<Bundle<K>> {
  const base = join(ROOT, '.cache', folder)
  mkdirSync(base, { recursive: true })
  const own = mkdtempSync(join(base, 'p-'))
  await build({ entryPoints: entries, outdir: own, ...withSources(broken) })
  const names = Object.keys(entries) as K[]
  const paths = Object.fromEntries(names.map((name) => [name, join(own, `${name}.js`)])) as Record<K, string>
  return { paths, remove: () => rmSync(own, { recursive: true, force: true }) }
}
