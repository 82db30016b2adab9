import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { refusal } from '../../api/session.js'
import type { AuditEntry } from '../../api/types.js'
import { usePages } from '../../lib/use-pages.js'
import { Button } from '../../parts/button.js'
import { Head } from '../../parts/head.js'
import { When } from '../../parts/moment.js'
import { More } from '../../parts/more.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { Table } from '../../parts/table.js'

/** The audit log. */
export function Audit(): JSX.Element {
  const why = refusal('admin')
  return (
    <>
      <Head title="Audit log" />
      {why === undefined ? <Entries /> : <Note kind="warn">{why}</Note>}
    </>
  )
}

function Entries(): JSX.Element {
  const pages = usePages((cursor, signal) => api.audit({ cursor }, signal), [])
  return (
    <>
      <ErrorNote error={pages.error} onRetry={pages.reload} />
      <div class="panel">
        <div class="panel-head">
          <h2>Administrative requests</h2>
          <span class="muted small">the newest first, of all instances</span>
          <Button onClick={pages.reload}>Refresh</Button>
        </div>
        <Table<AuditEntry>
          label="Audit log"
          rows={pages.rows}
          rowKey={({ requestId, at }) => `${requestId}/${at}`}
          isLoading={pages.isLoading}
          empty="No administrative request is recorded."
          columns={[
            { name: 'When', cell: ({ at }) => <When at={at} /> },
            { name: 'Key', cell: ({ key }) => <Outside text={key} limit={40} mono /> },
            {
              name: 'Request',
              wide: true,
              cell: ({ method, path }) => (
                <>
                  <b>
                    <Outside text={method} limit={10} />
                  </b>{' '}
                  <Outside text={path} limit={160} mono />
                </>
              ),
            },
            {
              name: 'Status',
              number: true,
              cell: ({ status }) => <span class={status >= 500 ? 'bad-text' : ''}>{status}</span>,
            },
            { name: 'Request id', cell: ({ requestId }) => <Outside text={requestId} limit={36} mono /> },
          ]}
        />
        <More pages={pages} />
      </div>
    </>
  )
}
