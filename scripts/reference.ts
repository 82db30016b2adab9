// Writes docs/reference-options.md, docs/reference-errors.md and the table in docs/codecs.md: every public option with its type, default and range, and every error code
// with what to do, and what each codec keeps. They come from the doc comments of the source and from calls, so that they cannot differ from it; the advice is in
// scripts/reference/errors.ts. Fails when an exported type of options has no section, or a code has no advice.
//
//   npm run reference               writes the pages
//   node scripts/run.mjs reference --check
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'
import { codecsPage } from './reference/codecs.js'
import { errorsPage } from './reference/errors.js'
import { optionsPage } from './reference/options.js'

const pages = {
  'docs/codecs.md': codecsPage(),
  'docs/reference-options.md': optionsPage(),
  'docs/reference-errors.md': errorsPage(),
}
const problems: string[] = []
for (const [path, page] of Object.entries(pages)) {
  problems.push(...page.problems)
  const isStale = !existsSync(join(root, path)) || readFileSync(join(root, path), 'utf8') !== page.text
  if (!isStale || page.problems.length > 0) continue
  if (process.argv.includes('--check')) problems.push(`${path}: stale; run \`npm run reference\``)
  else writeFileSync(join(root, path), page.text)
}
for (const problem of problems) console.error(problem)
const rows = Object.values(pages).map((page) => page.count)
console.log(`${rows[0]} kinds of values, ${rows[1]} options, ${rows[2]} error codes, ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1
