import { isNone } from '../../lib/is-none.js'
import type { ComponentChildren, JSX } from 'preact'
import { api } from '../../api/api.js'
import type { QueueLook, QueueMessage, QueuePayload } from '../../api/types.js'
import { count } from '../../lib/format.js'
import { href, setQuery, useQuery } from '../../lib/router.js'
import { useLoad } from '../../lib/use-load.js'
import { TextField } from '../../parts/field.js'
import { Head } from '../../parts/head.js'
import { Moment } from '../../parts/moment.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'
import { Table, type Column } from '../../parts/table.js'
import { QueueAgenda } from './agenda.js'

const EVERY_MS = 5_000

/** One queue of a library: its due times, its next messages, its quarantine, and its dead letters. */
export function QueueScreen({ name }: { readonly name: string }): JSX.Element {
  const codec = useQuery('codec')
  const { data, error, reload } = useLoad((signal) => api.queue(name, { codec }, signal), [name, codec], {
    everyMs: EVERY_MS,
  })
  return (
    <>
      <Head title={name} above={{ name: 'Queues', href: href('/queues') }} />
      <div class="filters">
        <TextField
          label="Codec of the payloads"
          value={codec}
          placeholder="msgpack"
          onChange={(value) => setQuery({ codec: value }, { replace: true })}
        />
      </div>
      <ErrorNote error={error} onRetry={reload} />
      <QueueAgenda name={name} />
      {data && <Look of={data} />}
    </>
  )
}

function Look({ of: { delayed, reliable } }: { readonly of: QueueLook }): JSX.Element {
  return (
    <>
      {delayed && (
        <>
          <Messages title="Pending" total={delayed.pending} rows={delayed.scheduled} />
          <Part title="Delivered, not taken yet" total={delayed.ready} shown={delayed.delivered.length}>
            <Table<{ readonly at: number; readonly payload: QueuePayload | null }>
              label="Delivered, not taken yet"
              rows={delayed.delivered.map((payload, at) => ({ at, payload }))}
              rowKey={({ at }) => String(at)}
              empty="No delivered message waits for a consumer."
              columns={[{ name: 'Payload', wide: true, cell: ({ payload }) => <Payload of={payload} /> }]}
            />
          </Part>
          <Part title="Quarantine" shown={delayed.quarantined.length}>
            <Table<NonNullable<QueueLook['delayed']>['quarantined'][number] & { readonly row: number }>
              label="Quarantine"
              rows={delayed.quarantined.map((entry, row) => ({ ...entry, row }))}
              rowKey={({ row }) => String(row)}
              empty="Nothing was set aside."
              columns={[
                { name: 'Set aside', cell: ({ at }) => (at === 0 ? 'unknown' : <Moment at={at} />) },
                { name: 'Reason', cell: ({ reason }) => <Outside text={reason} limit={100} /> },
                { name: 'Bytes', number: true, cell: ({ size }) => count(size) },
                { name: 'Hex', wide: true, cell: ({ hex }) => <Bytes hex={hex} /> },
              ]}
            />
          </Part>
        </>
      )}
      {reliable && (
        <>
          {reliable.paused.length > 0 && (
            <Note kind="warn">
              Paused: <Outside text={reliable.paused.join(', ')} limit={40} />
            </Note>
          )}
          <Messages
            title="Messages"
            total={reliable.visible + reliable.delayed + reliable.inFlight}
            rows={reliable.messages}
          />
          <Messages title="Dead letters" total={reliable.dead} rows={reliable.deadLetters} />
        </>
      )}
      {!delayed && !reliable && <Note>There is no queue of this name.</Note>}
    </>
  )
}

interface PartProps {
  readonly title: string
  readonly total?: number
  readonly shown: number
  readonly children: ComponentChildren
}

function Part({ title, total, shown, children }: PartProps): JSX.Element {
  return (
    <section class="panel" aria-label={title}>
      <div class="panel-head">
        <h2>
          {total === undefined
            ? title
            : `${count(total)} ${total === 1 ? title.toLowerCase().replace(/s$/, '') : title.toLowerCase()}`}
        </h2>
        {total !== undefined && shown < total && <span class="muted small">the first {count(shown)}</span>}
      </div>
      {children}
    </section>
  )
}

function Messages(props: {
  readonly title: string
  readonly total: number
  readonly rows: readonly QueueMessage[]
}): JSX.Element {
  const { title, total, rows } = props
  const has = (field: keyof QueueMessage): boolean => rows.some((row) => !isNone(row[field]))
  const text = (name: string, field: 'id' | 'ticket' | 'shard' | 'failure'): Column<QueueMessage>[] =>
    has(field)
      ? [{ name, cell: ({ [field]: value }) => (isNone(value) ? '–' : <Outside text={value} limit={80} mono />) }]
      : []
  return (
    <Part title={title} total={total} shown={rows.length}>
      <Table<QueueMessage & { readonly row: number }>
        label={title}
        rows={rows.map((one, row) => ({ ...one, row }))}
        rowKey={({ row }) => String(row)}
        empty="There are none."
        columns={[
          { name: 'Due', cell: ({ at }) => <Moment at={at} /> },
          { name: 'State', cell: ({ state }) => <State of={state} /> },
          ...text('Id', 'id'),
          ...text('Ticket', 'ticket'),
          ...text('Shard', 'shard'),
          ...(has('attempts')
            ? [{ name: 'Attempts', number: true, cell: ({ attempts }: QueueMessage) => attempts ?? '–' }]
            : []),
          ...text('Last failure', 'failure'),
          { name: 'Payload', wide: true, cell: ({ payload }) => <Payload of={payload} /> },
        ]}
      />
    </Part>
  )
}

function Payload({ of }: { readonly of: QueuePayload | null }): JSX.Element {
  if (of === null) return <span class="muted">hidden from this key</span>
  if (!isNone(of.text)) return <Outside text={of.isCut ? `${of.text}…` : of.text} limit={400} mono />
  return (
    <>
      <Bytes hex={of.hex} /> <span class="muted small">{count(of.size ?? 0)} bytes; try another codec</span>
    </>
  )
}

function Bytes({ hex }: { readonly hex: string | null }): JSX.Element {
  return hex === null ? <span class="muted">hidden from this key</span> : <Outside text={hex} limit={80} mono />
}
