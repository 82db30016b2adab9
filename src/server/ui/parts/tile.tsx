import type { ComponentChildren, JSX } from 'preact'

interface TileProps {
  readonly name: string
  readonly children: ComponentChildren
  readonly note?: ComponentChildren
  readonly href?: string
  readonly kind?: 'bad' | 'warn' | undefined
}

/** A figure with its name. With `href` the whole tile is a link. */
export function Tile({ name, children, note, href, kind }: TileProps): JSX.Element {
  const inside = (
    <>
      <span class="tile-name">{name}</span>
      <span class="tile-value">{children}</span>
      {note !== undefined && <span class="tile-note">{note}</span>}
    </>
  )
  const classes = `tile ${kind ?? ''}`
  return href === undefined ? (
    <div class={classes}>{inside}</div>
  ) : (
    <a class={classes} href={href}>
      {inside}
    </a>
  )
}
