// `npm run test:tour`: runs all commands of docs/tour.md, one after another in one shell, in an empty folder, with the packed library and a
// Redis of its own, and compares what they print. Ends with the line `N passed, N failed`: one for each block of commands.
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureBuilt } from './ensure-built.js'
import { npm, root } from './ensure-installed.mjs'
import { describe, findRedis } from './redis.js'
import { runShell } from './tour/shell.js'
import { differences, stepsOf } from './tour/steps.js'

const PAGE = 'docs/tour.md'
const LIMIT_MS = 180_000
/** Between the output of two blocks. */
const BORDER = '--- next block ---'

ensureBuilt()
const dir = mkdtempSync(join(tmpdir(), 'redelayed-tour-'))
const redis = await findRedis()
console.log(describe(redis))
let failed = 0
const steps = stepsOf(readFileSync(join(root, PAGE), 'utf8'))
try {
  npm(['pack', '--pack-destination', dir, '--ignore-scripts', '--silent'], { cwd: root, stdio: 'ignore' })
  const tarball = join(dir, readdirSync(dir).find((file) => file.endsWith('.tgz')) ?? '')
  const commands = steps.map(({ commands }) =>
    commands
      .replace('npm install redelayed', `npm install --no-audit --no-fund ${tarball}`)
      .replace('redis://127.0.0.1:6379', redis.url),
  )
  // a shell of its own process group: what it started ends with it
  writeFileSync(
    join(dir, 'tour.sh'),
    `set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${commands.join(`\necho '${BORDER}'\n`)}`,
  )
  const { output, code } = await runShell('exec sh tour.sh', { cwd: dir, limitMs: LIMIT_MS })
  const outputs = output.split(`${BORDER}\n`)
  for (const [index, { line, expected }] of steps.entries()) {
    const printed = outputs[index]
    const isLast = index === outputs.length - 1
    const problems = printed === undefined ? ['It was not reached.'] : differences(printed, expected)
    if (isLast && code !== 0) problems.push(`The shell ended with exit code ${code}.`)
    console.log(`${problems.length === 0 ? 'ok    ' : 'FAILED'}  ${PAGE}:${line}`)
    if (problems.length === 0) continue
    failed++
    console.log([...problems, 'It printed:', printed ?? ''].join('\n'))
  }
} finally {
  await redis.stop()
  rmSync(dir, { recursive: true, force: true })
}
console.log(`${steps.length - failed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)
