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

/** So many of one kind are named. */
const MOST_NAMED = 20
/** A journal that is so far behind cannot be catching up with a burst only. */
const BEHIND_MS = 10_000
const BEHIND_CHANGES = 10_000

const TROUBLES: Readonly<Record<EndpointTrouble['is'], readonly [Problem['severity'], code: string, text: string]>> = {
  gone: ['error', 'endpoint-disabled', 'is disabled: it answered 410'],
  failing: ['error', 'endpoint-disabled', 'is disabled: nothing was delivered for five days'],
  operator: ['warning', 'endpoint-disabled', 'is disabled by an operator'],
  broken: ['error', 'endpoint-failing', 'fails, so webhooks to it wait'],
}

/** What is paused of the topics that a key is for. */
export function problemsOfTopics(topics: readonly TopicSample[]): Problem[] {
  const paused = topics.filter((each) => each.paused.length > 0)
  return [
    ...paused.slice(0, MOST_NAMED).map(({ topic, paused: sides }): Problem => {
      const what =
        sides.length === 2 ? 'receiving and pushes are' : sides[0] === 'push' ? 'its pushes are' : 'receiving is'
      return { severity: 'warning', code: 'topic-paused', text: `The topic ${topic}: ${what} paused`, topic }
    }),
    ...more(paused.length, 'topic-paused', 'topics are paused'),
  ]
}

/** What is wrong with the service itself. */
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

/** How many errors and warnings the doctor has found. */
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
