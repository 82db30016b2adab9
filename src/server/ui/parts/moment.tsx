import type { JSX } from 'preact'
import { ago, iso, moment } from '../lib/format.js'
import { useNow } from '../lib/clock.js'

/** A time in the reader's zone, with the exact instant as its tip. */
export function Moment({ at }: { readonly at: number | null | undefined }): JSX.Element {
  if (at === null || at === undefined) return <span class="muted">–</span>
  return (
    <time dateTime={iso(at)} title={iso(at)}>
      {moment(at)}
    </time>
  )
}

/** A time, and how far away it is. */
export function When({ at }: { readonly at: number | null | undefined }): JSX.Element {
  const now = useNow()
  if (at === null || at === undefined) return <span class="muted">–</span>
  return (
    <span class="when">
      <Moment at={at} /> <span class="muted">{ago(at, now)}</span>
    </span>
  )
}
