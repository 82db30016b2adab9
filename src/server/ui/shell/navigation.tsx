import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { session, signOut } from '../api/session.js'
import { theme } from '../lib/preferences.js'
import { go, href, usePlace } from '../lib/router.js'
import { useStore } from '../lib/store.js'
import { Button } from '../parts/button.js'
import { Outside } from '../parts/outside.js'
import { openHelp } from './help.js'
import { placesOf } from './places.js'

const THEMES = { system: 'light', light: 'dark', dark: 'system' } as const

export function Navigation(): JSX.Element {
  const { path } = usePlace()
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [path])
  const signedIn = useStore(session)
  const isHere = (of: string): boolean => of === placeOf(path, signedIn?.readOnly === true)
  return (
    <header class={`side${isOpen ? ' open' : ''}`}>
      <div class="brand">
        <a href={href('/')} class="name">
          <span class="mark" aria-hidden="true" />
          redelayed
        </a>
        <button
          type="button"
          class="button menu"
          aria-expanded={isOpen}
          aria-controls="menu"
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
      </div>
      <div id="menu" class="side-rest">
        {signedIn?.readOnly !== true && <Find />}
        <nav aria-label="Screens">
          {placesOf(signedIn ?? {}).map(([group, places]) => (
            <div class="group" key={group}>
              <h2>{group}</h2>
              <ul>
                {places.map(({ path: to, name, icon }) => (
                  <li key={to}>
                    <a href={href(to)} {...(isHere(to) && { 'aria-current': 'page' as const })}>
                      <svg viewBox="0 0 16 16" aria-hidden="true">
                        <path d={icon} />
                      </svg>
                      {name}
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <div class="who">
          {signedIn && <Who />}
          <div class="buttons">
            <ThemeSwitch />
            <Button onClick={openHelp} label="Keyboard shortcuts">
              ?
            </Button>
            {signedIn && <Button onClick={signOut}>Sign out</Button>}
          </div>
        </div>
      </div>
    </header>
  )
}

/** An id from a log or a ticket leads to its message from every screen. */
function Find(): JSX.Element {
  const [id, setId] = useState('')
  return (
    <form
      role="search"
      aria-label="Find a message"
      class="find"
      onSubmit={(event) => {
        event.preventDefault()
        if (id.trim() === '') return
        go(href('/messages', { id: id.trim() }))
        setId('')
      }}
    >
      <input
        type="search"
        value={id}
        aria-label="Find a message by its id"
        placeholder="Message id"
        autocomplete="off"
        spellcheck={false}
        maxLength={600}
        onInput={(event) => setId(event.currentTarget.value)}
      />
    </form>
  )
}

function Who(): JSX.Element | null {
  const signedIn = useStore(session)
  if (!signedIn) return null
  const { key, scopes, topics, version, readOnly } = signedIn
  return (
    <p class="small">
      Key <Outside text={key} limit={40} mono />
      <br />
      <span class="muted">
        {scopes.join(', ') || 'no scopes'}
        {topics !== null && ` · ${topics.length === 1 ? '1 topic pattern' : `${topics.length} topic patterns`}`}
        {readOnly === true && ' · read-only'}
      </span>
      {version !== undefined && (
        <>
          <br />
          <span class="muted">
            Version <Outside text={version} limit={30} />
          </span>
        </>
      )}
    </p>
  )
}

function ThemeSwitch(): JSX.Element {
  const chosen = useStore(theme)
  const names = { system: 'auto', light: 'light', dark: 'dark' }
  return <Button onClick={() => theme.set(THEMES[chosen])}>Colours: {names[chosen]}</Button>
}

/** The menu entry that a path belongs to. */
function placeOf(path: string, isReadOnly: boolean): string {
  const [, first = '', , third] = path.split('/')
  // such a service has no overview, and begins with its queues
  if (first === '' && isReadOnly) return '/queues'
  return first === 'topics' && third === 'messages' ? '/messages' : `/${first}`
}
