import type { JSX } from 'preact'
import { session } from '../api/session.js'
import { shortcuts } from '../lib/preferences.js'
import { createStore, useStore } from '../lib/store.js'
import { Button } from '../parts/button.js'
import { Dialog } from '../parts/dialog.js'
import { placesOf } from './places.js'

const isOpen = createStore(false)

export function openHelp(): void {
  isOpen.set(true)
}

/** The shortcuts, and the switch for them. */
export function Help(): JSX.Element | null {
  const open = useStore(isOpen)
  const chosen = useStore(shortcuts)
  if (!open) return null
  const close = (): void => isOpen.set(false)
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <dl class="keys">
        {placesOf(session.get() ?? {})
          .flatMap(([, places]) => places)
          .map(({ name, key }) => (
            <Key key={key} keys={['g', key]} what={name} />
          ))}
        <Key keys={['/']} what="Search on this screen" />
        <Key keys={['?']} what="These shortcuts" />
        <Key keys={['Esc']} what="Close a dialog" />
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={chosen === 'on'}
          onChange={(event) => shortcuts.set(event.currentTarget.checked ? 'on' : 'off')}
        />
        Shortcuts are on
      </label>
      <div class="buttons end">
        <Button onClick={close}>Close</Button>
      </div>
    </Dialog>
  )
}

function Key({ keys, what }: { readonly keys: readonly string[]; readonly what: string }): JSX.Element {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{what}</dd>
    </div>
  )
}
