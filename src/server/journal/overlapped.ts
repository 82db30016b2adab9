/**
 * Does something with each of many pages, so that some are under way at the same time; yields the results in the order of the pages. Nothing is
 * under way any more when it has ended.
 */
export async function* overlapped<P, R>(
  pages: AsyncIterable<P>,
  atOnce: number,
  action: (page: P) => Promise<R>,
): AsyncGenerator<R, void> {
  const underWay: Promise<R>[] = []
  try {
    for await (const page of pages) {
      underWay.push(handled(action(page)))
      if (underWay.length >= atOnce) yield await (underWay.shift() as Promise<R>)
    }
    while (underWay.length > 0) yield await (underWay.shift() as Promise<R>)
  } finally {
    await Promise.allSettled(underWay)
  }
}

/** It is awaited later, unless an earlier page fails. */
function handled<R>(result: Promise<R>): Promise<R> {
  result.catch(() => undefined)
  return result
}
