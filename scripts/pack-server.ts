// What `npm pack` in src/server runs around packing: `--begin` builds the package and has its package.json name the library by its version, in the
// place of the folder beside it; `--end` puts package.json back. `npm publish` reads package.json again after that, so publish.yml sets the version first.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'

interface Manifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
}

const path = join(root, 'src/server/package.json')
const before = `${path}.before-packing`
// one that was stopped in the middle has left it
if (existsSync(before)) renameSync(before, path)
if (process.argv.includes('--begin')) {
  const build = spawnSync(process.execPath, ['scripts/run.mjs', 'build-server'], { cwd: root, stdio: 'inherit' })
  if (build.status !== 0) process.exit(build.status ?? 1)
  const text = readFileSync(path, 'utf8')
  const manifest = JSON.parse(text) as Manifest
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
  const dependencies = { ...manifest.dependencies, redelayed: `^${version}` }
  writeFileSync(before, text)
  writeFileSync(path, `${JSON.stringify({ ...manifest, dependencies }, undefined, 2)}\n`)
}
