import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import type { Queue } from '../../api/types.js'
import { count, duration } from '../../lib/format.js'
import { href, pathOf, setQuery, useQuery } from '../../lib/router.js'
import { usePages } from '../../lib/use-pages.js'
import { TextField } from '../../parts/field.js'
import { Head } from '../../parts/head.js'
import { When } from '../../parts/moment.js'
import { More } from '../../parts/more.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { Table } from '../../parts/table.js'

const figure = (value: number | null | undefined): string => (isNone(value) ? '–' : count(value))

/** Each look at the queues scans all keys. */
const REFRESH_MS = 30_000

/** The queues that only libraries use, also those in Java. */
export function Queues(): JSX.Element {
  const search = useQuery('search')
  const pages = usePages((cursor, signal) => api.queues({ search, cursor }, signal), [search], { everyMs: REFRESH_MS })
  return (
    <>
      <Head title="Queues" />
      <div class="filters" role="search">
        <TextField
          label="Name"
          value={search}
          isSearch
          placeholder="part of a name"
          onChange={(value) => setQuery({ search: value }, { replace: true })}
        />
      </div>
      <ErrorNote error={pages.error} onRetry={pages.reload} />
      <div class="panel">
        <Table<Queue>
          label="Queues"
          rows={pages.rows}
          rowKey={({ name, kind }) => `${kind} ${name}`}
          isLoading={pages.isLoading}
          empty="There is no queue of this library or of Redisson in this Redis."
          columns={[
            {
              name: 'Queue',
              wide: true,
              cell: ({ name, ...queue }) => (
                <>
                  <a href={href(pathOf('queues', name))}>
                    <Outside text={name} limit={128} />
                  </a>
                  <Troubles of={queue} />
                </>
              ),
            },
            {
              name: 'Kind',
              cell: ({ kind, shards }) => (isNone(shards) ? kind : `${kind}, ${shards} shards`),
            },
            { name: 'Pending', number: true, cell: ({ pending }) => figure(pending) },
            { name: 'Ready', number: true, cell: ({ ready }) => figure(ready) },
            { name: 'In flight', number: true, cell: ({ inFlight }) => figure(inFlight) },
            { name: 'Dead', number: true, cell: ({ dead }) => figure(dead) },
            { name: 'Quarantined', number: true, cell: ({ quarantined }) => figure(quarantined) },
            { name: 'Next due', cell: ({ nextDueAt }) => <When at={nextDueAt} /> },
            {
              name: 'Overdue',
              number: true,
              cell: ({ overdueMs }) => (isNone(overdueMs) || overdueMs <= 0 ? '–' : duration(overdueMs)),
            },
          ]}
        />
        <More pages={pages} />
      </div>
    </>
  )
}

/** The problems of a queue that an operator should see at once. */
function Troubles({ of }: { readonly of: Omit<Queue, 'name'> }): JSX.Element {
  const { error, paused, stuckRepeats, subscribers, pending } = of
  const texts = [
    ...(isNone(error) ? [] : [error]),
    ...paused.map((operation) => `${operation} is paused`),
    ...(isNone(stuckRepeats) || stuckRepeats === 0 ? [] : [`${count(stuckRepeats)} repeats are stuck`]),
    ...(subscribers === 0 && (pending ?? 0) > 0 ? ['no client delivers it'] : []),
  ]
  return (
    <>
      {texts.map((text) => (
        <div key={text} class="small muted">
          <Outside text={text} limit={200} />
        </div>
      ))}
    </>
  )
}
