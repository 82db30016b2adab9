// `npm run bench`: installs what the benchmarks need, also the rivals, builds if needed, and runs the suite.
import { spawnSync } from 'node:child_process'
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'

ensureInstalled(`${root}benchmarks`)
ensureBuilt()
const args = ['--import', 'tsx', 'benchmarks/main.ts', ...process.argv.slice(2)]
process.exitCode = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1
