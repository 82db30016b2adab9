import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import type { DeadLetterFilter } from '../../api/types.js'
import { count } from '../../lib/format.js'
import { announce, announceError } from '../../parts/announcements.js'
import { Button } from '../../parts/button.js'
import { Confirm } from '../../parts/dialog.js'

interface BulkProps {
  readonly filter: DeadLetterFilter
  /** The number of matches, if the service has counted them. */
  readonly matched: number | null | undefined
  readonly isEmpty: boolean
  readonly onDone: () => void
}

type Deed = 'redrive' | 'delete'
const DOING = { redrive: 'Redriving', delete: 'Deleting' }
const DID = { redrive: 'redriven', delete: 'deleted' }

interface Run {
  readonly deed: Deed
  readonly done: number
  readonly total: number | undefined
}

/** Redrives or deletes all matching dead letters, with calls that each do a bounded part, until the service returns no cursor. */
export function Bulk({ filter, matched, isEmpty, onDone }: BulkProps): JSX.Element {
  const [asked, setAsked] = useState<Deed | undefined>(undefined)
  const [run, setRun] = useState<Run | undefined>(undefined)
  const controller = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => controller.current?.abort(), [])

  const start = async (deed: Deed): Promise<void> => {
    const { signal } = (controller.current = new AbortController())
    let done = 0
    let cursor: string | undefined
    setRun({ deed, done, total: matched ?? undefined })
    try {
      do {
        const answer = await api.bulk(deed, { ...filter, ...(cursor !== undefined && { cursor }) }, signal)
        done += answer.done
        cursor = answer.cursor
        setRun((before) => before && { ...before, done })
      } while (cursor !== undefined)
      announce(`${count(done)} dead letters were ${DID[deed]}`)
    } catch (error) {
      if (signal.aborted) announce(`Stopped: ${count(done)} dead letters were ${DID[deed]}`)
      else announceError(error, `${count(done)} dead letters were ${DID[deed]} before that.`)
    } finally {
      setRun(undefined)
      onDone()
    }
  }

  if (run) {
    const { deed, done, total } = run
    return (
      <div class="bulk" role="status">
        <span>
          {DOING[deed]}: {count(done)}
          {total !== undefined && ` of ${count(Math.max(total, done))}`}
        </span>
        <progress
          aria-label={DOING[deed]}
          max={total ?? 1}
          {...(total !== undefined && { value: Math.min(done, total) })}
        />
        <Button onClick={() => controller.current?.abort()}>Stop</Button>
      </div>
    )
  }
  const isFiltered = Object.keys(filter).length > 0
  const blocked = isEmpty ? 'No dead letters match.' : undefined
  const howMany = isNone(matched) ? 'all' : `all ${count(matched)}`
  return (
    <div class="bulk">
      <span class="muted">{isNone(matched) ? '' : `${count(matched)} ${isFiltered ? 'match' : 'in all topics'}`}</span>
      <Button
        needs="admin"
        kind="main"
        blocked={blocked}
        // redriving is harmless, as messages that fail again come back here: it asks only without a filter
        onClick={() => (isFiltered ? void start('redrive') : setAsked('redrive'))}
      >
        Redrive {isFiltered ? `${howMany} that match` : `${howMany}…`}
      </Button>
      <Button needs="admin" kind="danger" blocked={blocked} onClick={() => setAsked('delete')}>
        Delete {isFiltered ? `${howMany} that match…` : `${howMany}…`}
      </Button>
      {asked && (
        <Confirm
          title={`${asked === 'redrive' ? 'Redrive' : 'Delete'} ${howMany} dead letters?`}
          deed={asked === 'redrive' ? 'Redrive' : 'Delete'}
          onClose={() => setAsked(undefined)}
          onConfirm={async () => void start(asked)}
        >
          <p>
            {asked === 'redrive'
              ? 'No filter is set, so this is about the dead letters of all topics. They are due at once, without attempts.'
              : isFiltered
                ? 'This removes every dead letter that matches the filter. It cannot be undone.'
                : 'No filter is set, so this removes the dead letters of all topics. It cannot be undone.'}
          </p>
        </Confirm>
      )}
    </div>
  )
}
