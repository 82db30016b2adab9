import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Delivery } from '../../api/types.js'
import { count, duration } from '../../lib/format.js'
import type { Page, Pages } from '../../lib/use-pages.js'
import { Dialog } from '../../parts/dialog.js'
import { When } from '../../parts/moment.js'
import { More } from '../../parts/more.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import { Button } from '../../parts/button.js'
import { MessageLink, TopicLink } from '../messages/message-link.js'

/** The last webhooks of an endpoint with its answers. */
export function Deliveries({ pages }: { readonly pages: Pages<Page<Delivery>> }): JSX.Element {
  const [shown, setShown] = useState<Delivery | undefined>(undefined)
  return (
    <section class="panel" aria-labelledby="deliveries">
      <div class="panel-head">
        <h2 id="deliveries">Last webhooks</h2>
        <Button onClick={pages.reload}>Refresh</Button>
      </div>
      <ErrorNote error={pages.error} onRetry={pages.reload} />
      <Table<Delivery>
        label="Last webhooks"
        rows={pages.rows}
        rowKey={({ id, topic, attempt, at }) => `${topic}/${id}/${attempt}/${at}`}
        isLoading={pages.isLoading}
        empty="No webhook was sent in the last 7 days."
        columns={[
          { name: 'Answered', cell: ({ at }) => <When at={at} /> },
          { name: 'Outcome', cell: ({ outcome }) => <State of={outcome} /> },
          { name: 'Status', number: true, cell: ({ status }) => (status === null ? '–' : status) },
          { name: 'Took', number: true, cell: ({ tookMs }) => duration(tookMs) },
          { name: 'Attempt', number: true, cell: ({ attempt }) => count(attempt) },
          { name: 'Message', cell: ({ topic, id }) => <MessageLink topic={topic} id={id} /> },
          { name: 'Topic', cell: ({ topic }) => <TopicLink name={topic} /> },
          {
            name: 'Answer',
            wide: true,
            cell: (delivery) =>
              delivery.error === null && delivery.answer === '' ? (
                <span class="muted">empty</span>
              ) : (
                <button type="button" class="bare link" onClick={() => setShown(delivery)}>
                  <Outside text={delivery.error ?? delivery.answer} limit={60} />
                </button>
              ),
          },
        ]}
      />
      <More pages={pages} />
      {shown && <Answer of={shown} onClose={() => setShown(undefined)} />}
    </section>
  )
}

function Answer({ of, onClose }: { readonly of: Delivery; readonly onClose: () => void }): JSX.Element {
  return (
    <Dialog title={of.status === null ? 'No answer' : `Answer ${of.status}`} onClose={onClose}>
      {of.error !== null && (
        <p>
          <Outside text={of.error} limit={2_000} />
        </p>
      )}
      <pre class="body" tabIndex={0} aria-label="Answer">
        <Outside text={of.answer} limit={4_096} block mono />
      </pre>
      <div class="buttons end">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  )
}
