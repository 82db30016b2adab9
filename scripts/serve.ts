// `npm run serve`: the delay service from this checkout, with the flags of `redelayed-server`; `npm run serve -- key` makes an API key.
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { ensureUi } from './page-bundle.js'

ensureInstalled(root, { workspaces: true })
ensureBuilt()
await ensureUi()
// by a name that the compiler does not follow: the service is checked with its own settings
const main: string = '../src/server/cli/main.ts'
await import(main)
