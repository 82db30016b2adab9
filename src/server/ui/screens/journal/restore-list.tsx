import type { JSX } from 'preact'
import type { Restore } from '../../api/types.js'
import { count, duration } from '../../lib/format.js'
import { When } from '../../parts/moment.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'
import { Table } from '../../parts/table.js'

const MOST = 100

/** The last restores of all instances, running ones first. */
export function RestoreList({ of }: { readonly of: readonly Restore[] | undefined }): JSX.Element {
  const rows = [...(of ?? [])].sort(
    (a, b) => Number(b.state === 'running') - Number(a.state === 'running') || b.startedAt - a.startedAt,
  )
  return (
    <section class="panel" aria-labelledby="restores">
      <h2 id="restores">Restores</h2>
      <Table<Restore>
        label="Restores"
        rows={rows.slice(0, MOST)}
        rowKey={({ id }) => id}
        isLoading={of === undefined}
        empty="No restore was started by hand. The instances put back what Redis loses by themselves."
        columns={[
          {
            name: 'Restore',
            cell: ({ state, dryRun }) => (
              <>
                <State of={state} />
                {dryRun && <span class="tag">dry run</span>}
              </>
            ),
          },
          { name: 'Progress', wide: true, cell: (restore) => <Progress of={restore} /> },
          { name: 'Put back', number: true, cell: ({ restored }) => count(restored) },
          {
            name: 'What',
            cell: ({ topic, messageId, expired }) => (
              <>
                {topic === null ? 'all topics' : <Outside text={topic} limit={80} />}
                {messageId !== null && (
                  <>
                    {' / '}
                    <Outside text={messageId} limit={40} mono />
                  </>
                )}
                {expired && <span class="tag">expired too</span>}
              </>
            ),
          },
          { name: 'Started', cell: ({ startedAt }) => <When at={startedAt} /> },
          { name: 'Key', cell: ({ key }) => <Outside text={key} limit={24} mono /> },
        ]}
      />
    </section>
  )
}

function Progress({ of }: { readonly of: Restore }): JSX.Element {
  const { state, checked, total, topics, topicsDone, perSecond, msLeft, problem } = of
  const isRunning = state === 'running'
  const part = total === null || total === 0 ? undefined : Math.min(1, checked / total)
  return (
    <>
      {isRunning && <progress aria-label="Checked" max={1} {...(part !== undefined && { value: part })} />}
      <div class="small">
        {part !== undefined && isRunning && <strong>{Math.floor(part * 100)} % </strong>}
        {count(checked)} {total === null ? 'checked' : `of about ${count(Math.max(total, checked))} checked`},{' '}
        {count(topicsDone)} of {count(topics)} topics
        {isRunning && perSecond > 0 && `, ${count(perSecond)} a second`}
        {isRunning && msLeft !== null && `, ${duration(msLeft)} left`}
      </div>
      {problem && (
        <div class="small bad-text">
          <Outside text={problem.detail ?? problem.title} limit={300} />
        </div>
      )}
    </>
  )
}
