import type { Requests } from './requests.js'

/** Yields all items of a listing, page by page. */
export async function* pagesOf<T>(
  requests: Requests,
  path: string,
  field: string,
  {
    signal,
    query = {},
  }: { readonly signal?: AbortSignal; readonly query?: Readonly<Record<string, string | undefined>> } = {},
): AsyncGenerator<T, void> {
  for (let cursor: string | undefined; ;) {
    const call = { query: { ...query, cursor }, signal, isRepeatable: true }
    const page = await requests.json<Record<string, unknown>>('GET', path, call)
    yield* page[field] as T[]
    if (page['cursor'] === undefined) return
    cursor = page['cursor'] as string
  }
}
