/** The limits of the pages under way at the same time: their number, and their bytes together; a single page may be larger. */
export interface Overlap<P> {
  readonly most: number
  readonly mostBytes: number
  readonly bytesOf: (page: P) => number
}

/**
 * Runs an action for each page, several at the same time; yields the results in the order of the pages. When the generator has ended, no
 * action is under way.
 */
export async function* overlapped<P, R>(
  pages: AsyncIterable<P>,
  { most, mostBytes, bytesOf }: Overlap<P>,
  action: (page: P) => Promise<R>,
): AsyncGenerator<R, void> {
  const underWay: { readonly result: Promise<R>; readonly bytes: number }[] = []
  let bytes = 0
  const first = (): Promise<R> => {
    const page = underWay.shift() as (typeof underWay)[number]
    bytes -= page.bytes
    return page.result
  }
  try {
    for await (const page of pages) {
      const size = bytesOf(page)
      while (underWay.length > 0 && (underWay.length >= most || bytes + size > mostBytes)) yield await first()
      underWay.push({ result: handled(action(page)), bytes: size })
      bytes += size
    }
    while (underWay.length > 0) yield await first()
  } finally {
    await Promise.allSettled(underWay.map(({ result }) => result))
  }
}

/** Avoids an unhandled rejection: the result is awaited later, or never if an earlier page fails. */
function handled<R>(result: Promise<R>): Promise<R> {
  result.catch(() => undefined)
  return result
}
