import type { BuildOptions } from 'esbuild'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

/** Options of a bundle for this Node with the library's sources in it. `broken` has other texts of files of `src`. */
export function withSources(broken: ReadonlyMap<string, string>): BuildOptions {
  return {
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: `node${process.versions.node}`,
    packages: 'external',
    keepNames: true,
    logLevel: 'warning',
    plugins: [
      {
        name: 'sources',
        setup(bundler) {
          bundler.onResolve({ filter: /^redelayed$/ }, () => ({ path: join(SRC, 'index.ts') }))
          bundler.onLoad({ filter: /\.ts$/ }, ({ path }) => {
            const contents = broken.get(relative(SRC, path))
            return contents === undefined ? undefined : { contents, loader: 'ts' }
          })
        },
      },
    ],
  }
}
