import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, BODY_BYTES } from '../../api/api.js'
import { count } from '../../lib/format.js'
import type { Message } from '../../api/types.js'
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
/** The most bytes of a body that the service returns. */
const MOST_BODY_BYTES = 16_777_216

/** One message: its data, its history, and its actions. */
export function MessageScreen({ topic, id }: { readonly topic: string; readonly id: string }): JSX.Element {
  const [maxBody, setMaxBody] = useState(BODY_BYTES)
  const {
    data: message,
    error,
    reload,
  } = useLoad((signal) => api.message(topic, id, maxBody, signal), [maxBody], {
    // a long body is not reloaded all the time
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
                ['Group', message.group === undefined ? undefined : <Outside text={message.group} limit={255} mono />],
                [message.state === 'inFlight' ? 'Visible again' : 'Due', <When at={message.dueAt} />],
                ['Attempts', count(attemptsOf(message))],
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

/** A dead letter counts its attempts anew, so that it can be redriven; its failures have those that it died of. */
function attemptsOf({ state, attempts, failures }: Message): number {
  return state === 'dead' ? Math.max(attempts, failures?.at(-1)?.attempt ?? 0) : attempts
}
