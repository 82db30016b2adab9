// `node scripts/run.mjs test --grep offer` runs scripts/test.ts with these arguments. This file and what it imports stay plain
// JavaScript because they run before the installation: they install what is missing, and with it tsx, which runs the rest.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ensureInstalled } from './ensure-installed.mjs'

const [node = '', , name = '', ...args] = process.argv
const script = new URL(`${name}.ts`, import.meta.url)
if (name === '' || !existsSync(script)) {
  console.error(`There is no script scripts/${name}.ts.`)
  process.exit(2)
}
ensureInstalled()
process.argv = [node, fileURLToPath(script), ...args]
const { register } = await import('tsx/esm/api')
register()
await import(script.href)
