import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import type { Topic } from '../../api/types.js'
import { href, pathOf, setQuery, useQuery } from '../../lib/router.js'
import { usePages } from '../../lib/use-pages.js'
import { SelectField, TextField } from '../../parts/field.js'
import { Head } from '../../parts/head.js'
import { More } from '../../parts/more.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { State } from '../../parts/state.js'
import { Table } from '../../parts/table.js'
import { TopicLink } from '../messages/message-link.js'
import { countColumns } from './count-columns.js'
import { PauseButton } from './pause-button.js'
import { pausedText } from './paused.js'

const REFRESH_MS = 5_000

const SORTS = [
  ['name', 'Name'],
  ['total', 'Most messages'],
  ['visible', 'Most due'],
  ['delayed', 'Most delayed'],
  ['dead', 'Most dead letters'],
  ['oldest', 'Oldest due'],
] as const

export function Topics(): JSX.Element {
  const search = useQuery('search')
  const sort = useQuery('sort') || 'name'
  const pages = usePages((cursor, signal) => api.topics({ search, sort, cursor }, signal), [search, sort], {
    everyMs: REFRESH_MS,
  })
  return (
    <>
      <Head title="Topics" />
      <div class="filters" role="search">
        <TextField
          label="Name"
          value={search}
          isSearch
          placeholder="part of a name"
          onChange={(value) => setQuery({ search: value }, { replace: true })}
        />
        <SelectField
          label="Order"
          value={sort}
          options={SORTS}
          onChange={(value) => setQuery({ sort: value }, { replace: true })}
        />
      </div>
      <ErrorNote error={pages.error} onRetry={pages.reload} />
      {pages.last?.complete === false && (
        <Note>The topics are still being counted, so some counts are too low. They are refreshed automatically.</Note>
      )}
      <div class="panel">
        <Table<Topic>
          label="Topics"
          rows={pages.rows}
          rowKey={({ name }) => name}
          isLoading={pages.isLoading}
          empty={
            search === '' ? (
              <>
                No topics yet. A push makes one: <code>POST /v1/topics/orders/messages</code>
              </>
            ) : (
              'No topic has this in its name.'
            )
          }
          columns={[
            {
              name: 'Topic',
              wide: true,
              cell: ({ name, paused, settings }) => (
                <>
                  <TopicLink name={name} />{' '}
                  {pausedText(paused) !== undefined && <State of="paused" as={pausedText(paused) ?? ''} />}
                  {!isNone(settings?.endpoint) && (
                    <a class="small" href={href(pathOf('endpoints', settings.endpoint))}>
                      webhook
                    </a>
                  )}
                </>
              ),
            },
            ...countColumns<Topic>(({ name, counts, oldestMs }) => ({
              topic: name,
              counts,
              oldestMs: oldestMs ?? counts?.oldestMs,
            })),
            {
              name: 'Actions',
              quiet: true,
              cell: ({ name, paused }) => <PauseButton topic={name} paused={paused} onDone={pages.reload} isShort />,
            },
          ]}
        />
        <More pages={pages} />
      </div>
    </>
  )
}
