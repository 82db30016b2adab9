/** CI's questions: does what must always hold hold, and has a ratio fallen far behind the one that was committed? */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Finished } from './report.js'
import type { Scenario } from './scenario.js'

const FILE = fileURLToPath(new URL('../results/committed-ratios.json', import.meta.url))
/** A machine under load, or another one, may well be so much worse. */
const FAR_BEHIND = 0.5

function ratiosOf(finished: readonly Finished[]): [name: string, measured: number][] {
  return finished.flatMap(([scenario, { goals = [] }]) =>
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

function isFarBehind(measured: number, committed: number | undefined): boolean {
  return !(Number.isFinite(committed) && measured >= Number(committed) * FAR_BEHIND)
}

/** Those of which one round gave a ratio that fell: one second of a busy machine is enough for that. */
export function worthAnotherLook(finished: readonly Finished[]): Scenario[] {
  const committed = readCommitted()
  return finished
    .filter(([, { goals = [] }]) => goals.every(({ isDuty, reached }) => isDuty !== true || reached))
    .filter((one) => ratiosOf([one]).some(([name, measured]) => isFarBehind(measured, committed[name])))
    .map(([scenario]) => scenario)
}

/** Prints what was compared; gives the exit code. */
export function compareWithCommitted(finished: readonly Finished[]): number {
  const committed = readCommitted()
  let [passed, failed] = [0, 0]
  for (const [scenario, { goals = [] }] of finished) {
    for (const { what, measured, reached } of goals.filter(({ isDuty }) => isDuty === true)) {
      console.log(`${reached ? 'ok' : 'FAILED'}: ${scenario.name}: ${what} ${measured}`)
      if (reached) passed++
      else failed++
    }
  }
  for (const [name, measured] of ratiosOf(finished)) {
    const before = committed[name]
    const isFine = !isFarBehind(measured, before)
    const reference = before === undefined ? 'nothing is committed' : `committed ${before}`
    console.log(`${isFine ? 'ok' : 'FAILED'}: ${name} is ${measured.toPrecision(3)}, ${reference}`)
    if (isFine) passed++
    else failed++
  }
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}
