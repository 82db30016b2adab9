import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import type { Paused } from '../../api/types.js'
import { visibleLine } from '../../lib/visible-text.js'
import { announce } from '../../parts/announcements.js'
import { Button } from '../../parts/button.js'
import { pausedSides } from './paused.js'

interface PauseButtonProps {
  readonly topic: string
  readonly paused: Paused | undefined
  readonly onDone: () => void
  readonly side?: 'receive' | 'push'
  readonly isShort?: boolean
}

/** Pauses or resumes one side of a topic. It can be undone, so it does not ask. */
export function PauseButton({
  topic,
  paused,
  onDone,
  side = 'receive',
  isShort = false,
}: PauseButtonProps): JSX.Element {
  const isPaused = pausedSides(paused).includes(side)
  const verb = isPaused ? 'Resume' : 'Pause'
  const what = side === 'receive' ? 'receiving' : 'pushes'
  return (
    <Button
      needs="admin"
      label={`${verb} ${what} of ${visibleLine(topic, 80)}`}
      onClick={async () => {
        await (isPaused ? api.resume(topic, side) : api.pause(topic, side))
        announce(isPaused ? `${what} of ${topic} goes on` : `${what} of ${topic} is paused`)
        onDone()
      }}
    >
      {isShort ? verb : `${verb} ${what}`}
    </Button>
  )
}
