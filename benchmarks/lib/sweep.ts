/** Finds how a subject adds many fastest, in the run itself: sizes of bulks and numbers in flight. */
import type { Bulk, Subject } from '../subjects/subject.js'
import type { Bench, Figures } from './scenario.js'
import { onStage } from './stage.js'

const wordsOf = ({ size, inFlight }: Bulk): string =>
  size === 1 ? `${inFlight} in flight` : `${size} x ${inFlight} in flight`

export interface Swept {
  readonly best: Bulk | undefined
  /** What was tried, for the report. */
  readonly note: string | undefined
}

/** Each setting on a server of its own. */
export async function sweep(bench: Bench, subject: Subject): Promise<Swept> {
  const bulks = triedOf(bench, subject)
  if (bulks.length < 2 || subject.missing?.() !== undefined || (bench.quick && subject.notInQuickRuns === true)) {
    return { best: bulks[0], note: undefined }
  }
  bench.progress(`sweep: ${subject.name}`)
  const figures = await bench.measured(`sweep of ${subject.name}`, 0, () => ratesOf(bench, subject, bulks))
  const rate = (bulk: Bulk): number => figures?.[wordsOf(bulk)] ?? 0
  const best = [...bulks].sort((a, b) => rate(b) - rate(a))[0]
  const all = bulks.map((bulk) => `${wordsOf(bulk)} ${Math.round(rate(bulk)).toLocaleString('en-US')}`).join(', ')
  const chosen = best === undefined ? 'none' : wordsOf(best)
  return { best, note: `${subject.name}: ${chosen}, the best of ${all} messages a second.` }
}

/** A quick run has time for a few. */
function triedOf(bench: Bench, { bulks = [], isExternal }: Subject): readonly Bulk[] {
  if (!bench.quick) return bulks
  if (isExternal === true) return [] // starting it takes longer than the rest
  return bulks.filter(({ size, inFlight }) => size === 1 || (size >= 250 && size <= 1_000 && inFlight <= 4))
}

async function ratesOf(bench: Bench, subject: Subject, bulks: readonly Bulk[]): Promise<Figures> {
  const count = bench.quick ? 4_000 : 20_000
  const rates: Record<string, number> = {}
  for (const bulk of bulks) {
    rates[wordsOf(bulk)] = await onStage(bench, {}, async (stage) => {
      const session = await stage.open(subject, { bulk })
      await session.ready()
      await session.add(count / 4, 'bulk')
      return count / (await session.add(count, 'bulk'))
    })
  }
  return rates
}
