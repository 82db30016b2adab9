import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { href } from '../../lib/router.js'
import { useLoad } from '../../lib/use-load.js'
import { Head } from '../../parts/head.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'

/** One queue of a library. */
export function QueueScreen({ name }: { readonly name: string }): JSX.Element {
  const { data, error, reload } = useLoad((signal) => api.queue(name, signal), [name], { everyMs: 5_000 })
  return (
    <>
      <Head title={name} above={{ name: 'Queues', href: href('/queues') }} />
      <ErrorNote error={error} onRetry={reload} />
      {data && (
        <section class="panel" aria-label="Queue">
          <pre class="body">
            <Outside text={JSON.stringify(data, undefined, 2)} limit={65_536} block mono />
          </pre>
        </section>
      )}
    </>
  )
}
