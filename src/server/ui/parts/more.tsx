import type { JSX } from 'preact'
import type { Page, Pages } from '../lib/use-pages.js'

/** The button under a list that has more pages. */
export function More({
  pages,
}: {
  readonly pages: Pick<Pages<Page<unknown>>, 'hasMore' | 'isLoading' | 'more'>
}): JSX.Element | null {
  if (!pages.hasMore) return null
  return (
    <div class="more">
      <button type="button" class="button" onClick={pages.more} disabled={pages.isLoading}>
        {pages.isLoading ? 'Loading…' : 'Show more'}
      </button>
    </div>
  )
}
