import type { ComponentChildren, JSX } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Button } from './button.js'

interface DialogProps {
  readonly title: string
  readonly children: ComponentChildren
  /** The dialog stays open: its action is under way, and it will show the result. */
  readonly isBusy?: boolean
  readonly onClose: () => void
}

/** The browser's modal dialog: it traps the focus, closes on Escape, and restores the focus. */
export function Dialog({ title, children, isBusy = false, onClose }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const isRemoved = useRef(false)
  useLayoutEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    return () => {
      // the browser restores the focus when a dialog is closed, not when it is only removed; this runs while it is still there
      isRemoved.current = true
      shown?.close()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        if (isBusy) event.preventDefault()
      }}
      onClose={() => {
        if (isRemoved.current) return
        // the browser lets a second Escape close it in any case
        if (isBusy) dialog.current?.showModal()
        else onClose()
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  readonly title: string
  readonly children: ComponentChildren
  /** The text of the button: the action itself. */
  readonly deed: string
  /** The name that the reader has to type first. */
  readonly typed?: string
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
}

/** Asks before an action that cannot be undone. */
export function Confirm({ title, children, deed, typed, onConfirm, onClose }: ConfirmProps): JSX.Element {
  const [text, setText] = useState('')
  const isReady = typed === undefined || text === typed
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {typed !== undefined && (
        <label class="field">
          <span>Type the name to confirm</span>
          <input
            value={text}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
      )}
      <div class="buttons end">
        <Button onClick={onClose}>Cancel</Button>
        <Button
          kind="danger"
          blocked={isReady ? undefined : 'Type the name first.'}
          onClick={async () => {
            await onConfirm()
            onClose()
          }}
        >
          {deed}
        </Button>
      </div>
    </Dialog>
  )
}
