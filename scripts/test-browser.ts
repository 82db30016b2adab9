// `npm run test:browser`: the page in a Chromium, on a service with a Redis and a journal of its own. Options and files as for `npm test`, and
// `--screenshots <folder>` for a picture of each screen; `--pictures` makes the pictures of the documentation instead, in some minutes. It installs no browser: CHROMIUM names one, else it is /usr/bin/chromium.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { buildUi } from './page-bundle.js'

const chromium = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
if (!existsSync(chromium)) {
  console.error(`There is no ${chromium}. Install it ("apt-get install chromium"), or name another one in CHROMIUM.`)
  console.log('0 passed, 1 failed')
  process.exit(1)
}
ensureInstalled(root, { workspaces: true })
ensureBuilt()
console.log(await buildUi())

const given = process.argv.slice(2)
const at = given.indexOf('--screenshots')
const [, folder] = at < 0 ? [] : given.splice(at, 2)
if (folder !== undefined) mkdirSync(folder, { recursive: true })
const pictures = given.indexOf('--pictures')
if (pictures >= 0) given.splice(pictures, 1, 'src/server/test/browser/pictures.ts')
const folderOfTests = 'src/server/test/browser'
const all = readdirSync(join(root, folderOfTests)).flatMap((name) =>
  name.endsWith('.test.ts') ? [`${folderOfTests}/${name}`] : [],
)
const files = given.some((arg) => arg.endsWith('.ts')) ? [] : all
const args = ['scripts/run.mjs', 'test', '--code', 'src', '--redis', 'none', '--processes', '1', ...given, ...files]
const env = {
  ...process.env,
  ...(folder !== undefined && { REDELAYED_SCREENSHOTS: resolve(folder) }),
  REDELAYED_PICTURES: join(root, 'docs/images'),
}
process.exitCode = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env }).status ?? 1
