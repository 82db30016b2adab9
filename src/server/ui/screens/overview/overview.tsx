import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { live, watchOverview } from '../../api/overview-stream.js'
import { useStore } from '../../lib/store.js'
import { Head } from '../../parts/head.js'
import { Moment } from '../../parts/moment.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { Busiest } from './busiest.js'
import { Figures } from './figures.js'
import { Problems } from './problems.js'
import { Rates } from './rates.js'
import { Parts } from './parts.js'

/** The state of the service, live. */
export function Overview(): JSX.Element {
  useEffect(watchOverview, [])
  const { overview, error, disconnectedSince } = useStore(live)
  return (
    <>
      <Head
        title="Overview"
        alerts={overview?.problems.length}
        aside={<LiveState at={overview?.at} since={disconnectedSince} />}
      />
      {overview === undefined ? (
        <>
          <ErrorNote error={error} />
          {error === undefined && (
            <div class="tiles" aria-busy="true">
              {Array.from({ length: 8 }, (_, at) => (
                <div class="tile bone-tile" key={at} />
              ))}
            </div>
          )}
        </>
      ) : (
        <>
          {overview.complete === false && (
            <Note>The topics are still being counted, so the counts of messages are still too low.</Note>
          )}
          <Problems of={overview.problems} />
          <Figures of={overview} />
          <Rates of={overview} />
          <Busiest of={overview.busiest} />
          <Parts of={overview} />
        </>
      )}
    </>
  )
}

function LiveState({
  at,
  since,
}: {
  readonly at: number | undefined
  readonly since: number | undefined
}): JSX.Element {
  if (since !== undefined)
    return (
      <span class="live lost" role="status">
        Disconnected since <Moment at={since} />
      </span>
    )
  return (
    <span class="live" role="status">
      {at === undefined ? 'Connecting…' : <span class="pulse">Live</span>}
    </span>
  )
}
