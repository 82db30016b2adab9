type Arrived<V> =
  | { readonly source: AsyncIterator<V, unknown>; readonly result: IteratorResult<V, unknown> }
  | { readonly failure: unknown }

/**
 * Merges several iterators in the order in which their values come. Ends with the first that ends, and rejects with the first that fails.
 */
export async function* merged<V>(sources: readonly AsyncIterator<V, unknown>[]): AsyncGenerator<V, void> {
  const arrived: Arrived<V>[] = []
  let wake = (): void => undefined
  const arrive = (one: Arrived<V>): void => {
    arrived.push(one)
    wake()
  }
  const ask = (source: AsyncIterator<V, unknown>): void => {
    source.next().then(
      (result) => arrive({ source, result }),
      (failure: unknown) => arrive({ failure }),
    )
  }
  sources.forEach(ask)
  for (;;) {
    const next = arrived.shift()
    if (next === undefined) {
      await new Promise<void>((resolve) => (wake = resolve))
      continue
    }
    if ('failure' in next) throw next.failure
    if (next.result.done === true) return
    yield next.result.value
    ask(next.source)
  }
}
