// `npm run demo:journal`: messages are pending, their Redis is killed and its data are deleted, and the journal brings them back. Works from
// a fresh clone with Node and a redis-server or valkey-server on PATH. Exit code 0 when each was delivered once and none early.
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'

ensureInstalled(root, { workspaces: true })
ensureBuilt()
// by a name that the compiler does not follow: the service is checked with its own settings
const demo: string = '../src/server/demo/journal-demo.ts'
const { main } = (await import(demo)) as { main: (args: readonly string[]) => Promise<number> }
process.exit(await main(process.argv.slice(2)))
