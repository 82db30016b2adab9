/**
 * Root hooks: a test that leaves a socket, a server, a child process or a timer behind, or lets the library warn without
 * expecting it, fails the run. All such tests are listed together at the end, because mocha gives up the rest of the run
 * when a root `afterEach` throws. An unhandled rejection is listed too: mocha 12 lets it pass once anyone listens.
 */
import { relative } from 'node:path'
import { closeShared, openShared } from './redis.js'
import { listenForWarnings, takeWarningProblems } from './warnings.js'

export { expectWarning } from './warnings.js'

const WATCHED = new Set(['TCPSocketWrap', 'TCPServerWrap', 'TLSWrap', 'ProcessWrap', 'Timeout'])
/** How long closed objects may take to disappear: ioredis keeps a timer of two seconds for a connection that had ended already. */
const SETTLE_MS = 3_000
/** Here one service runs beside all tests of a file, with timers and processes of its own; what it leaves is found after the last test. */
const SERVED = /\/browser\/|\/scopes\.test/
/** The limits of the tests are meant for a machine that does nothing else; they only have to end what hangs. */
const PATIENCE = 3

type Counts = Map<string, number>

const problems: string[] = []
const rejections: string[] = []
let atStart: Counts = new Map()
let beforeTest: Counts = new Map()

// Every hook counts after an await: by then mocha has armed the timeout of the hook itself, in all of them alike.
export const mochaHooks = {
  async beforeAll(this: Mocha.Context): Promise<void> {
    const root = this.test?.parent
    if (root) prolong(root)
    listenForWarnings()
    process.on('unhandledRejection', (reason) => {
      rejections.push(`unhandled rejection: ${(reason instanceof Error && reason.stack) || String(reason)}`)
    })
    await Promise.resolve()
    atStart = resources()
    await openShared()
  },

  async beforeEach(): Promise<void> {
    await Promise.resolve()
    beforeTest = resources()
  },

  async afterEach(this: Mocha.Context): Promise<void> {
    const test = this.currentTest
    await Promise.resolve()
    if (SERVED.test(test?.file ?? '')) for (const kind of ['Timeout', 'ProcessWrap']) beforeTest.set(kind, Infinity)
    const found = [...(await leaksSince(beforeTest)), ...takeWarningProblems(), ...rejections.splice(0)]
    for (const problem of found) {
      const line = `${relative(process.cwd(), test?.file ?? '')}: "${test?.fullTitle() ?? ''}": ${problem}`
      console.error(`      ✘ ${line}`)
      problems.push(line)
    }
  },

  async afterAll(): Promise<void> {
    await closeShared()
    const late = [...(await leaksSince(atStart)), ...takeWarningProblems(), ...rejections.splice(0)]
    problems.push(...late.map((problem) => `after the last test: ${problem}`))
    if (problems.length > 0) throw new Error(`left behind by tests:\n  ${problems.join('\n  ')}`)
  },
}

function prolong(suite: Mocha.Suite): void {
  const { _beforeAll, _beforeEach, _afterEach, _afterAll } = suite as unknown as Record<string, Mocha.Hook[]>
  for (const each of [
    ...suite.tests,
    ...[_beforeAll, _beforeEach, _afterEach, _afterAll].flatMap((hooks) => hooks ?? []),
  ])
    each.timeout(each.timeout() * PATIENCE)
  for (const each of suite.suites) prolong(each)
}

/** The handles and timers that keep the process alive now. */
function resources(): Counts {
  const counts: Counts = new Map()
  for (const kind of process.getActiveResourcesInfo())
    if (WATCHED.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

/** Gives closing sockets a moment, then names what there is more of than before. */
async function leaksSince(before: Counts): Promise<string[]> {
  const deadline = performance.now() + SETTLE_MS
  for (;;) {
    const more = [...resources()].filter(([kind, count]) => count > (before.get(kind) ?? 0))
    if (more.length === 0) return []
    if (performance.now() >= deadline)
      return more.map(([kind, count]) => `left ${count - (before.get(kind) ?? 0)} ${kind} open`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
