import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import type { Instance } from '../../api/types.js'
import { bytes, count, duration } from '../../lib/format.js'
import { useLoad } from '../../lib/use-load.js'
import { Head } from '../../parts/head.js'
import { Moment, When } from '../../parts/moment.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { Table } from '../../parts/table.js'

const orDash = <T,>(value: T | null | undefined, show: (value: T) => string): string =>
  isNone(value) ? '–' : show(value)

/** The running instances of the service. */
export function Instances(): JSX.Element {
  const { data, error, isLoading, reload } = useLoad((signal) => api.instances(signal), [], { everyMs: 3_000 })
  return (
    <>
      <Head title="Instances" />
      <ErrorNote error={error} onRetry={reload} />
      <div class="panel">
        <Table<Instance>
          label="Instances"
          rows={data ?? []}
          rowKey={({ id }) => id}
          isLoading={isLoading && data === undefined}
          empty="No instance has reported in the last 15 s."
          columns={[
            {
              name: 'Host',
              wide: true,
              cell: ({ host, pid }) => (
                <>
                  <Outside text={host} limit={80} /> <span class="muted">pid {pid}</span>
                </>
              ),
            },
            { name: 'Version', cell: ({ version }) => <Outside text={version} limit={30} /> },
            { name: 'Address', cell: ({ url }) => <Outside text={url} limit={80} /> },
            { name: 'Started', cell: ({ startedAt }) => <When at={startedAt} /> },
            { name: 'Seen', cell: ({ seenAt }) => <Moment at={seenAt} /> },
            { name: 'Connections', number: true, cell: ({ connections }) => orDash(connections, count) },
            { name: 'Waiting', number: true, cell: ({ waiting }) => orDash(waiting, count) },
            { name: 'Event loop', number: true, cell: ({ eventLoopMs }) => orDash(eventLoopMs, duration) },
            { name: 'Memory', number: true, cell: ({ memory }) => orDash(memory, bytes) },
          ]}
        />
      </div>
    </>
  )
}
