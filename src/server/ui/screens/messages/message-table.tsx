import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import type { ListedMessage } from '../../api/types.js'
import { bytes, count } from '../../lib/format.js'
import { When, Moment } from '../../parts/moment.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'
import { Table, type Column } from '../../parts/table.js'
import { MessageLink, TopicLink } from './message-link.js'

interface MessageTableProps {
  readonly label: string
  readonly rows: readonly ListedMessage[]
  readonly isLoading: boolean
  readonly empty: string
}

/** A table of messages, without columns that have no values. */
export function MessageTable({ label, rows, isLoading, empty }: MessageTableProps): JSX.Element {
  const has = (name: keyof ListedMessage): boolean => rows.some((row) => row[name] !== undefined && row[name] !== null)
  const columns: (Column<ListedMessage> | false)[] = [
    { name: 'Message', cell: ({ topic, id }) => <MessageLink topic={topic} id={id} /> },
    { name: 'Topic', cell: ({ topic }) => <TopicLink name={topic} /> },
    has('bizKey') && { name: 'Business key', cell: ({ bizKey }) => <Outside text={bizKey} limit={48} mono /> },
    { name: 'State', cell: ({ state }) => <State of={state} /> },
    { name: 'Due', wide: true, cell: ({ dueAt }) => <When at={dueAt} /> },
    has('createdAt') && { name: 'Made', cell: ({ createdAt }) => <Moment at={createdAt} /> },
    has('attempts') && { name: 'Attempts', number: true, cell: ({ attempts }) => count(attempts ?? 0) },
    rows.some(({ priority }) => (priority ?? 0) !== 0) && {
      name: 'Priority',
      number: true,
      cell: ({ priority }) => count(priority ?? 0),
    },
    has('size') && { name: 'Size', number: true, cell: ({ size }) => (isNone(size) ? '–' : bytes(size)) },
  ]
  return (
    <Table<ListedMessage>
      label={label}
      rows={rows}
      rowKey={({ topic, id }) => `${topic}/${id}`}
      isLoading={isLoading}
      empty={empty}
      columns={columns.filter((column) => column !== false)}
    />
  )
}
