import type { JSX } from 'preact'
import type { Overview } from '../../api/types.js'
import { count, duration, rate, short } from '../../lib/format.js'
import { href } from '../../lib/router.js'
import { Outside } from '../../parts/outside.js'
import { Tile } from '../../parts/tile.js'
import { messageHref } from '../messages/message-link.js'

const LATE_MS = 60_000

/** The most important figures. Each links to what it counts. */
export function Figures({ of }: { readonly of: Overview }): JSX.Element {
  const { counts, oldestDue, rates, lateness } = of
  return (
    <section class="tiles eight" aria-label="Figures">
      <Tile name="Delayed" href={href('/agenda')}>
        <span title={count(counts.delayed)}>{short(counts.delayed)}</span>
      </Tile>
      <Tile name="Due, waiting" href={href('/agenda', { show: 'overdue' })}>
        <span title={count(counts.visible)}>{short(counts.visible)}</span>
      </Tile>
      <Tile name="In flight" href={href('/messages', { state: 'inFlight' })}>
        <span title={count(counts.inFlight)}>{short(counts.inFlight)}</span>
      </Tile>
      <Tile name="Dead letters" href={href('/dead-letters')} kind={counts.dead > 0 ? 'bad' : undefined}>
        <span title={count(counts.dead)}>{short(counts.dead)}</span>
      </Tile>
      <OldestDue of={oldestDue} />
      <Tile name="Lateness, median" note={lateness === null ? undefined : `99 % within ${duration(lateness.p99)}`}>
        {lateness === null ? '–' : duration(lateness.p50)}
      </Tile>
      <Tile name="Pushed a second">{rate(rates.pushed)}</Tile>
      <Tile
        name="Delivered a second"
        note={rates.failed + rates.dead === 0 ? undefined : `${rate(rates.failed)} failed, ${rate(rates.dead)} dead`}
      >
        {rate(rates.delivered)}
      </Tile>
    </section>
  )
}

function OldestDue({ of }: { readonly of: Overview['oldestDue'] }): JSX.Element {
  if (of === null) return <Tile name="Oldest overdue">–</Tile>
  const { topic, id, overdueMs } = of
  const to = id === undefined ? href('/agenda', { show: 'overdue', topic }) : messageHref(topic, id)
  return (
    <Tile
      name="Oldest overdue"
      href={to}
      kind={overdueMs > LATE_MS ? 'warn' : undefined}
      note={<Outside text={id === undefined ? topic : `${topic} / ${id}`} limit={60} />}
    >
      {duration(overdueMs)}
    </Tile>
  )
}
