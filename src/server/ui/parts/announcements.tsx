import type { JSX } from 'preact'
import { gone } from '../api/session.js'
import { createStore, useStore } from '../lib/store.js'
import { Problem } from '../api/request.js'
import { Outside } from './outside.js'

interface Announcement {
  readonly text: string
  readonly isBad: boolean
}

const current = createStore<Announcement | undefined>(undefined)
const SHOWN_MS = 8_000
let timer: ReturnType<typeof setTimeout> | undefined

/** Announces the result of an action, visibly and to screen readers. */
export function announce(text: string, isBad = false): void {
  clearTimeout(timer)
  current.set({ text, isBad })
  timer = setTimeout(() => current.set(undefined), SHOWN_MS)
}

/** @param before the part of the action that was done before the failure */
export function announceError(error: unknown, before = ''): void {
  if (gone(error)) return
  const problem =
    error instanceof Problem ? `${error.title}${error.detail === undefined ? '' : `: ${error.detail}`}` : undefined
  const text = problem ?? (error instanceof Error ? error.message : 'It did not work.')
  announce(before === '' ? text : `${text} ${before}`, true)
}

export function Announcements(): JSX.Element {
  const shown = useStore(current)
  return (
    <div class="announcements" role="status" aria-live="polite">
      {shown && (
        <div class={`announcement${shown.isBad ? ' bad' : ''}`}>
          <Outside text={shown.text} limit={400} />
          <button type="button" class="bare" onClick={() => current.set(undefined)} aria-label="Dismiss">
            ×
          </button>
        </div>
      )}
    </div>
  )
}
