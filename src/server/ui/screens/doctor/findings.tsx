import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Finding } from '../../api/types.js'
import { count } from '../../lib/format.js'
import { isNone } from '../../lib/is-none.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'

/** How many findings of one kind are shown at first, and how many more with each click. */
const SHOWN = 10
const MORE = 100

/** Those of one kind together, so that what they mean and what to do is said once. */
export function Findings({ of }: { readonly of: readonly Finding[] }): JSX.Element {
  const kinds = new Map<string, Finding[]>()
  for (const finding of of) {
    const kind = `${finding.severity} ${finding.code}`
    const known = kinds.get(kind)
    if (known) known.push(finding)
    else kinds.set(kind, [finding])
  }
  return (
    <ul class="findings">
      {[...kinds].map(([kind, group]) => (
        <Kind key={kind} of={group} />
      ))}
    </ul>
  )
}

/** `2 errors, 31 warnings, 4 to know` */
export function summaryOf(findings: readonly Finding[]): string {
  const words = [
    ['error', 'error', 'errors'],
    ['warning', 'warning', 'warnings'],
    ['info', 'thing to know', 'things to know'],
  ] as const
  return words
    .flatMap(([severity, one, many]) => {
      const found = findings.filter((finding) => finding.severity === severity).length
      return found === 0 ? [] : [`${count(found)} ${found === 1 ? one : many}`]
    })
    .join(', ')
}

function Kind({ of }: { readonly of: readonly Finding[] }): JSX.Element | null {
  const [most, setMost] = useState(SHOWN)
  const [first] = of
  if (first === undefined) return null
  return (
    <li class="panel">
      <div class="step-head">
        <State of={first.severity} />
        <code>
          <Outside text={first.code} limit={80} />
        </code>
        {of.length > 1 && <span class="muted">{count(of.length)} times</span>}
      </div>
      <ul class="found">
        {of.slice(0, most).map(({ queue, found }, at) => (
          <li key={at}>
            {!isNone(queue) && (
              <>
                <b>
                  <Outside text={queue} limit={128} mono />
                </b>{' '}
              </>
            )}
            <Sentence text={found} />
          </li>
        ))}
      </ul>
      {of.length > most && (
        <div>
          <button type="button" class="button" onClick={() => setMost(most + MORE)}>
            {count(of.length - most)} more
          </button>
        </div>
      )}
      <p>
        <Sentence text={first.means} />
      </p>
      {!isNone(first.advice) && first.advice !== '' && (
        <p>
          <span class="tag">what to do</span> <Sentence text={first.advice} />
        </p>
      )}
    </li>
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
