import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { Message } from '../../api/types.js'
import { bytes } from '../../lib/format.js'
import { Button } from '../../parts/button.js'
import { Outside } from '../../parts/outside.js'

/** The most characters shown at a time: more would slow down the browser. */
const SHOWN = 65_536

interface BodyProps {
  readonly of: Message
  /** Whether the service has more of the body. */
  readonly canMore: boolean

  readonly onMore: () => void
}

export function Body({ of, canMore, onMore }: BodyProps): JSX.Element {
  const [limit, setLimit] = useState(SHOWN)
  const { text, kind } = useMemo(() => textOf(of), [of.bodyText, of.bodyBase64, of.body])
  const isLonger = text.length > limit
  return (
    <section class="panel" aria-labelledby="body">
      <div class="panel-head">
        <h2 id="body">Body</h2>
        <span class="muted small">
          {of.bodyHidden === true
            ? ''
            : `${kind}, ${of.bodyCut ? `${bytes(of.bodyCut.bytes)}, the beginning` : bytes(text.length)}`}
        </span>
      </div>
      {of.bodyHidden === true ? (
        <p class="empty">This key may not see bodies and headers.</p>
      ) : (
        <pre class="body" tabIndex={0} aria-label="Body">
          <Outside text={text.slice(0, limit)} limit={limit} block mono />
        </pre>
      )}
      {(isLonger || (of.bodyCut !== undefined && canMore)) && (
        <div class="buttons">
          <Button
            onClick={() => {
              setLimit(limit * 4)
              if (!isLonger) onMore()
            }}
          >
            Show more
          </Button>
        </div>
      )}
    </section>
  )
}

function textOf({ body, bodyText, bodyBase64 }: Message): { text: string; kind: string } {
  if (bodyText !== undefined) return { text: bodyText, kind: 'text' }
  if (bodyBase64 !== undefined) return { text: bodyBase64, kind: 'bytes as base64' }
  return { text: body === undefined ? 'null' : JSON.stringify(body, undefined, 2), kind: 'JSON' }
}
