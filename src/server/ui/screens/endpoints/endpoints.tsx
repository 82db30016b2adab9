import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import type { Endpoint } from '../../api/types.js'
import { count } from '../../lib/format.js'
import { go, href, pathOf } from '../../lib/router.js'
import { usePages } from '../../lib/use-pages.js'
import { Button } from '../../parts/button.js'
import { Head } from '../../parts/head.js'
import { Moment, When } from '../../parts/moment.js'
import { More } from '../../parts/more.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'
import { Table, type Column } from '../../parts/table.js'
import { EndpointState } from './endpoint-state.js'
import { MakeEndpoint } from './make-endpoint.js'

const REFRESH_MS = 5_000

/** The endpoints of webhooks. */
export function Endpoints(): JSX.Element {
  const pages = usePages((cursor, signal) => api.endpoints({ cursor }, signal), [], { everyMs: REFRESH_MS })
  const [isMaking, setMaking] = useState(false)
  const hasLast = pages.rows.some(({ last }) => last !== undefined)
  const columns: (Column<Endpoint> | false)[] = [
    {
      name: 'Endpoint',
      wide: true,
      cell: ({ id, url, description }) => (
        <>
          <a href={href(pathOf('endpoints', id))}>
            <Outside text={description || url} limit={120} />
          </a>
          {description !== '' && (
            <div class="small muted">
              <Outside text={url} limit={120} />
            </div>
          )}
        </>
      ),
    },
    { name: 'State', cell: (endpoint) => <EndpointState of={endpoint} /> },
    hasLast && { name: 'Last webhook', cell: ({ last }) => <Last of={last} /> },
    { name: 'Most a second', number: true, cell: ({ perSecond }) => (perSecond === 0 ? 'no limit' : count(perSecond)) },
    { name: 'At once', number: true, cell: ({ concurrency }) => count(concurrency) },
    { name: 'Made', cell: ({ createdAt }) => <Moment at={createdAt} /> },
  ]
  return (
    <>
      <Head
        title="Endpoints"
        aside={
          <Button needs="admin" kind="main" onClick={() => setMaking(true)}>
            Make an endpoint…
          </Button>
        }
      />
      {isMaking && (
        <MakeEndpoint
          onClose={(id) => {
            setMaking(false)
            if (id !== undefined) go(href(pathOf('endpoints', id)))
          }}
        />
      )}
      <ErrorNote error={pages.error} onRetry={pages.reload} />
      <div class="panel">
        <Table<Endpoint>
          label="Endpoints"
          rows={pages.rows}
          rowKey={({ id }) => id}
          isLoading={pages.isLoading}
          empty="No endpoints: consumers receive the messages."
          columns={columns.filter((column) => column !== false)}
        />
        <More pages={pages} />
      </div>
    </>
  )
}

function Last({ of }: { readonly of: Endpoint['last'] }): JSX.Element {
  if (of === null || of === undefined) return <span class="muted">none yet</span>
  return (
    <>
      <State of={of.outcome} as={of.status === null ? 'no answer' : String(of.status)} /> <When at={of.at} />
    </>
  )
}
