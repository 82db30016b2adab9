import { setTimeout } from 'node:timers/promises'
import { findFamilies, type Families } from '../../doctor/families.js'
import { inLargestUnit } from '../../duration.js'
import { printable, quoted } from '../../text.js'
import { COUNTED } from '../change-rates.js'
import { failureLine, UsageError } from '../failure.js'
import { globalOptions, parseDelay, parseWhole, textOption, type RawOptions } from '../input.js'
import { isoTime, jsonText, table } from '../output.js'
import { screenOn } from '../screen.js'
import { withSession } from '../session.js'
import { Watcher, type Observation, type Watched } from '../watched.js'

export const DEFAULT_INTERVAL = '1s'
const [LEAST_MS, MOST_MS] = [100, 3_600_000]
/** The most queues to watch without names. */
const MOST_QUEUES = 200
const HEADINGS = [
  'PENDING',
  'DUE',
  'OLDEST',
  'IN FLIGHT',
  'DEAD',
  'GROWTH',
  ...COUNTED.map((kind) => kind.toUpperCase()),
  'LATE (MOST)',
]

export async function watch(queues: readonly string[], options: RawOptions): Promise<void> {
  if (queues.includes('')) throw new UsageError('name: expected a non-empty string')
  const intervalMs = parseInterval(textOption(options, 'interval') ?? DEFAULT_INTERVAL)
  const count = textOption(options, 'count')
  const most = count === undefined ? Infinity : parseWhole('--count', count, 999_999_999)
  const { json } = globalOptions(options)
  const over = new AbortController()
  const stop = (): void => over.abort()
  const stopped = new Promise<undefined>((resolve) => {
    over.signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  try {
    await withSession(options, async ({ delayed, reliable, access: openAccess }) => {
      const access = await openAccess()
      const families = limited(await findFamilies(access, queues))
      const watcher = new Watcher({ access, reliable, stats: (queue) => delayed(queue).stats() }, families)
      const show = json ? showJson : process.stdout.isTTY ? showAt(process.stdout) : showLines
      for (let shown = 1; ; shown++) {
        const startedAt = performance.now()
        const looking = watcher.look()
        looking.catch(() => undefined) // when the watch ends, the end of the session ends the reads
        const found = await Promise.race([looking, stopped])
        if (found === undefined) return
        show(found)
        if (shown === most) return
        const waitMs = Math.max(0, intervalMs - (performance.now() - startedAt))
        await setTimeout(waitMs, undefined, { signal: over.signal }).catch(() => undefined)
        if (over.signal.aborted) return
      }
    })
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeListener(signal, stop)
  }
}

function parseInterval(text: string): number {
  const millis = parseDelay(text)
  if (millis >= LEAST_MS && millis <= MOST_MS) return millis
  throw new UsageError(`--interval: expected 100ms to 1h, got ${quoted(text)}`)
}

function limited({ delayed, reliable, left: unseen }: Families): Families {
  const some = { delayed: delayed.slice(0, MOST_QUEUES), reliable: reliable.slice(0, MOST_QUEUES) }
  const left = unseen + delayed.length + reliable.length - some.delayed.length - some.reliable.length
  if (left > 0) console.error(failureLine(`${left} queues are not shown: name those to watch`))
  return { ...some, left }
}

function showJson(found: readonly Watched[]): void {
  console.log(jsonText({ at: isoTime(Date.now()), queues: found.map(document) }, 0))
}

function document(one: Watched): object {
  if (!('error' in one)) return one
  const { queue, kind, error } = one
  return { queue, kind, error: { code: error.code, message: error.message } }
}

function showLines(found: readonly Watched[]): void {
  const at = isoTime(Date.now())
  console.log(
    (found.length === 0 ? [`${at} no queue was found`] : found.map((one) => `${at} ${inWords(one)}`)).join('\n'),
  )
}

function inWords(one: Watched): string {
  const name = `${one.kind} ${quoted(one.queue)}`
  if ('error' in one) return `${name}: ${printable(one.error.message)}`
  const cells = cellsOf(one)
  const words = HEADINGS.flatMap((heading, at) => (cells[at] === '-' ? [] : [`${heading.toLowerCase()}: ${cells[at]}`]))
  return `${name}: ${[...words, ...(one.hint === null ? [] : [one.hint])].join(', ')}`
}

function showAt(terminal: NodeJS.WriteStream): (found: readonly Watched[]) => void {
  const screen = screenOn(terminal)
  return (found) => {
    const rows = found.map((one) => {
      const shards = 'shards' in one && one.shards !== null ? ` (${one.shards} shards)` : ''
      const name = `${printable(one.queue)}${shards}`
      return 'error' in one ? [name, printable(one.error.message)] : [name, ...cellsOf(one), one.hint ?? '']
    })
    const time = new Date().toISOString()
    screen.draw([`redelayed watch, ${time}; Ctrl-C ends it`, ...table([['QUEUE', ...HEADINGS, ''], ...rows])])
  }
}

function cellsOf({
  pending,
  due,
  oldestMs,
  inFlight,
  dead,
  growth,
  rates,
  isPartial,
  lateness,
}: Observation): string[] {
  const perSecond = (rate: number): string =>
    `${isPartial ? '>' : ''}${rate.toFixed(rate !== 0 && rate < 10 ? 1 : 0)}/s`
  return [
    String(pending),
    String(due),
    due === 0 ? '-' : inLargestUnit(oldestMs),
    inFlight === null ? '-' : String(inFlight),
    dead === null ? '-' : String(dead),
    growth === null ? '-' : `${growth > 0 ? '+' : ''}${growth.toFixed(1)}/s`,
    ...COUNTED.map((kind) => (rates === null ? '-' : perSecond(rates[kind]))),
    lateness === null ? '-' : `${inLargestUnit(lateness.medianMs)} (${inLargestUnit(lateness.mostMs)})`,
  ]
}
