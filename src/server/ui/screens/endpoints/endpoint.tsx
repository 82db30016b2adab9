import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { count, duration } from '../../lib/format.js'
import { href } from '../../lib/router.js'
import { useLoad } from '../../lib/use-load.js'
import { usePages } from '../../lib/use-pages.js'
import { Facts } from '../../parts/facts.js'
import { Head } from '../../parts/head.js'
import { Moment, When } from '../../parts/moment.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { TopicLink } from '../messages/message-link.js'
import { Deliveries } from './deliveries.js'
import { EndpointActions } from './endpoint-actions.js'
import { EndpointState } from './endpoint-state.js'
import { Why } from './why.js'

const REFRESH_MS = 5_000
const MOST_TOPICS = 50

/** One endpoint: why it fails, its answers, and its actions. */
export function EndpointScreen({ id }: { readonly id: string }): JSX.Element {
  const { data: endpoint, error, reload } = useLoad((signal) => api.endpoint(id, signal), [id], { everyMs: REFRESH_MS })
  const deliveries = usePages((cursor, signal) => api.deliveries(id, { cursor }, signal), [id], { everyMs: REFRESH_MS })
  const refresh = (): void => {
    reload()
    deliveries.reload()
  }
  return (
    <>
      <Head
        title={endpoint?.description || endpoint?.url || id}
        above={{ name: 'Endpoints', href: href('/endpoints') }}
        aside={endpoint && <EndpointActions of={endpoint} onDone={refresh} />}
      >
        {endpoint && <EndpointState of={endpoint} />}
      </Head>
      <ErrorNote error={error} onRetry={reload} />
      {endpoint && (
        <>
          <Why of={endpoint} deliveries={deliveries.rows} isLoading={deliveries.isLoading} />
          <div class="buttons">
            <a class="button" href={href('/dead-letters', { endpoint: id, since: 'yesterday' })}>
              Dead letters since yesterday
            </a>
            <a class="button" href={href('/dead-letters', { endpoint: id })}>
              All its dead letters
            </a>
          </div>
          <section class="panel" aria-labelledby="settings">
            <h2 id="settings">Settings</h2>
            <Facts
              of={[
                ['URL', <Outside text={endpoint.url} limit={2_048} mono />],
                ['Id', <Outside text={id} mono />],
                ['Most a second', endpoint.perSecond === 0 ? 'no limit' : count(endpoint.perSecond)],
                ['At once, each instance', count(endpoint.concurrency)],
                ['Time limit', duration(endpoint.timeout)],
                ['Made', <Moment at={endpoint.createdAt} />],
                ['Disabled', endpoint.disabled === null ? undefined : <When at={endpoint.disabled.at} />],
                ['Topics', <TopicsOf names={endpoint.topics ?? []} />],
              ]}
            />
          </section>
        </>
      )}
      <Deliveries pages={deliveries} />
    </>
  )
}

function TopicsOf({ names }: { readonly names: readonly string[] }): JSX.Element {
  if (names.length === 0) return <>none: it gets no webhooks</>
  return (
    <span class="words">
      {names.slice(0, MOST_TOPICS).map((name) => (
        <TopicLink key={name} name={name} />
      ))}
      {names.length > MOST_TOPICS && <span class="muted">and {count(names.length - MOST_TOPICS)} more</span>}
    </span>
  )
}
