import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Button } from './button.js'

interface DialogProps {
  readonly title: string
  readonly children: ComponentChildren
  /** It stays open: what it does is under way, and it will show what comes of it. */
  readonly isBusy?: boolean
  readonly onClose: () => void
}

/** The browser's modal dialog: it keeps the focus inside, closes by Escape, and gives the focus back. */
export function Dialog({ title, children, isBusy = false, onClose }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    dialog.current?.showModal()
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
        // a second Escape closes it in any case
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
  /** What the button says: the deed itself. */
  readonly deed: string
  /** Has to be typed first. */
  readonly typed?: string
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
}

/** Asks before what cannot be undone. */
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
          blocked={isReady ? undefined : 'The name is not typed yet.'}
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
