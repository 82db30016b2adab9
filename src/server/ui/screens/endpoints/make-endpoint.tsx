import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import { gone } from '../../api/session.js'
import type { EndpointMade } from '../../api/types.js'
import { count } from '../../lib/format.js'
import { Button } from '../../parts/button.js'
import { Dialog } from '../../parts/dialog.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'

interface MakeEndpointProps {
  /** `id`: the id of the new endpoint. */
  readonly onClose: (id?: string) => void
}

/** The most topics that get the endpoint at once. */
const MOST_TOPICS = 100

/** Asks for the URL and the topics of a new endpoint, creates it, and shows its secret. */
export function MakeEndpoint({ onClose }: MakeEndpointProps): JSX.Element {
  const [url, setUrl] = useState('')
  const [description, setDescription] = useState('')
  const [topics, setTopics] = useState('')
  const [error, setError] = useState<unknown>(undefined)
  // a dialog that is closed meanwhile would never show the secret
  const [isBusy, setBusy] = useState(false)
  const [made, setMade] = useState<EndpointMade | undefined>(undefined)
  if (made) return <ItsSecret of={made} onClose={() => onClose(made.id)} />
  const names = namesIn(topics)
  const blocked =
    url.trim() === ''
      ? 'The URL is missing.'
      : names.length > MOST_TOPICS
        ? `At most ${count(MOST_TOPICS)} topics at once.`
        : undefined
  return (
    <Dialog title="Make an endpoint" isBusy={isBusy} onClose={() => onClose()}>
      <label class="field">
        <span>URL</span>
        <input
          type="url"
          value={url}
          placeholder="https://"
          maxLength={2_048}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setUrl(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>Description</span>
        <input
          value={description}
          maxLength={500}
          autocomplete="off"
          onInput={(event) => setDescription(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>Topics</span>
        <input
          value={topics}
          placeholder="orders, reminders"
          maxLength={13_000}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setTopics(event.currentTarget.value)}
        />
      </label>
      <p class="small muted">
        The messages of these topics go there. A topic has one endpoint: this one takes the place of another.
      </p>
      <ErrorNote error={error} />
      <div class="buttons end">
        <Button blocked={isBusy ? 'The endpoint is being made.' : undefined} onClick={() => onClose()}>
          Cancel
        </Button>
        <Button
          needs="admin"
          kind="main"
          blocked={blocked}
          onClick={async () => {
            setError(undefined)
            setBusy(true)
            try {
              setMade(
                await api.makeEndpoint({
                  url: url.trim(),
                  ...(description.trim() !== '' && { description: description.trim() }),
                  ...(names.length > 0 && { topics: names }),
                }),
              )
            } catch (thrown) {
              if (!gone(thrown)) setError(thrown)
            } finally {
              setBusy(false)
            }
          }}
        >
          Make endpoint
        </Button>
      </div>
    </Dialog>
  )
}

function namesIn(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))]
}

function ItsSecret({ of, onClose }: { of: EndpointMade; onClose: () => void }): JSX.Element {
  return (
    <Dialog title="The endpoint was made" onClose={onClose}>
      <p>
        Its webhooks are signed with this secret. The page shows it only now; a program with the scope admin can read it
        later.
      </p>
      <pre class="body" tabIndex={0} aria-label="Secret">
        <Outside text={of.secret} limit={1_000} mono />
      </pre>
      <div class="buttons end">
        <Button kind="main" onClick={onClose}>
          I have copied it
        </Button>
      </div>
    </Dialog>
  )
}
