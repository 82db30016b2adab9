// `npm run build`: src -> dist with plain tsc. Refuses to build from a stale Lua module, and clears dist first, so that
// a file deleted from src cannot live on in a package.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { markBuilt } from './ensure-built.mjs'
import { ensureInstalled, root } from './ensure-installed.mjs'

ensureInstalled()

const run = (/** @type {string[]} */ args) => {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
run(['scripts/generate-lua.mjs', '--check'])
rmSync(join(root, 'dist'), { recursive: true, force: true })
run(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json'])

const cli = join(root, 'dist/cli/main.js')
if (existsSync(cli)) chmodSync(cli, 0o755)
markBuilt()
console.log('Built dist/')
