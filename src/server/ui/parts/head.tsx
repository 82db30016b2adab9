import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { moved } from '../lib/router.js'
import { visibleLine } from '../lib/visible-text.js'
import { Outside } from './outside.js'

interface HeadProps {
  /** What the screen is about; a name from outside is shown as such. */
  readonly title: string
  /** Where this belongs: the screen above it. */
  readonly above?: { readonly name: string; readonly href: string }
  readonly aside?: ComponentChildren
  readonly children?: ComponentChildren
}

/** The head of a screen. It takes the focus, so that keyboards and screen readers begin here. */
export function Head({ title, above, aside, children }: HeadProps): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${visibleLine(title, 80)} · redelayed`
    if (!moved()) return // the first screen: the browser has put the focus
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
