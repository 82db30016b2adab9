// `npm run build:server`: src/server -> src/server/dist, against the library as it was built, and the page into src/server/dist/ui. Builds beside
// dist and changes the two over at the end, so that a service which starts meanwhile finds all modules: without it, they were missing for seconds.
import { spawnSync } from 'node:child_process'
import { chmodSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { removeLeftovers } from './build-leftovers.js'
import { buildUi } from './page-bundle.js'
import { ensureBuilt, markServerBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'

ensureInstalled(root, { workspaces: true })
ensureBuilt()
const server = join(root, 'src/server')
const dist = join(server, 'dist')
// beside it, or the source maps would lead elsewhere
const built = `${dist}.${process.pid}`
removeLeftovers(server)
try {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const args = [tsc, '-p', join(server, 'tsconfig.build.json'), '--outDir', built]
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (status === 0) await finish()
  else process.exitCode = status ?? 1
} finally {
  rmSync(built, { recursive: true, force: true })
}

async function finish(): Promise<void> {
  chmodSync(join(built, 'cli/main.js'), 0o755)
  const line = await buildUi(join(built, 'ui'))
  changeOver()
  markServerBuilt()
  console.log('Built src/server/dist/')
  console.log(line)
}

/** Another build can do the same at this moment: the last one stays. */
function changeOver(): void {
  const old = `${built}.old`
  for (;;) {
    try {
      renameSync(dist, old)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    try {
      renameSync(built, dist)
      break
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    } finally {
      rmSync(old, { recursive: true, force: true })
    }
  }
}
