import type { ComponentChildren, JSX } from 'preact'

/** Names and values, such as settings. Values that are undefined are left out. */
export function Facts({
  of,
}: {
  readonly of: readonly (readonly [name: string, value: ComponentChildren])[]
}): JSX.Element {
  return (
    <dl class="facts">
      {of.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}
