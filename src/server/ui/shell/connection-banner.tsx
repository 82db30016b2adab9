import type { JSX } from 'preact'
import { connection } from '../api/connection.js'
import { useNow } from '../lib/clock.js'
import { duration } from '../lib/format.js'
import { useStore } from '../lib/store.js'
import { Moment } from '../parts/moment.js'

/** Says that the shown data is outdated, and since when. */
export function ConnectionBanner(): JSX.Element | null {
  const since = useStore(connection.lostSince)
  return since === undefined ? null : <Lost since={since} />
}

function Lost({ since }: { readonly since: number }): JSX.Element {
  useNow()
  return (
    <div class="note warn banner" role="alert">
      <div>
        <strong>
          Disconnected since <Moment at={since} />
        </strong>{' '}
        ({duration(Math.max(0, Date.now() - since))}). The service does not answer; what you see is what it said before.
        The page tries again by itself.
      </div>
    </div>
  )
}
