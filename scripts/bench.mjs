// `npm run bench`: installs what is missing, also the rivals in benchmarks/, builds, and runs the suite.
import { spawnSync } from 'node:child_process'
import { ensureInstalled, root } from './ensure-installed.mjs'

ensureInstalled()
ensureInstalled(`${root}benchmarks`)
const node = (/** @type {string[]} */ args) =>
  spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1
const built = node(['scripts/build.mjs'])
process.exitCode = built === 0 ? node(['--import', 'tsx', 'benchmarks/main.ts', ...process.argv.slice(2)]) : built
