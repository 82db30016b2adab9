import { build, type Plugin } from 'esbuild'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { plant, sources, type Fault } from '../../simulation/plant.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const SRC = join(ROOT, 'src')

/** The programs of the bench's processes, with the library and the journal in them: a process that comes back does so in a moment. */
export interface Program {
  readonly member: string
  readonly consumer: string
  remove(): void
}

/** @param fault is put into the journal, for which the bench has to find it */
export async function buildProgram(fault?: Fault): Promise<Program> {
  const entries = {
    member: join(ROOT, 'test/faults/journal/member.ts'),
    consumer: join(ROOT, 'test/faults/journal/consumer.ts'),
  }
  const bundle = await bundleOf(entries, fault)
  return { ...bundle.paths, remove: () => bundle.remove() }
}

/** Files with the library and the journal in them, by the names of their entries, with a fault in the journal. */
export async function bundleOf<K extends string>(
  entries: Readonly<Record<K, string>>,
  fault?: Fault,
): Promise<{ readonly paths: Readonly<Record<K, string>>; remove(): void }> {
  const base = join(ROOT, '.cache/journal-faults')
  mkdirSync(base, { recursive: true })
  const folder = mkdtempSync(join(base, 'p-'))
  const broken = fault === undefined ? new Map<string, string>() : plant(fault, journalSources())
  await build({
    entryPoints: { ...entries, 'sqlite-worker': join(SRC, 'server/database/sqlite-worker.ts') },
    outdir: folder,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: `node${process.versions.node}`,
    packages: 'external',
    keepNames: true,
    logLevel: 'warning',
    plugins: [withSources(broken)],
  })
  const names = Object.keys(entries) as K[]
  const paths = Object.fromEntries(names.map((name) => [name, join(folder, `${name}.js`)])) as Record<K, string>
  return { paths, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

function withSources(broken: ReadonlyMap<string, string>): Plugin {
  return {
    name: 'sources',
    setup(bundler) {
      bundler.onResolve({ filter: /^redelayed$/ }, () => ({ path: join(SRC, 'index.ts') }))
      bundler.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = broken.get(relative(SRC, path))
        return contents === undefined ? undefined : { contents, loader: 'ts' }
      })
    },
  }
}

/** Where a fault can be planted. */
export function journalSources(): ReturnType<typeof sources> {
  return sources().filter(({ fileName }) => /^server\/(journal|database)\//.test(fileName))
}
