import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import type { Message } from '../../api/types.js'
import { fromLocalInput, iso, localInput } from '../../lib/format.js'
import { announce } from '../../parts/announcements.js'
import { Button } from '../../parts/button.js'
import { Confirm, Dialog } from '../../parts/dialog.js'
import { Outside } from '../../parts/outside.js'

interface MessageActionsProps {
  readonly topic: string
  readonly message: Message
  readonly onDone: () => void
}

const OPEN = new Set(['visible', 'delayed', 'accepted'])

/** The actions on a message; those that its state does not allow are disabled with the reason. */
export function MessageActions({ topic, message, onDone }: MessageActionsProps): JSX.Element {
  const [dialog, setDialog] = useState<'cancel' | 'reschedule' | undefined>(undefined)
  const { id, state } = message
  const close = (): void => setDialog(undefined)
  const isOpen = OPEN.has(state)
  const notOpen = isOpen ? undefined : state === 'inFlight' ? 'A consumer has it now.' : 'It is no longer waiting.'
  return (
    <>
      {state === 'dead' && (
        <Button
          needs="admin"
          kind="main"
          onClick={async () => {
            const { redriven: done } = await api.redriveOne(topic, id)
            announce(
              done > 0
                ? `${id} is due again`
                : `${id} was not redriven: it is no dead letter any more, or its id is in the topic`,
            )
            onDone()
          }}
        >
          Redrive
        </Button>
      )}
      <Button needs="push" blocked={notOpen} onClick={() => setDialog('reschedule')}>
        Reschedule…
      </Button>
      <Button
        needs="push"
        kind="danger"
        blocked={isOpen || state === 'inFlight' ? undefined : notOpen}
        onClick={() => setDialog('cancel')}
      >
        Cancel message…
      </Button>
      {dialog === 'reschedule' && <Reschedule topic={topic} message={message} onClose={close} onDone={onDone} />}
      {dialog === 'cancel' && (
        <Confirm
          title="Cancel this message?"
          deed="Cancel message"
          onClose={close}
          onConfirm={async () => {
            await api.cancel(topic, id, state === 'inFlight')
            announce(`${id} was removed`)
            onDone()
          }}
        >
          <p>
            <Outside text={id} limit={300} mono /> is removed and will not be delivered.
            {state === 'inFlight' && ' A consumer has it now: its lease is lost, but what it has begun goes on.'} It
            cannot be undone.
          </p>
        </Confirm>
      )}
    </>
  )
}

function Reschedule({
  topic,
  message,
  onClose,
  onDone,
}: MessageActionsProps & { readonly onClose: () => void }): JSX.Element {
  const [text, setText] = useState(localInput(message.dueAt))
  const at = fromLocalInput(text)
  const set = async (dueAt: number): Promise<void> => {
    await api.reschedule(topic, message.id, dueAt)
    announce(`${message.id} is due ${iso(dueAt)}`)
    onDone()
    onClose()
  }
  return (
    <Dialog title="Reschedule this message" onClose={onClose}>
      <label class="field">
        <span>Due, in your time zone</span>
        <input type="datetime-local" step={1} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <p class="small muted">{at === undefined ? 'This is not a valid time.' : iso(at)}</p>
      <div class="buttons end">
        <Button onClick={onClose}>Close</Button>
        <Button onClick={() => set(Date.now())}>Due now</Button>
        <Button
          kind="main"
          blocked={at === undefined ? 'This is not a valid time.' : undefined}
          onClick={() => set(at ?? 0)}
        >
          Reschedule
        </Button>
      </div>
    </Dialog>
  )
}
