import type { JSX } from 'preact'
import type { Overview } from '../../api/types.js'
import { href } from '../../lib/router.js'
import { Table } from '../../parts/table.js'
import { countColumns } from '../topics/count-columns.js'
import { pausedText } from '../topics/paused.js'
import { TopicLink } from '../messages/message-link.js'
import { State } from '../../parts/state.js'

/** The topics with the most messages. */
export function Busiest({ of }: { readonly of: Overview['busiest'] }): JSX.Element {
  type Row = Overview['busiest'][number]
  return (
    <section class="panel" aria-labelledby="busiest">
      <div class="panel-head">
        <h2 id="busiest">Busiest topics</h2>
        <a class="small" href={href('/topics')}>
          All topics
        </a>
      </div>
      <Table<Row>
        label="Busiest topics"
        rows={of}
        rowKey={({ topic }) => topic}
        empty={
          <>
            No topics yet. A push makes one: <code>POST /v1/topics/orders/messages</code>
          </>
        }
        columns={[
          {
            name: 'Topic',
            wide: true,
            cell: ({ topic, paused }) => (
              <>
                <TopicLink name={topic} />{' '}
                {pausedText(paused) !== undefined && <State of="paused" as={pausedText(paused) ?? ''} />}
              </>
            ),
          },
          ...countColumns<Row>(({ topic, counts, oldestMs }) => ({ topic, counts, oldestMs })),
        ]}
      />
    </section>
  )
}
