import type { ComponentChildren, JSX } from 'preact'
import { Problem, Unreachable } from '../api/request.js'
import { Outside } from './outside.js'

/** An error, shown instead of the data or above outdated data. */
export function ErrorNote({
  error,
  onRetry,
}: {
  readonly error: unknown
  readonly onRetry?: () => void
}): JSX.Element | null {
  if (error === undefined || error === null) return null
  return (
    <div class="note bad" role="alert">
      <div>
        <strong>{titleOf(error)}</strong>
        <ErrorDetail error={error} />
      </div>
      {onRetry && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

function ErrorDetail({ error }: { readonly error: unknown }): JSX.Element | null {
  if (!(error instanceof Problem)) return null
  return (
    <div class="muted">
      {error.detail !== undefined && (
        <div>
          <Outside text={error.detail} limit={1_000} />
        </div>
      )}
      <div class="small">
        {error.code !== '' && <code>{error.code}</code>} {error.status}
        {error.requestId !== undefined && (
          <>
            {' · request '}
            <Outside text={error.requestId} mono />
          </>
        )}
      </div>
    </div>
  )
}

function titleOf(error: unknown): ComponentChildren {
  if (error instanceof Problem) return <Outside text={error.title} />
  if (error instanceof Unreachable) return error.message
  return 'The page has failed. Reload it.'
}

export function Note({
  kind = 'info',
  children,
}: {
  readonly kind?: 'info' | 'warn' | 'bad' | 'good'
  readonly children: ComponentChildren
}): JSX.Element {
  return <div class={`note ${kind}`}>{children}</div>
}
