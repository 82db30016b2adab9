import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { refusal } from '../api/session.js'
import type { Scope } from '../api/types.js'
import { announce, announceError } from './announcements.js'

interface ButtonProps {
  readonly children: ComponentChildren
  readonly onClick: () => unknown
  readonly kind?: 'plain' | 'main' | 'danger'
  /** The scope that the key needs; without it the button says so. */
  readonly needs?: Scope
  /** Why the button cannot be used now. */
  readonly blocked?: string | undefined
  readonly label?: string
  readonly pressed?: boolean
}

/** A button that is busy while its action runs. If it cannot be used, it stays focusable and says why. */
export function Button({
  children,
  onClick,
  kind = 'plain',
  needs,
  blocked,
  label,
  pressed,
}: ButtonProps): JSX.Element {
  const [isBusy, setBusy] = useState(false)
  const why = (needs && refusal(needs)) ?? blocked
  const click = async (): Promise<void> => {
    if (why !== undefined) {
      announce(why)
      return
    }
    if (isBusy) return
    setBusy(true)
    try {
      await onClick()
    } catch (error) {
      announceError(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button
      type="button"
      class={`button ${kind}`}
      onClick={() => void click()}
      aria-disabled={why !== undefined || isBusy}
      {...(why !== undefined && { title: why })}
      {...(label !== undefined && { 'aria-label': label })}
      {...(pressed !== undefined && { 'aria-pressed': pressed })}
    >
      {children}
    </button>
  )
}
