import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import type { Agenda } from '../../api/types.js'
import { serverNow } from '../../lib/clock.js'
import { count, iso, short } from '../../lib/format.js'
import { href, pathOf, useQuery } from '../../lib/router.js'
import { useLoad } from '../../lib/use-load.js'
import { ErrorNote } from '../../parts/notes.js'
import { Tile } from '../../parts/tile.js'
import { Ticks, labelOf } from '../agenda/histogram.js'
import { RANGES, rangeOf, type Range } from '../agenda/ranges.js'

/** The histogram of a queue's due times. */
export function QueueAgenda({ name }: { readonly name: string }): JSX.Element {
  const codec = useQuery('codec')
  const range = rangeOf(useQuery('range'))
  const { data, error, reload } = useLoad(
    (signal) => {
      const from = Math.round(serverNow())
      return api.queueAgenda(name, { from, to: from + range.ms, buckets: range.buckets }, signal)
    },
    [name, range.key],
    { everyMs: range.refreshMs, keeps: true },
  )
  const due = data?.buckets.reduce((sum, bucket) => sum + bucket.count, 0) ?? 0
  return (
    <>
      <div class="segments" role="group" aria-label="Range">
        {RANGES.map(({ key, name: title }) => (
          <a
            key={key}
            href={href(pathOf('queues', name), { codec, range: key })}
            {...(key === range.key && { 'aria-current': 'true' as const })}
          >
            {title}
          </a>
        ))}
      </div>
      <ErrorNote error={error} onRetry={reload} />
      <section class="agenda" aria-label="What is due when">
        <Tile name="Overdue" kind={data && data.overdue > 0 ? 'warn' : undefined}>
          {data ? count(data.overdue) : '–'}
        </Tile>
        <div class="panel">
          <div class="panel-head">
            <h2>
              {data ? count(due) : '–'} due in the next {range.words}
            </h2>
          </div>
          {data ? <Bars of={data} clock={range.clock} /> : <div class="histogram bone-tile" />}
        </div>
        <Tile name="Later" note={`after that ${range.words}`}>
          {data ? count(data.later) : '–'}
        </Tile>
      </section>
    </>
  )
}

function Bars({ of: { buckets }, clock }: { readonly of: Agenda; readonly clock: Range['clock'] }): JSX.Element {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count))
  const label = labelOf(clock)
  return (
    <div class="histogram-box">
      <span class="scale" aria-hidden="true">
        {short(most)}
      </span>
      <ol class="histogram">
        {buckets.map(({ from, to, count: due }, at) => (
          <li key={at} title={`${count(due)} due\n${label(from)} – ${label(to)}\n${iso(from)}`}>
            <a>
              <span class="unseen">
                {count(due)} due from {label(from)} to {label(to)}
              </span>
              {/* by the CSSOM: an attribute `style` is refused by the policy of the page */}
              <span class="bar" style={{ height: due === 0 ? '0' : `${Math.max(2, (due / most) * 100)}%` }} />
            </a>
          </li>
        ))}
      </ol>
      <Ticks of={buckets} label={label} />
    </div>
  )
}
