import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import type { DeadLetter } from '../../api/types.js'
import { count } from '../../lib/format.js'
import { href, pathOf, setQuery, useQuery } from '../../lib/router.js'
import { useLoad } from '../../lib/use-load.js'
import { usePages } from '../../lib/use-pages.js'
import { visibleLine } from '../../lib/visible-text.js'
import { SelectField, TextField } from '../../parts/field.js'
import { Head } from '../../parts/head.js'
import { When } from '../../parts/moment.js'
import { More } from '../../parts/more.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { Table } from '../../parts/table.js'
import { MessageLink, TopicLink } from '../messages/message-link.js'
import { Bulk } from './bulk.js'
import { SINCE, sinceOf } from './since.js'

const REFRESH_MS = 10_000

/** The dead letters, with actions for all that match. */
export function DeadLetters(): JSX.Element {
  const topic = useQuery('topic')
  const endpoint = useQuery('endpoint')
  const since = useQuery('since')
  const reason = useQuery('reason')
  const filter = {
    ...(topic !== '' && { topic }),
    ...(endpoint !== '' && { endpoint }),
    ...(sinceOf(since) !== undefined && { since: sinceOf(since) }),
    ...(reason !== '' && { reason }),
  }
  const pages = usePages(
    (cursor, signal) => api.deadLetters({ ...filter, cursor }, signal),
    [topic, endpoint, since, reason],
    // with these two the service looks at each dead letter
    endpoint === '' && reason === '' ? { everyMs: REFRESH_MS } : {},
  )
  const { data: endpoints } = useLoad((signal) => api.endpoints({ limit: 200 }, signal), [])
  const options = [
    ['', 'Any endpoint'] as const,
    ...(endpoints?.rows ?? []).map(({ id, url, description }) => [id, visibleLine(description || url, 60)] as const),
  ]
  const set = (name: string) => (value: string) => setQuery({ [name]: value }, { replace: true })
  const isFiltered = Object.keys(filter).length > 0
  return (
    <>
      <Head title="Dead letters" />
      <div class="filters" role="search">
        <TextField label="Topic" value={topic} isSearch placeholder="all topics" onChange={set('topic')} />
        <SelectField label="Endpoint" value={endpoint} options={options} onChange={set('endpoint')} />
        <SelectField label="Died" value={since} options={SINCE} onChange={set('since')} />
        <TextField label="Reason" value={reason} placeholder="part of it" onChange={set('reason')} />
        {isFiltered && (
          <a class="button" href={href('/dead-letters')}>
            Clear
          </a>
        )}
      </div>
      <Bulk
        key={JSON.stringify(filter)}
        filter={filter}
        matched={pages.last?.matched}
        isEmpty={pages.rows.length === 0}
        onDone={pages.reload}
      />
      <ErrorNote error={pages.error} onRetry={pages.reload} />
      <div class="panel">
        <Table<DeadLetter>
          label="Dead letters"
          rows={pages.rows}
          rowKey={({ topic: of, id }) => `${of}/${id}`}
          isLoading={pages.isLoading}
          empty={isFiltered ? 'No dead letter matches.' : 'There are no dead letters.'}
          columns={[
            { name: 'Message', cell: ({ topic: of, id }) => <MessageLink topic={of} id={id} /> },
            { name: 'Topic', cell: ({ topic: of }) => <TopicLink name={of} /> },
            { name: 'Died', cell: ({ diedAt }) => <When at={diedAt} /> },
            { name: 'Attempts', number: true, cell: ({ attempts }) => (attempts === null ? '–' : count(attempts)) },
            { name: 'Reason', wide: true, cell: (row) => <Reason of={row} /> },
            {
              name: 'Endpoint',
              cell: ({ endpoint: of }) =>
                isNone(of) ? (
                  <span class="muted">–</span>
                ) : (
                  <a href={href(pathOf('endpoints', of))} title={of}>
                    <Outside text={options.find(([id]) => id === of)?.[1] ?? of} limit={60} />
                  </a>
                ),
            },
          ]}
        />
        <More pages={pages} />
      </div>
    </>
  )
}

function Reason({ of: { reason, lastAnswer } }: { readonly of: DeadLetter }): JSX.Element {
  const answer =
    lastAnswer === null || lastAnswer === undefined
      ? undefined
      : typeof lastAnswer === 'string'
        ? lastAnswer
        : lastAnswer.status === null
          ? (lastAnswer.error ?? undefined)
          : `answered ${lastAnswer.status}`
  return (
    <>
      <Outside text={reason} limit={160} />
      {answer !== undefined && answer !== reason && (
        <div class="small muted">
          <Outside text={answer} limit={160} />
        </div>
      )}
    </>
  )
}
