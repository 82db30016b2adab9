import type { JSX } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { session } from '../api/session.js'
import { shortcuts } from '../lib/preferences.js'
import { go, href } from '../lib/router.js'
import { Help, openHelp } from './help.js'
import { placesOf } from './places.js'

/** How long after `g` the next letter counts. */
const SEQUENCE_MS = 1_200

export function Shortcuts(): JSX.Element {
  // Before anything is drawn: an effect waits for the next frame, and a key that is pressed as soon as the screen is there would do nothing.
  useLayoutEffect(() => {
    let wentAt = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent): void => {
      if (shortcuts.get() === 'off' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      const isSecond = performance.now() - wentAt < SEQUENCE_MS
      wentAt = Number.NEGATIVE_INFINITY
      if (isSecond) {
        const places = placesOf(session.get() ?? {}).flatMap(([, some]) => some)
        const place = places.find(({ key }) => key === event.key)
        if (place) go(href(place.path))
      } else if (event.key === 'g') wentAt = performance.now()
      else if (event.key === '?') openHelp()
      else if (event.key === '/') {
        const field =
          document.querySelector<HTMLElement>('main input[data-search="true"], main input') ??
          document.querySelector<HTMLElement>('.find input')
        if (field === null) return
        event.preventDefault()
        field.focus()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return <Help />
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, select, textarea, dialog') !== null
}
