import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { gone } from '../api/session.js'
import { useReturn } from './use-return.js'

export interface Loaded<T> {
  readonly data: T | undefined
  readonly error: unknown
  readonly isLoading: boolean
  readonly reload: () => void
}

export interface LoadOptions {
  /** Loads again after so long, while the page is seen. */
  readonly everyMs?: number | undefined
  /** Other `deps` ask for the same thing in another way: what was shown stays until the answer is there. */
  readonly keeps?: boolean
}

/**
 * Loads what a screen shows, and again when `deps` change. What was shown stays until the next answer is there, but for other `deps`; an answer that is not
 * wanted any more is not waited for.
 */
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T>,
  deps: readonly unknown[],
  { everyMs, keeps = false }: LoadOptions = {},
): Loaded<T> {
  const [state, setState] = useState<{ data: T | undefined; error: unknown; isLoading: boolean }>({
    data: undefined,
    error: undefined,
    isLoading: true,
  })
  const [round, setRound] = useState(0)
  const reload = useCallback(() => setRound((value) => value + 1), [])
  const key = JSON.stringify(deps)
  const shown = useRef(key)

  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    let timer: ReturnType<typeof setTimeout> | undefined
    const isOther = !keeps && shown.current !== key
    shown.current = key
    setState((before) => ({ data: isOther ? undefined : before.data, error: undefined, isLoading: true }))
    const run = async (): Promise<void> => {
      try {
        const data = await load(signal)
        if (!signal.aborted) setState({ data, error: undefined, isLoading: false })
      } catch (error) {
        if (signal.aborted || gone(error)) return
        setState((before) => ({ data: before.data, error, isLoading: false }))
      }
      if (everyMs !== undefined && !signal.aborted) timer = setTimeout(again, everyMs)
    }
    const again = (): void => {
      if (document.hidden) timer = setTimeout(again, 1_000)
      else void run()
    }
    void run()
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
    // `load` is another function each time; `deps` say when it does something else
  }, [key, round, everyMs])

  useReturn(state.error, reload)
  return { ...state, reload }
}
