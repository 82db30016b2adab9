import type { Counts } from '../../api/types.js'
import { count, duration } from '../../lib/format.js'
import { href } from '../../lib/router.js'
import type { Column } from '../../parts/table.js'

interface Counted {
  readonly topic: string
  readonly counts: Counts | undefined
  readonly oldestMs: number | null | undefined
}

/** The counts of a topic; each links to its messages. */
export function countColumns<T>(of: (row: T) => Counted): Column<T>[] {
  const state = (name: string, key: 'visible' | 'delayed' | 'inFlight', to: (topic: string) => string): Column<T> => ({
    name,
    number: true,
    cell: (row) => {
      const { topic, counts } = of(row)
      if (counts === undefined) return <span class="muted">–</span>
      return counts[key] === 0 ? <span class="muted">0</span> : <a href={to(topic)}>{count(counts[key])}</a>
    },
  })
  return [
    state('Delayed', 'delayed', (topic) => href('/agenda', { topic })),
    state('Due', 'visible', (topic) => href('/agenda', { topic, show: 'overdue' })),
    state('In flight', 'inFlight', (topic) => href('/messages', { topic, state: 'inFlight' })),
    {
      name: 'Dead',
      number: true,
      cell: (row) => {
        const { topic, counts } = of(row)
        if (counts === undefined) return <span class="muted">–</span>
        return counts.dead === 0 ? (
          <span class="muted">0</span>
        ) : (
          <a class="bad-link" href={href('/dead-letters', { topic })}>
            {count(counts.dead)}
          </a>
        )
      },
    },
    {
      name: 'Oldest due',
      number: true,
      cell: (row) => {
        const { oldestMs, counts } = of(row)
        return oldestMs === null || oldestMs === undefined || counts?.visible === 0 ? (
          <span class="muted">–</span>
        ) : (
          duration(oldestMs)
        )
      },
    },
  ]
}
