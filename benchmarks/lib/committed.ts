/** CI's questions: does what must always hold hold, and has a ratio fallen behind the one that was committed? */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Finished } from './report.js'
import { present } from './scenario.js'

const FILE = fileURLToPath(new URL('../results/committed-ratios.json', import.meta.url))
/** Of the committed ratio: what is less is a fall, and not the spread of one machine. */
const LEAST_SHARE = 0.7

/** Ratios that stay Infinity or NaN would hold nothing. */
function ratiosOf(finished: readonly Finished[]): [name: string, measured: number][] {
  return finished.flatMap(({ scenario, result: { goals = [] } }) =>
    goals
      .filter(({ isRatio }) => isRatio === true)
      .map(({ what, measured }): [string, number] => [`${scenario.name}: ${what}`, measured]),
  )
}

export function commitRatios(finished: readonly Finished[]): void {
  for (const [name, measured] of ratiosOf(finished)) {
    if (!Number.isFinite(measured)) throw new Error(`${name} is ${measured}, which nothing can be held against`)
  }
  const rounded = ratiosOf(finished).map(([name, measured]) => [name, Number(measured.toPrecision(3))] as const)
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`)
}

function readCommitted(): Record<string, number | undefined> {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, number | undefined>
}

function isBehind(measured: number, committed: number | undefined): boolean {
  return !(Number.isFinite(committed) && measured >= Number(committed) * LEAST_SHARE)
}

/** Those of which a ratio fell: one second of a busy machine is enough for that in one short round. */
export function worthAnotherLook(finished: readonly Finished[]): Finished[] {
  const committed = readCommitted()
  return finished
    .filter(({ result: { goals = [] } }) => goals.every(({ isDuty, reached }) => isDuty !== true || reached))
    .filter((one) => ratiosOf([one]).some(([name, measured]) => isBehind(measured, committed[name])))
}

/** Prints what was compared; gives the exit code. */
export function compareWithCommitted(finished: readonly Finished[]): number {
  const committed = readCommitted()
  let [passed, failed] = [0, 0]
  const note = (isFine: boolean, text: string): void => {
    console.log(`${isFine ? 'ok' : 'FAILED'}: ${text}`)
    if (isFine) passed++
    else failed++
  }
  for (const { scenario, result, measurements } of finished) {
    for (const { what, measured, reached } of (result.goals ?? []).filter(({ isDuty }) => isDuty === true)) {
      note(reached, `${scenario.name}: ${what} ${measured}`)
    }
    for (const { subject, error } of measurements) {
      if (error !== undefined) note(false, `${scenario.name}: ${subject} could not be measured: ${error}`)
    }
  }
  for (const { scenario, result } of finished) {
    for (const { what, measured, rounds = [], isRatio } of result.goals ?? []) {
      if (isRatio !== true) continue
      const name = `${scenario.name}: ${what}`
      const before = committed[name]
      const reference = before === undefined ? 'nothing is committed' : `committed ${before}`
      const spread =
        rounds.length > 1
          ? ` (rounds: ${present(rounds)
              .map((one) => one.toPrecision(3))
              .join(', ')})`
          : ''
      note(!isBehind(measured, before), `${name} is ${measured.toPrecision(3)}${spread}, ${reference}`)
    }
  }
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}
