import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { Problem } from '../../api/request.js'
import type { FlowStep, Message } from '../../api/types.js'
import { duration } from '../../lib/format.js'
import { useLoad } from '../../lib/use-load.js'
import { Moment } from '../../parts/moment.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'

interface TimelineProps {
  readonly topic: string
  readonly id: string
  readonly message: Message
}

const MOST = 200
const BAD = new Set(['failed', 'dead', 'expired', 'refused'])
const GOOD = new Set(['acknowledged', 'handled', 'delivered'])

/** The history of a message, the newest step last, with the time between steps. */
export function Timeline({ topic, id, message }: TimelineProps): JSX.Element {
  const { data, error, reload } = useLoad(
    (signal) => flowOf(topic, id, message, signal),
    [topic, id, message.state, message.attempts, message.dueAt],
  )
  const steps = data?.flow.length ? data.flow : failuresOf(message)
  const shown = steps.slice(-MOST)
  return (
    <section class="panel" aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      <ErrorNote error={error} onRetry={reload} />
      {shown.length === 0 && (
        <p class="empty">
          {data === undefined ? 'Loading…' : 'Nothing is known: there is no journal, and no delivery has failed.'}
        </p>
      )}
      {steps.length > MOST && <p class="muted small">{steps.length - MOST} earlier steps are left out.</p>}
      <ol class="timeline">
        {shown.map((step, at) => (
          <Step key={at} step={step} before={shown[at - 1]} />
        ))}
      </ol>
    </section>
  )
}

function Step({ step, before }: { readonly step: FlowStep; readonly before: FlowStep | undefined }): JSX.Element {
  const { change, at, attempt, by, shard, error } = step
  const kind = BAD.has(change) ? 'failed' : GOOD.has(change) ? 'done' : change
  return (
    <li>
      <div class="step-head">
        <State of={kind} as={change} />
        <Moment at={at} />
        {before && at - before.at >= 1 && <span class="muted small">+{duration(at - before.at)}</span>}
      </div>
      <div class="small muted">
        {!isNone(attempt) && attempt > 0 && <>attempt {attempt} </>}
        {!isNone(by) && by !== '' && (
          <>
            by <Outside text={by} limit={80} mono />{' '}
          </>
        )}
        {!isNone(shard) && (
          <>
            shard <Outside text={String(shard)} limit={20} />
          </>
        )}
      </div>
      {!isNone(error) && error !== '' && (
        <pre class="body small">
          <Outside text={error} limit={4_000} block mono />
        </pre>
      )}
    </li>
  )
}

/** The steps of the message's own flow, which have less detail: used if the service has no path for the whole flow. */
async function flowOf(
  topic: string,
  id: string,
  { flow }: Message,
  signal: AbortSignal,
): Promise<{ flow: readonly FlowStep[] }> {
  try {
    return await api.flow(topic, id, signal)
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return { flow: flow ?? [] }
    throw error
  }
}

/** Without a journal, a message still has its failed deliveries. */
function failuresOf({ failures }: Message): FlowStep[] {
  return (failures ?? []).map(({ attempt, at, reason }) => ({ change: 'failed', attempt, at, error: reason }))
}
