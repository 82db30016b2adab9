import type { Report } from './doctor.js'
import type { EndpointTrouble, Health } from './health.js'
import type { TopicSample } from './sampler.js'

export interface Problem {
  readonly severity: 'error' | 'warning'
  readonly code: string
  readonly text: string
  readonly topic?: string
  readonly endpoint?: string
}

/** The most problems of a kind that are named. */
const MOST_NAMED = 20
/** A journal that is further behind is not just catching up with a burst. */
const BEHIND_MS = 10_000
const BEHIND_CHANGES = 10_000
/** Messages that have been due for this time are not just a burst that consumers are handling. */
const WAITING_MS = 60_000

const TROUBLES: Readonly<Record<EndpointTrouble['is'], readonly [Problem['severity'], code: string, text: string]>> = {
  gone: ['error', 'endpoint-disabled', 'is disabled: it answered 410'],
  failing: ['error', 'endpoint-disabled', 'is disabled: nothing was delivered for five days'],
  operator: ['warning', 'endpoint-disabled', 'is disabled by an operator'],
  broken: ['error', 'endpoint-failing', 'fails, so webhooks to it wait'],
}

/** The problems of topics: their pauses. */
export function problemsOfTopics(topics: readonly TopicSample[]): Problem[] {
  const paused = topics.filter((each) => each.paused.length > 0)
  return [
    ...paused.slice(0, MOST_NAMED).map(({ topic, paused: sides }): Problem => {
      const what =
        sides.length === 2 ? 'receiving and pushes are' : sides[0] === 'push' ? 'its pushes are' : 'receiving is'
      return { severity: 'warning', code: 'topic-paused', text: `The topic ${topic}: ${what} paused`, topic }
    }),
    ...more(paused.length, 'topic-paused', 'topics are paused'),
    ...problemsOfWaiting(topics),
  ]
}

/** Where due messages wait for consumers: in one line, as ten thousand topics can have such. */
function problemsOfWaiting(topics: readonly TopicSample[]): Problem[] {
  const waiting = topics.filter(
    ({ visible, oldestMs, paused }) => visible > 0 && oldestMs >= WAITING_MS && !paused.includes('receive'),
  )
  const [first] = waiting
  if (first === undefined) return []
  const { topic, visible, inFlight, oldestMs } = waiting.reduce((a, b) => (b.oldestMs > a.oldestMs ? b : a), first)
  const many = visible === 1 ? '1 due message waits' : `${visible} due messages wait`
  const others =
    waiting.length === 1
      ? ''
      : `; ${waiting.length - 1} more ${waiting.length === 2 ? 'topic has' : 'topics have'} such`
  const text = `The topic ${topic}: ${many}, the oldest for ${inWords(oldestMs)}${inFlight === 0 ? ', and no consumer has one' : ''}${others}`
  return [{ severity: 'warning', code: 'topic-waiting', text, topic }]
}

function inWords(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  const [value, unit] =
    minutes < 120
      ? [minutes, 'minute']
      : minutes < 2_880
        ? [Math.floor(minutes / 60), 'hour']
        : [Math.floor(minutes / 1_440), 'day']
  return `${value} ${unit}${value === 1 ? '' : 's'}`
}

/** The problems of the service itself. */
export function problemsOfService(
  { redis, journalAnswers, endpoints }: Health,
  lag: { readonly pending: number; readonly lagMs: number | null },
): Problem[] {
  const problems: Problem[] = []
  if (redis.state === 'unavailable')
    problems.push({ severity: 'error', code: 'redis-unavailable', text: 'Redis does not answer' })
  if (journalAnswers === false)
    problems.push({
      severity: 'error',
      code: 'journal-unavailable',
      text: 'The database of the journal does not answer',
    })
  if (lag.pending >= BEHIND_CHANGES || (lag.lagMs ?? 0) >= BEHIND_MS)
    problems.push({
      severity: 'warning',
      code: 'journal-behind',
      text: `The journal lacks ${lag.pending} ${lag.pending === 1 ? 'change' : 'changes'} that Redis has`,
    })
  for (const { id, name, is } of endpoints.slice(0, MOST_NAMED)) {
    const [severity, code, text] = TROUBLES[is]
    problems.push({ severity, code, text: `The endpoint ${name} ${text}`, endpoint: id })
  }
  return [...problems, ...more(endpoints.length, 'endpoint-failing', 'endpoints are disabled or fail')]
}

/** The number of errors and warnings that the doctor has found, as one problem. */
export function problemsOfDoctor({ findings }: Report): Problem[] {
  const of = (severity: string): number => findings.filter((each) => each.severity === severity).length
  const [errors, warnings] = [of('error'), of('warning')]
  if (errors + warnings === 0) return []
  const parts = [
    errors > 0 && `${errors} ${errors === 1 ? 'error' : 'errors'}`,
    warnings > 0 && `${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`,
  ]
  return [
    {
      severity: errors > 0 ? 'error' : 'warning',
      code: 'doctor',
      text: `The doctor has found ${parts.filter(Boolean).join(' and ')}`,
    },
  ]
}

function more(count: number, code: string, text: string): Problem[] {
  return count > MOST_NAMED ? [{ severity: 'warning', code, text: `${count - MOST_NAMED} more ${text}` }] : []
}
