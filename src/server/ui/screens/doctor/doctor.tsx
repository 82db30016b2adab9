import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import { refusal } from '../../api/session.js'
import type { Doctor as DoctorReport } from '../../api/types.js'
import { useNow } from '../../lib/clock.js'
import { count, duration } from '../../lib/format.js'
import { useLoad } from '../../lib/use-load.js'
import { Button } from '../../parts/button.js'
import { Head } from '../../parts/head.js'
import { When } from '../../parts/moment.js'
import { ErrorNote, Note } from '../../parts/notes.js'
import { Findings, summaryOf } from './findings.js'

/** An older report is not shown when the screen is opened: the doctor examines anew. */
const OLD_MS = 600_000

/** The findings of the library's doctor in this Redis. */
export function Doctor(): JSX.Element {
  const why = refusal('admin')
  return why === undefined || why.includes('read-only') ? (
    <Report />
  ) : (
    <>
      <Head title="Doctor" />
      <Note kind="warn">{why}</Note>
    </>
  )
}

function Report(): JSX.Element {
  const [again, setAgain] = useState(0)
  const { data, error, isLoading, reload } = useLoad(
    (signal) => api.doctor(again === 0 ? OLD_MS : 0, signal),
    [again],
    { keeps: true },
  )
  const examine = (): void => setAgain(again + 1)
  return (
    <>
      <Head
        title="Doctor"
        aside={
          <Button kind="main" blocked={isLoading ? 'It is examining now.' : undefined} onClick={examine}>
            {isLoading ? 'Examining…' : 'Examine again'}
          </Button>
        }
      >
        {data && (
          <span class="muted">
            examined <When at={data.at} />
          </span>
        )}
      </Head>
      {isLoading && <Examining />}
      <ErrorNote error={error} onRetry={reload} />
      {data && <Found of={data} />}
    </>
  )
}

/** That it takes its time is no fault. */
function Examining(): JSX.Element {
  const now = useNow()
  const [since] = useState(now)
  return (
    <Note>
      <div>
        The doctor looks at this Redis and its queues, without changing anything. Many queues take up to half a minute.
        <div class="bulk small">
          <progress aria-label="Examining" />
          <span class="muted">{duration(Math.max(0, now - since))}</span>
        </div>
      </div>
    </Note>
  )
}

function Found({ of }: { readonly of: DoctorReport }): JSX.Element {
  const { findings, leftOut, notExamined } = of
  return (
    <>
      {findings.length === 0 ? (
        <Note kind="good">Nothing was found that is wrong.</Note>
      ) : (
        <p class="muted">{summaryOf(findings)}</p>
      )}
      {notExamined > 0 && (
        <Note kind="warn">
          {count(notExamined)} {notExamined === 1 ? 'queue was' : 'queues were'} not examined: a report ends after half
          a minute, and is about 10,000 queues of a kind at most. They are chosen at random, so the next one is about
          others.
        </Note>
      )}
      <Findings of={findings} />
      {leftOut > 0 && <p class="muted">{count(leftOut)} more findings, no worse than these, are left out.</p>}
    </>
  )
}
