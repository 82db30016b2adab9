// `npm run build:server`: src/server -> src/server/dist, against the library as it was built, and the page into src/server/dist/ui.
import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildUi } from './page-bundle.js'
import { ensureBuilt, markServerBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'

ensureInstalled(root, { workspaces: true })
ensureBuilt()
const server = join(root, 'src/server')
rmSync(join(server, 'dist'), { recursive: true, force: true })
const args = [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(server, 'tsconfig.build.json')]
const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)
chmodSync(join(server, 'dist/cli/main.js'), 0o755)
console.log('Built src/server/dist/')
console.log(await buildUi())
markServerBuilt()
