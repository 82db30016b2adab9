import { integer } from '../options.js'

/** The largest page that a caller can ask for. */
export const MAX_PAGE = 10_000

/** The most values of `retainAll`, which sends them with every page of the walk. */
export const MAX_RETAINED = 10_000

/** Options of walking a queue. */
export interface IterateOptions {
  readonly pageSize?: number
}

/** Walks a list or a schedule page by page; `fetch` gets the first and last index of a page. */
export async function* pages(
  { pageSize = 100 }: IterateOptions,
  fetch: (first: number, last: number) => Promise<Buffer[]>,
): AsyncGenerator<Buffer[], void> {
  integer('pageSize', pageSize, 1, MAX_PAGE)
  for (let first = 0; ; first += pageSize) {
    const page = await fetch(first, first + pageSize - 1)
    if (page.length > 0) yield page
    if (page.length < pageSize) return
  }
}
