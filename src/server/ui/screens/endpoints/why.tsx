import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import type { Delivery, Endpoint } from '../../api/types.js'
import { serverNow } from '../../lib/clock.js'
import { count, duration } from '../../lib/format.js'
import { Moment, When } from '../../parts/moment.js'
import { Note } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'

interface WhyProps {
  readonly of: Endpoint
  readonly deliveries: readonly Delivery[]
  readonly isLoading: boolean
}

/** Explains why webhooks fail: what holds them back, and the last answer that was not a success. */
export function Why({ of: endpoint, deliveries, isLoading }: WhyProps): JSX.Element | null {
  const failed = deliveries.filter(({ outcome }) => outcome !== 'delivered')
  const last = failed[0]
  const held = heldBack(endpoint)
  if (last === undefined && held === undefined) {
    if (isLoading) return null
    return (
      <Note kind="good">
        {deliveries.length === 0
          ? 'No webhook was sent in the last 7 days.'
          : `The last ${count(deliveries.length)} webhooks were delivered.`}
      </Note>
    )
  }
  const isOver = last !== deliveries[0]
  return (
    <section class={`panel why ${held !== undefined || !isOver ? 'bad' : ''}`} aria-labelledby="why">
      <h2 id="why">Why webhooks fail</h2>
      {held !== undefined && <p>{held}</p>}
      {last && (
        <>
          <p>
            {count(failed.length)} of the last {count(deliveries.length)} failed{isOver ? ', the newest did not' : ''}:{' '}
            {summary(failed)}. The last failure was <When at={last.at} />:
          </p>
          <p class="reason">
            <strong>{last.status === null ? 'No answer' : `Status ${last.status}`}</strong>{' '}
            {last.error !== null && <Outside text={last.error} limit={1_000} />}
          </p>
          {last.answer !== '' && (
            <pre class="body" tabIndex={0} aria-label="The last answer">
              <Outside text={last.answer} limit={4_096} block mono />
            </pre>
          )}
        </>
      )}
    </section>
  )
}

function heldBack({ enabled, disabled, gate }: Endpoint): JSX.Element | string | undefined {
  if (!enabled) {
    const why = {
      operator: 'An operator has disabled it',
      gone: 'It answered 410 (gone), so it is disabled',
      failing: 'Nothing was delivered for five days, so it is disabled',
    }[disabled?.reason ?? 'operator']
    return (
      <>
        {why}: its messages wait
        {disabled && (
          <>
            {' '}
            since <Moment at={disabled.at} />
          </>
        )}
        .
      </>
    )
  }
  if (gate?.state === 'open' || gate?.state === 'half-open') {
    const left = isNone(gate.until) ? undefined : gate.until - serverNow()
    return `Its breaker is open because too many webhooks failed: one webhook tries ${left !== undefined && left > 0 ? `in ${duration(left)}` : 'each 30 s'}, and the others wait.`
  }
  if (!isNone(gate?.pausedUntil) && gate.pausedUntil > serverNow())
    return `It asked for a pause, which ends in ${duration(gate.pausedUntil - serverNow())}.`
  return undefined
}

/** `31 × 500, 4 × no answer` */
function summary(failed: readonly Delivery[]): string {
  const counts = new Map<string, number>()
  for (const { status } of failed) {
    const kind = status === null ? 'no answer' : String(status)
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, 4)
    .map(([kind, times]) => `${times} × ${kind}`)
    .join(', ')
}
