import type { JSX } from 'preact'
import { visibleLine } from '../../lib/visible-text.js'
import { href, pathOf } from '../../lib/router.js'
import { Outside } from '../../parts/outside.js'

export function messageHref(topic: string, id: string): string {
  return href(pathOf('topics', topic, 'messages', id))
}

export function MessageLink({ topic, id }: { readonly topic: string; readonly id: string }): JSX.Element {
  return (
    <a href={messageHref(topic, id)} title={visibleLine(id)}>
      <Outside text={id} limit={64} mono />
    </a>
  )
}

export function TopicLink({ name }: { readonly name: string }): JSX.Element {
  return (
    <a href={href(pathOf('topics', name))}>
      <Outside text={name} limit={128} />
    </a>
  )
}
