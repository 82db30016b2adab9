/** CI's question: has a ratio fallen far behind the one that was committed? */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Finished } from './report.js'

const FILE = fileURLToPath(new URL('../results/committed-ratios.json', import.meta.url))
/** A machine under load, or another one, may well be so much worse. */
const FAR_BEHIND = 0.5

/** Prints what was compared; gives the exit code. */
export function compareWithCommitted(finished: readonly Finished[]): number {
  const committed = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, number>
  let [passed, failed] = [0, 0]
  for (const [scenario, { goals = [] }] of finished) {
    for (const goal of goals.filter(({ isRatio }) => isRatio === true)) {
      const name = `${scenario.name}: ${goal.what}`
      const before = committed[name]
      if (before === undefined) {
        console.log(`FAILED: ${name} has no committed ratio in benchmarks/results/committed-ratios.json`)
        failed++
        continue
      }
      const isFine = goal.measured >= before * FAR_BEHIND
      console.log(`${isFine ? 'ok' : 'FAILED'}: ${name} is ${goal.measured.toFixed(2)}, committed ${before.toFixed(2)}`)
      if (isFine) passed++
      else failed++
    }
  }
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}
