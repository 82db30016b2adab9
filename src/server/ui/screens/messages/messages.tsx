import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { session } from '../../api/session.js'
import { fromLocalInput, localInput } from '../../lib/format.js'
import { href, setQuery, useQuery } from '../../lib/router.js'
import { usePages } from '../../lib/use-pages.js'
import { Button } from '../../parts/button.js'
import { SelectField, TextField } from '../../parts/field.js'
import { Head } from '../../parts/head.js'
import { More } from '../../parts/more.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { MessageTable } from './message-table.js'

const STATES = [
  ['', 'Any state'],
  ['visible', 'Due'],
  ['delayed', 'Delayed'],
  ['inFlight', 'In flight'],
  ['dead', 'Dead letter'],
] as const

/** The search for messages. The address has all filters, so that it can be shared. */
export function Messages(): JSX.Element {
  const filter = {
    topic: useQuery('topic'),
    id: useQuery('id'),
    bizKey: useQuery('bizKey'),
    state: useQuery('state'),
    dueFrom: useQuery('dueFrom'),
    dueTo: useQuery('dueTo'),
  }
  const pages = usePages((cursor, signal) => api.messages({ ...filter, cursor }, signal), [filter])
  const set = (name: keyof typeof filter) => (value: string) => setQuery({ [name]: value }, { replace: true })
  const setTime = (name: 'dueFrom' | 'dueTo') => (value: string) =>
    setQuery({ [name]: fromLocalInput(value) }, { replace: true })
  const isFiltered = Object.values(filter).some((value) => value !== '')
  return (
    <>
      <Head
        title="Messages"
        aside={
          <>
            {isFiltered && (
              <a class="button" href={href('/messages')}>
                Clear the filters
              </a>
            )}
            <Button onClick={pages.reload}>Refresh</Button>
          </>
        }
      />
      <div class="filters" role="search">
        <TextField label="Id" value={filter.id} isSearch onChange={set('id')} />
        {session.get()?.journal === true && (
          <TextField label="Business key" value={filter.bizKey} isSearch onChange={set('bizKey')} />
        )}
        <TextField label="Topic" value={filter.topic} placeholder="all topics" onChange={set('topic')} />
        <SelectField label="State" value={filter.state} options={STATES} onChange={set('state')} />
        <TextField
          label="Due from"
          type="datetime-local"
          value={timeField(filter.dueFrom)}
          onChange={setTime('dueFrom')}
        />
        <TextField
          label="Due until"
          type="datetime-local"
          value={timeField(filter.dueTo)}
          onChange={setTime('dueTo')}
        />
      </div>
      <ErrorNote error={pages.error} onRetry={pages.reload} />
      {pages.last?.complete === false && (
        <Note kind="warn">
          {whyNotAll(filter.id !== '' && session.get()?.journal === true && pages.last.source === 'redis')}
        </Note>
      )}
      <div class="panel">
        <MessageTable
          label="Messages"
          rows={pages.rows}
          isLoading={pages.isLoading}
          empty={isFiltered ? 'No message matches.' : 'There are no messages.'}
        />
        <More pages={pages} />
      </div>
    </>
  )
}

function whyNotAll(isSqlAway: boolean): string {
  return isSqlAway
    ? 'The database of the journal does not answer, so final messages are missing.'
    : 'There are more topics than one search reads. Give a topic to look at all of it.'
}

function timeField(ms: string): string {
  return ms === '' ? '' : localInput(Number(ms))
}
