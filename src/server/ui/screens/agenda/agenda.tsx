import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { serverNow } from '../../lib/clock.js'
import { count } from '../../lib/format.js'
import { href, setQuery, useQuery } from '../../lib/router.js'
import { useLoad } from '../../lib/use-load.js'
import { TextField } from '../../parts/field.js'
import { Head } from '../../parts/head.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { Tile } from '../../parts/tile.js'
import { DueMessages } from './due-messages.js'
import { Histogram } from './histogram.js'
import { RANGES, rangeOf } from './ranges.js'

/** The histogram of due times, with the messages of a bar. */
export function Agenda(): JSX.Element {
  const topic = useQuery('topic')
  const range = rangeOf(useQuery('range'))
  const show = useQuery('show')
  const { data, error, reload } = useLoad(
    (signal) => {
      const now = Math.round(serverNow())
      return api.agenda({ topic, from: now, to: now + range.ms, buckets: range.buckets }, signal)
    },
    [topic, range.key],
    { everyMs: range.refreshMs },
  )
  const keep = { topic, range: range.key }
  const due = data?.buckets.reduce((sum, bucket) => sum + bucket.count, 0) ?? 0
  return (
    <>
      <Head title="Agenda" />
      <div class="filters" role="search">
        <div class="segments" role="group" aria-label="Range">
          {RANGES.map(({ key, name }) => (
            <a
              key={key}
              href={href('/agenda', { topic, range: key })}
              {...(key === range.key && { 'aria-current': 'true' as const })}
            >
              {name}
            </a>
          ))}
        </div>
        <TextField
          label="Topic"
          value={topic}
          isSearch
          placeholder="all topics"
          onChange={(value) => setQuery({ topic: value, show: '', from: '', to: '' }, { replace: true })}
        />
      </div>
      <ErrorNote error={error} onRetry={reload} />
      <section class="agenda" aria-label="What is due when">
        <Tile
          name="Overdue"
          note="due, with no consumer"
          href={href('/agenda', { ...keep, show: 'overdue' })}
          kind={data && data.overdue > 0 ? 'warn' : undefined}
        >
          {data ? count(data.overdue) : '–'}
        </Tile>
        <div class="panel">
          <div class="panel-head">
            <h2>
              {data ? count(due) : '–'} due in the next {range.words}
            </h2>
            {data?.exact === false && (
              <span class="muted small">estimated: there are too many topics to count each</span>
            )}
          </div>
          {data ? (
            <Histogram of={data} keep={keep} clock={range.clock} />
          ) : (
            <div class="histogram bone-tile" aria-busy={error === undefined} />
          )}
        </div>
        <Tile name="Later" note={`after that ${range.words}`} href={href('/agenda', { ...keep, show: 'later' })}>
          {data ? count(data.later) : '–'}
        </Tile>
      </section>
      {show === '' ? (
        <Note>Choose a bar, what is overdue, or what comes later, to see the messages.</Note>
      ) : (
        <DueMessages topic={topic} show={show} end={data?.to} />
      )}
    </>
  )
}
