import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, BODY_BYTES } from '../../api/api.js'
import { count } from '../../lib/format.js'
import { href, pathOf } from '../../lib/router.js'
import { useLoad } from '../../lib/use-load.js'
import { Facts } from '../../parts/facts.js'
import { Head } from '../../parts/head.js'
import { Moment, When } from '../../parts/moment.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'
import { Body } from './body.js'
import { Headers } from './headers.js'
import { MessageActions } from './message-actions.js'
import { TopicLink } from './message-link.js'
import { Timeline } from './timeline.js'

const REFRESH_MS = 5_000
/** The service answers no more of a body. */
const MOST_BODY_BYTES = 16_777_216

/** One message: what it is, what happened to it, what can be done. */
export function MessageScreen({ topic, id }: { readonly topic: string; readonly id: string }): JSX.Element {
  const [maxBody, setMaxBody] = useState(BODY_BYTES)
  const {
    data: message,
    error,
    reload,
  } = useLoad((signal) => api.message(topic, id, maxBody, signal), [maxBody], {
    // a long body is not read again and again
    everyMs: maxBody === BODY_BYTES ? REFRESH_MS : undefined,
    keeps: true,
  })
  return (
    <>
      <Head
        title={id}
        above={{ name: 'Messages', href: href('/messages', { topic }) }}
        aside={message && <MessageActions topic={topic} message={message} onDone={reload} />}
      >
        {message && <State of={message.state} />}
      </Head>
      <ErrorNote error={error} onRetry={reload} />
      {message && (
        <>
          <section class="panel" aria-label="Facts">
            <Facts
              of={[
                ['Topic', <TopicLink name={topic} />],
                ['Id', <Outside text={id} limit={600} mono />],
                [
                  'Business key',
                  message.bizKey === undefined ? undefined : <Outside text={message.bizKey} limit={512} mono />,
                ],
                [message.state === 'inFlight' ? 'Visible again' : 'Due', <When at={message.dueAt} />],
                ['Attempts', count(message.attempts)],
                ['Priority', count(message.priority)],
                ['Expires', message.expiresAt === null ? 'never' : <Moment at={message.expiresAt} />],
              ]}
            />
          </section>
          <div class="columns two">
            <Body
              of={message}
              canMore={maxBody < MOST_BODY_BYTES}
              onMore={() => setMaxBody((size) => Math.min(size * 16, MOST_BODY_BYTES))}
            />
            <div class="stack">
              <Timeline topic={topic} id={id} message={message} />
              <Headers of={message.headers ?? {}} isHidden={message.bodyHidden === true} />
            </div>
          </div>
        </>
      )}
      {error !== undefined && message === undefined && (
        <p>
          <a href={href(pathOf('topics', topic))}>The topic</a> may say more.
        </p>
      )}
    </>
  )
}
