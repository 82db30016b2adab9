import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { gone } from '../api/session.js'
import { repeat } from './repeat.js'
import { useReturn } from './use-return.js'

export interface Loaded<T> {
  readonly data: T | undefined
  readonly error: unknown
  readonly isLoading: boolean
  readonly reload: () => void
}

export interface LoadOptions {
  /** The interval of reloads while the page is visible. */
  readonly everyMs?: number | undefined
  /** Keeps the shown data also for other `deps`, which load the same thing in another way, until the answer comes. */
  readonly keeps?: boolean
}

/**
 * Loads the data of a screen, and again when `deps` change. A reload keeps the shown data until the next answer comes; other `deps` clear
 * it. Outdated requests are aborted.
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
    const isOther = !keeps && shown.current !== key
    shown.current = key
    setState((before) => ({ data: isOther ? undefined : before.data, error: undefined, isLoading: true }))
    const once = async (): Promise<boolean> => {
      try {
        const data = await load(signal)
        if (!signal.aborted) setState({ data, error: undefined, isLoading: false })
      } catch (error) {
        if (signal.aborted || gone(error)) return false
        setState((before) => ({ data: before.data, error, isLoading: false }))
      }
      return true
    }
    const end = repeat(once, everyMs)
    return () => {
      end()
      controller.abort()
    }
    // `load` is a new function each time; `deps` say when it loads something else
  }, [key, round, everyMs])

  useReturn(state.error, reload)
  return { ...state, reload }
}
