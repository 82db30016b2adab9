import type { JSX } from 'preact'
import { Outside } from '../../parts/outside.js'

export function Headers({
  of,
  isHidden,
}: {
  readonly of: Readonly<Record<string, string>>
  readonly isHidden: boolean
}): JSX.Element | null {
  const headers = Object.entries(of)
  if (isHidden || headers.length === 0) return null
  return (
    <section class="panel" aria-labelledby="headers">
      <h2 id="headers">Headers</h2>
      <dl class="facts mono-facts">
        {headers.map(([name, value]) => (
          <div key={name}>
            <dt>
              <Outside text={name} mono />
            </dt>
            <dd>
              <Outside text={value} limit={1_000} mono />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
