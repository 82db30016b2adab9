import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { count, duration } from '../../lib/format.js'
import { useLoad } from '../../lib/use-load.js'
import { Facts } from '../../parts/facts.js'
import { Head } from '../../parts/head.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { RestoreList } from './restore-list.js'
import { StartRestore } from './start-restore.js'

const REFRESH_MS = 1_000

/** The journal and the progress of restores. */
export function Journal(): JSX.Element {
  const overview = useLoad((signal) => api.overview(signal), [], { everyMs: 3_000 })
  const restores = useLoad((signal) => api.restores(signal), [], { everyMs: REFRESH_MS })
  const journal = overview.data?.journal
  return (
    <>
      <Head title="Journal & restores" />
      <ErrorNote error={overview.error} onRetry={overview.reload} />
      {journal === null && (
        <Note kind="warn">There is no journal: what Redis loses is lost, and there is nothing to restore from.</Note>
      )}
      {journal && (
        <section class="panel" aria-label="Journal">
          <Facts
            of={[
              ['Database', <Outside text={journal.kind} limit={60} />],
              [
                'Mode',
                journal.mode === 'sync' ? (
                  'sync: SQL has a message before Redis'
                ) : (
                  <Outside text={journal.mode} limit={60} />
                ),
              ],
              ['Changes that SQL lacks', journal.pending === null ? '–' : count(journal.pending)],
              [
                'Behind by',
                journal.lagMs === null ? (journal.pending === 0 ? 'nothing' : '–') : duration(journal.lagMs),
              ],
            ]}
          />
        </section>
      )}
      <ErrorNote error={restores.error} onRetry={restores.reload} />
      <RestoreList of={restores.data?.restores} />
      {journal !== null && <StartRestore onStarted={restores.reload} />}
    </>
  )
}
