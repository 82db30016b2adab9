import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { Agenda } from '../../api/types.js'
import { count, iso, short } from '../../lib/format.js'
import { href, useQuery } from '../../lib/router.js'
import type { Range } from './ranges.js'

interface HistogramProps {
  readonly of: Agenda
  readonly keep: { readonly topic: string; readonly range: string }
  readonly clock: Range['clock']
}

/**
 * A bar for each part of the range, which links to its messages. Only one bar is in the Tab order; the arrow keys move between the bars.
 */
export function Histogram({ of: { buckets, exact }, keep, clock }: HistogramProps): JSX.Element {
  const [focused, setFocused] = useState(0)
  const list = useRef<HTMLOListElement>(null)
  const chosen = Number(useQuery('from'))
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count))
  const label = labelOf(clock)
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -buckets.length, End: buckets.length }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const next = Math.min(Math.max(0, Math.min(focused, buckets.length - 1) + step), buckets.length - 1)
    setFocused(next)
    list.current?.querySelectorAll('a')[next]?.focus()
  }
  return (
    <div class="histogram-box">
      <span class="scale" aria-hidden="true">
        {short(most)}
      </span>
      <ol class="histogram" ref={list} onKeyDown={onKeyDown}>
        {buckets.map(({ from, to, count: due }, at) => (
          <li key={at}>
            <a
              href={href('/agenda', { ...keep, show: 'bar', from, to })}
              tabIndex={at === Math.min(focused, buckets.length - 1) ? 0 : -1}
              onFocus={() => setFocused(at)}
              title={`${exact ? '' : 'about '}${count(due)} due\n${label(from)} – ${label(to)}\n${iso(from)}`}
              aria-label={`${count(due)} due from ${label(from)} to ${label(to)}`}
              {...(chosen >= from && chosen < to && { 'aria-current': 'true' as const })}
            >
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

/** The start times of some bars. */
export function Ticks({
  of: buckets,
  label,
}: {
  readonly of: Agenda['buckets']
  readonly label: (at: number) => string
}): JSX.Element {
  return (
    <div class="ticks" aria-hidden="true">
      {[0, 0.25, 0.5, 0.75].map((part) => {
        const bucket = buckets[Math.floor(part * buckets.length)]
        return <span key={part}>{bucket ? label(bucket.from) : ''}</span>
      })}
    </div>
  )
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

export function labelOf(clock: Range['clock']): (at: number) => string {
  return (at) => {
    const date = new Date(at)
    const part = (value: number): string => String(value).padStart(2, '0')
    const time = `${part(date.getHours())}:${part(date.getMinutes())}`
    if (clock === 'seconds') return `${time}:${part(date.getSeconds())}`
    return clock === 'minutes' ? time : `${DAYS[date.getDay()] ?? ''} ${time}`
  }
}
