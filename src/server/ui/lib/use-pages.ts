import { useCallback, useEffect, useState } from 'preact/hooks'
import { gone } from '../api/session.js'
import { useReturn } from './use-return.js'

export interface Page<T> {
  readonly rows: readonly T[]
  readonly cursor?: string | undefined
}

export interface Pages<P extends Page<unknown>> {
  readonly rows: readonly P['rows'][number][]
  /** What came with the last page besides its rows. */
  readonly last: P | undefined
  readonly error: unknown
  readonly isLoading: boolean
  readonly hasMore: boolean
  readonly more: () => void
  readonly reload: () => void
}

/** A list that comes in pages: the first one at once, the others when they are asked for. */
export function usePages<P extends Page<unknown>>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<P>,
  deps: readonly unknown[],
): Pages<P> {
  interface State {
    readonly rows: readonly P['rows'][number][]
    readonly last: P | undefined
    readonly error: unknown
    readonly isLoading: boolean
  }
  const [state, setState] = useState<State>({ rows: [], last: undefined, error: undefined, isLoading: true })
  const [wanted, setWanted] = useState<{ round: number; cursor: string | undefined }>({ round: 0, cursor: undefined })
  const key = JSON.stringify(deps)
  const [loadedKey, setLoadedKey] = useState(key)
  // other filters begin with the first page
  const cursor = loadedKey === key ? wanted.cursor : undefined

  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    setLoadedKey(key)
    if (cursor === undefined && wanted.cursor !== undefined) setWanted((before) => ({ ...before, cursor: undefined }))
    setState((before) => ({
      ...before,
      ...(loadedKey !== key && { rows: [], last: undefined }),
      error: undefined,
      isLoading: true,
    }))
    load(cursor, signal).then(
      (page) => {
        if (signal.aborted) return
        setState((before) => ({
          rows: cursor === undefined ? page.rows : [...before.rows, ...page.rows],
          last: page,
          error: undefined,
          isLoading: false,
        }))
      },
      (error: unknown) => {
        if (!signal.aborted && !gone(error)) setState((before) => ({ ...before, error, isLoading: false }))
      },
    )
    return () => controller.abort()
  }, [key, wanted.round, cursor])

  const next = state.last?.cursor
  const more = useCallback(() => setWanted(({ round }) => ({ round: round + 1, cursor: next })), [next])
  const reload = useCallback(() => setWanted(({ round }) => ({ round: round + 1, cursor: undefined })), [])
  useReturn(state.error, reload)
  return { ...state, hasMore: next !== undefined, more, reload }
}
