/** Splits items into pages of at most `most`, for one script or command each. */
export function pagesOf<T>(items: readonly T[], most: number): T[][] {
  const pages: T[][] = []
  for (let from = 0; from < items.length; from += most) pages.push(items.slice(from, from + most))
  return pages
}
