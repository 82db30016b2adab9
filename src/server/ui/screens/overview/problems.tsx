import type { JSX } from 'preact'
import type { Problem } from '../../api/types.js'
import { href, pathOf } from '../../lib/router.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'

const MOST = 12

/** The problems for an operator, each with a link to its screen. */
export function Problems({ of }: { readonly of: readonly Problem[] }): JSX.Element {
  if (of.length === 0) return <div class="note good">No problems known.</div>
  return (
    <section aria-label="Problems">
      <ul class="problems">
        {of.slice(0, MOST).map((problem) => (
          <li key={`${problem.code} ${problem.topic ?? problem.endpoint ?? problem.text}`}>
            <State of={problem.severity} />
            <span class="problem-text">
              <Outside text={problem.text} limit={400} />
            </span>
            <a href={placeOf(problem)}>{wordOf(problem)}</a>
          </li>
        ))}
        {of.length > MOST && (
          <li>
            <a href={href('/doctor')}>{of.length - MOST} more problems</a>
          </li>
        )}
      </ul>
    </section>
  )
}

function endpointOf({ endpoint, text }: Problem): string | undefined {
  return endpoint ?? /\bep_[A-Za-z0-9_-]{16}\b/.exec(text)?.[0]
}

function placeOf(problem: Problem): string {
  const endpoint = endpointOf(problem)
  if (endpoint !== undefined) return href(pathOf('endpoints', endpoint))
  if (problem.code === 'topic-waiting') return href('/agenda', { topic: problem.topic, show: 'overdue' })
  if (problem.topic !== undefined) return href(pathOf('topics', problem.topic))
  if (problem.code.includes('endpoint')) return href('/endpoints')
  if (problem.code.includes('journal') || problem.code.includes('restore')) return href('/journal')
  if (problem.code.includes('paused')) return href('/topics')
  return href('/doctor')
}

function wordOf(problem: Problem): string {
  if (endpointOf(problem) !== undefined) return 'Why?'
  return problem.topic !== undefined && problem.code !== 'topic-waiting' ? 'Topic' : 'Look'
}
