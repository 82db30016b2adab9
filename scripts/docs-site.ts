// `npm run docs:site`: the documentation as static pages with search, in .cache/site/html: the pages of the repository, the API reference by
// TypeDoc, and the HTTP API from the OpenAPI document of the built service, which it starts on a Redis. Every link is checked.
//
//   npm run docs:site -- --serve              and shows it at http://127.0.0.1:4173
//   npm run docs:site -- --base /redelayed/   for an address with a path
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { brokenLinks } from './docs-site/links.js'
import { openApiPage, type OpenApi } from './docs-site/openapi-page.js'
import { sidebar, writePages } from './docs-site/pages.js'
import { ensureServerBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { repository } from './packed-links.js'
import { findRedis } from './redis.js'
import { startServiceProcess } from './service-process.js'

const { values } = parseArgs({
  options: { base: { type: 'string', default: '/' }, serve: { type: 'boolean', default: false } },
})
const { base, serve } = values
const program = join(root, 'docs/site')
const dir = join(root, '.cache/site')

ensureInstalled(root, { workspaces: true })
ensureInstalled(program)
rmSync(dir, { recursive: true, force: true })
mkdirSync(join(dir, 'public'), { recursive: true })

writePages(join(dir, 'pages'))
const site = { base, repository: repository(), sidebar: sidebar() }
writeFileSync(join(dir, 'site.json'), JSON.stringify(site))
const api = await openApi()
writeFileSync(join(dir, 'public/openapi.json'), JSON.stringify(api, null, 2))
writeFileSync(join(dir, 'pages/openapi.md'), openApiPage(api, base))
run('node_modules/typedoc/bin/typedoc', ['--out', join(dir, 'public/api'), '--logLevel', 'Warn'])
run(join(program, 'node_modules/vitepress/bin/vitepress.js'), ['build', program])

const problems = brokenLinks(join(dir, 'html'), base)
for (const problem of problems) console.error(problem)
console.log(`${join('.cache', 'site', 'html', 'index.html')}: ${problems.length} broken links`)
if (problems.length > 0) process.exit(1)
if (serve) run(join(program, 'node_modules/vitepress/bin/vitepress.js'), ['preview', program, '--port', '4173'])

/** What the built service says of itself. */
async function openApi(): Promise<OpenApi> {
  ensureServerBuilt()
  const redis = await findRedis()
  const service = await startServiceProcess(redis.url, ['--legacy-routes'])
  try {
    return (await (await fetch(`${service.url}/openapi.json`)).json()) as OpenApi
  } finally {
    await service.stop()
    await redis.stop()
  }
}

function run(script: string, args: string[]) {
  const env = { ...process.env, REDELAYED_SITE: dir }
  const { status } = spawnSync(process.execPath, [script, ...args], { cwd: root, stdio: 'inherit', env })
  if (status !== 0) process.exit(status ?? 1)
}
