import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { watchConnection } from '../api/heartbeat.js'
import { findSession, session } from '../api/session.js'
import { useStore } from '../lib/store.js'
import { Announcements } from '../parts/announcements.js'
import { ErrorNote } from '../parts/notes.js'
import { SignIn } from '../screens/sign-in/sign-in.js'
import { ConnectionBanner } from './connection-banner.js'
import { Navigation } from './navigation.js'
import { Screen } from './screen.js'
import { Shortcuts } from './shortcuts.js'

const RETRY_MS = 2_000

export function App(): JSX.Element {
  const signedIn = useStore(session)
  const [error, setError] = useState<unknown>(undefined)
  useEffect(() => {
    if (signedIn !== undefined) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const find = (): void => {
      findSession().catch((thrown: unknown) => {
        setError(thrown)
        timer = setTimeout(find, RETRY_MS)
      })
    }
    find()
    return () => clearTimeout(timer)
  }, [signedIn === undefined])

  const isSignedIn = signedIn !== undefined && signedIn !== null
  useEffect(() => (isSignedIn ? watchConnection() : undefined), [isSignedIn])

  if (signedIn === undefined) return <main class="start">{error !== undefined && <ErrorNote error={error} />}</main>
  if (signedIn === null) return <SignIn />
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <div class="frame">
        <Navigation />
        <main id="main" class="main" tabIndex={-1}>
          <ConnectionBanner />
          <Screen />
        </main>
      </div>
      <Announcements />
      <Shortcuts />
    </>
  )
}
