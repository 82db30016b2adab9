import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import { api } from '../../api/api.js'
import { refusal } from '../../api/session.js'
import { useLoad } from '../../lib/use-load.js'
import { Button } from '../../parts/button.js'
import { Head } from '../../parts/head.js'
import { Moment } from '../../parts/moment.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'

const MOST = 200

/** What the doctor of the library finds in this Redis. */
export function Doctor(): JSX.Element {
  const why = refusal('admin')
  return (
    <>
      <Head title="Doctor" />
      {why === undefined || why.includes('read-only') ? <Report /> : <Note kind="warn">{why}</Note>}
    </>
  )
}

function Report(): JSX.Element {
  const { data, error, isLoading, reload } = useLoad((signal) => api.doctor(signal), [])
  const findings = data?.findings ?? []
  return (
    <>
      <div class="buttons">
        <Button onClick={reload}>{isLoading ? 'Examining…' : 'Examine again'}</Button>
        {data && (
          <span class="muted small">
            examined <Moment at={data.at} />
          </span>
        )}
      </div>
      <ErrorNote error={error} onRetry={reload} />
      {data && findings.length === 0 && <Note kind="good">Nothing was found that is wrong.</Note>}
      <ul class="findings">
        {findings.slice(0, MOST).map((finding, at) => (
          <li class="panel" key={at}>
            <div class="step-head">
              <State of={finding.severity} />
              <code>
                <Outside text={finding.code} limit={80} />
              </code>
              {!isNone(finding.queue) && <Outside text={finding.queue} limit={128} mono />}
            </div>
            <p>
              <Sentence text={finding.message} />
            </p>
            {!isNone(finding.advice) && finding.advice !== '' && (
              <p class="muted">
                <Sentence text={finding.advice} />
              </p>
            )}
          </li>
        ))}
      </ul>
      {findings.length > MOST && <p class="muted">{findings.length - MOST} more findings</p>}
    </>
  )
}

const MOST_CHARACTERS = 1_000

/** What the doctor says to a terminal: between backticks stands code. */
function Sentence({ text }: { readonly text: string }): JSX.Element {
  const pieces = text.split('`')
  if (text.length > MOST_CHARACTERS || pieces.length % 2 === 0) return <Outside text={text} limit={MOST_CHARACTERS} />
  return (
    <>
      {pieces.map((piece, at) => {
        if (piece === '') return null
        return at % 2 === 0 ? (
          <Outside key={at} text={piece} limit={MOST_CHARACTERS} />
        ) : (
          <code key={at}>
            <Outside text={piece} limit={MOST_CHARACTERS} />
          </code>
        )
      })}
    </>
  )
}
