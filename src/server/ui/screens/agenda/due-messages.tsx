import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { serverNow } from '../../lib/clock.js'
import { iso, moment } from '../../lib/format.js'
import { useQuery } from '../../lib/router.js'
import { usePages } from '../../lib/use-pages.js'
import { Button } from '../../parts/button.js'
import { More } from '../../parts/more.js'
import { ErrorNote } from '../../parts/notes.js'
import { MessageTable } from '../messages/message-table.js'

interface DueMessagesProps {
  readonly topic: string
  readonly show: string
  /** The end of the histogram. */
  readonly end: number | undefined
}

/** The messages of a bar, the overdue ones, or those after the histogram; the earliest first. */
export function DueMessages({ topic, show, end }: DueMessagesProps): JSX.Element {
  const from = useQuery('from')
  const to = useQuery('to')
  const pages = usePages(
    (cursor, signal) => {
      const bounds =
        show === 'overdue'
          ? { from: 0, to: Math.round(serverNow()) }
          : show === 'later'
            ? { from: end ?? 0, to: 8.64e15 }
            : { from, to }
      return api.agendaMessages({ topic, cursor, ...bounds }, signal)
    },
    [topic, show, from, to, show === 'later' && end === undefined],
  )
  const title =
    show === 'overdue'
      ? 'Overdue'
      : show === 'later'
        ? 'Later'
        : `Due from ${moment(Number(from))} to ${moment(Number(to))}`
  return (
    <section class="panel" aria-labelledby="due">
      <div class="panel-head">
        <h2 id="due" title={show === 'bar' ? `${iso(Number(from))} – ${iso(Number(to))}` : undefined}>
          {title}
        </h2>
        {show === 'overdue' && <span class="muted small">the oldest first</span>}
        <Button onClick={pages.reload}>Refresh</Button>
      </div>
      <ErrorNote error={pages.error} onRetry={pages.reload} />
      <MessageTable label={title} rows={pages.rows} isLoading={pages.isLoading} empty="No messages are due then." />
      <More pages={pages} />
    </section>
  )
}
