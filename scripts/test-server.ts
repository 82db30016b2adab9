// `npm run test:server`: the tests of the package redelayed-server, against the library as it was built. Options and files as for `npm test`.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'

ensureInstalled(root, { workspaces: true })
ensureBuilt()
const given = process.argv.slice(2)
const all = readdirSync(join(root, 'src/server/test'))
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `src/server/test/${name}`)
const files = given.some((arg) => arg.endsWith('.ts')) ? [] : all
const args = ['scripts/run.mjs', 'test', '--code', 'src', ...given, ...files]
process.exitCode = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1
