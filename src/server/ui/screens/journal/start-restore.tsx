import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import { announce } from '../../parts/announcements.js'
import { Button } from '../../parts/button.js'

/** Starts a restore; a dry run unless that is switched off. */
export function StartRestore({ onStarted }: { readonly onStarted: () => void }): JSX.Element {
  const [topic, setTopic] = useState('')
  const [id, setId] = useState('')
  const [isExpired, setExpired] = useState(false)
  const [isDry, setDry] = useState(true)
  return (
    <section class="panel" aria-labelledby="start">
      <h2 id="start">Start a restore</h2>
      <p class="small muted">
        It compares what SQL knows as not handled with Redis, and puts back what Redis lacks. What Redis has stays as it
        is, so it can be repeated.
      </p>
      <div class="filters">
        <label class="field">
          <span>Topic</span>
          <input
            value={topic}
            placeholder="all topics"
            maxLength={128}
            onInput={(event) => setTopic(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Message id</span>
          <input
            value={id}
            placeholder="all messages"
            maxLength={576}
            onInput={(event) => setId(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={isExpired} onChange={(event) => setExpired(event.currentTarget.checked)} />{' '}
          Expired messages too
        </label>
        <label class="check">
          <input type="checkbox" checked={isDry} onChange={(event) => setDry(event.currentTarget.checked)} /> Dry run:
          count only
        </label>
        <Button
          needs="admin"
          kind="main"
          onClick={async () => {
            await api.startRestore({
              ...(topic !== '' && { topic }),
              ...(id !== '' && { id }),
              expired: isExpired,
              dryRun: isDry,
            })
            announce(isDry ? 'The dry run has started' : 'The restore has started')
            onStarted()
          }}
        >
          {isDry ? 'Start the dry run' : 'Start the restore'}
        </Button>
      </div>
    </section>
  )
}
