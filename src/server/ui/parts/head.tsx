import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { moved } from '../lib/router.js'
import { visibleLine } from '../lib/visible-text.js'
import { Outside } from './outside.js'

interface HeadProps {
  /** The subject of the screen; a name from outside is shown as such. */
  readonly title: string
  /** The parent screen. */
  readonly above?: { readonly name: string; readonly href: string }
  /** The number of problems, which the tab of the browser shows. */
  readonly alerts?: number
  readonly aside?: ComponentChildren
  readonly children?: ComponentChildren
}

/** The heading of a screen. It takes the focus, so that keyboards and screen readers start here. */
export function Head({ title, above, alerts = 0, aside, children }: HeadProps): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${alerts > 0 ? `(${alerts}) ` : ''}${visibleLine(title, 80)} · redelayed`
  }, [title, alerts])
  useEffect(() => {
    if (!moved()) return // on the first screen the browser sets the focus
    heading.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [title])
  return (
    <header class="head">
      <div class="head-title">
        {above && (
          <a class="above" href={above.href}>
            {above.name}
          </a>
        )}
        <h1 ref={heading} tabIndex={-1}>
          <Outside text={title} limit={160} />
        </h1>
        {children}
      </div>
      {aside && <div class="buttons">{aside}</div>}
    </header>
  )
}
