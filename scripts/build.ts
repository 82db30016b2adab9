// `npm run build`: src -> dist with plain tsc. Refuses to build from a stale Lua module, and clears dist first, so that
// a file deleted from src cannot live on in a package.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { markBuilt } from './ensure-built.js'
import { root } from './ensure-installed.mjs'
import { generate, LUA_FOLDERS } from './generate-lua.js'

const problems = LUA_FOLDERS.flatMap((dir) => generate({ dir, check: true }).problems)
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exit(1)

rmSync(join(root, 'dist'), { recursive: true, force: true })
const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json']
const { status } = spawnSync(process.execPath, tsc, { cwd: root, stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)

const cli = join(root, 'dist/cli/main.js')
if (existsSync(cli)) chmodSync(cli, 0o755)
markBuilt()
console.log('Built dist/')
