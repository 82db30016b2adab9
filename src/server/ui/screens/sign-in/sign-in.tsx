import type { JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Problem } from '../../api/request.js'
import { signIn } from '../../api/session.js'
import { ErrorNote, Note } from '../../parts/notes.js'

/** Asks for an API key. The page does not store it: the service answers with a cookie that scripts cannot read. */
export function SignIn(): JSX.Element {
  const id = useId()
  const field = useRef<HTMLInputElement>(null)
  const [error, setError] = useState<unknown>(undefined)
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    document.title = 'Sign in · redelayed'
    field.current?.focus()
  }, [])

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const key = field.current?.value.trim() ?? ''
    if (key === '' || isBusy) return
    setBusy(true)
    setError(undefined)
    try {
      await signIn(key)
    } catch (thrown) {
      setError(thrown)
      setBusy(false)
      field.current?.select()
    }
  }
  return (
    <main class="start">
      <form class="sign-in" onSubmit={(event) => void submit(event)}>
        <h1 class="name">
          <span class="mark" aria-hidden="true" />
          redelayed
        </h1>
        {error instanceof Problem && error.status === 401 ? (
          <Note kind="bad">
            <span role="alert">The service does not know this key.</span>
          </Note>
        ) : (
          <ErrorNote error={error} />
        )}
        <label class="field" for={id}>
          <span>API key</span>
          <input
            id={id}
            ref={field}
            type="password"
            name="key"
            autocomplete="off"
            spellcheck={false}
            maxLength={500}
            required
            aria-describedby={`${id}-note`}
          />
        </label>
        <button type="submit" class="button main" aria-disabled={isBusy}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
        <p id={`${id}-note`} class="small muted">
          The first start of the service prints a key; <code>redelayed-server key</code> makes others. This page does
          not store it: it gets a session cookie, which ends after 12 hours or when you sign out.
        </p>
      </form>
    </main>
  )
}
