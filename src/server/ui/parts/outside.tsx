import type { JSX } from 'preact'
import { count } from '../lib/format.js'
import { visible } from '../lib/visible-text.js'

interface OutsideProps {
  /** An id, a name, a body, an error: any text that does not come from this page. */
  readonly text: string | null | undefined
  readonly limit?: number
  readonly mono?: boolean
  /** Keeps line feeds and tabs. */
  readonly block?: boolean
}

/** A text from outside: isolated from its surroundings, cut, with hidden characters written out. */
export function Outside({ text, limit = 200, mono, block }: OutsideProps): JSX.Element {
  if (text === null || text === undefined || text === '') return <span class="muted">–</span>
  const { parts, cut } = visible(text, limit, block)
  return (
    <bdi class={`outside${mono === true ? ' mono' : ''}`}>
      {parts.map(({ text: part, isEscape }) => (isEscape ? <span class="escape">{part}</span> : part))}
      {cut > 0 && (
        <span class="muted">
          {' '}
          … {count(cut)} more {cut === 1 ? 'character' : 'characters'}
        </span>
      )}
    </bdi>
  )
}
