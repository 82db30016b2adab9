import { useEffect, useState } from 'preact/hooks'

/** A value that components watch. */
export interface Store<T> {
  get(): T
  set(value: T): void
  subscribe(listener: () => void): () => void
}

export function createStore<T>(value: T): Store<T> {
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return
      value = next
      for (const listener of [...listeners]) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(() => store.get())
  useEffect(() => {
    const read = (): void => setValue(() => store.get())
    read() // it may have changed before this effect ran
    return store.subscribe(read)
  }, [store])
  return value
}
