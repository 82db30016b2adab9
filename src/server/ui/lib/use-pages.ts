import { useCallback, useEffect, useState } from 'preact/hooks'
import { gone } from '../api/session.js'
import { repeat } from './repeat.js'
import { useReturn } from './use-return.js'

export interface Page<T> {
  readonly rows: readonly T[]
  readonly cursor?: string | undefined
}

export interface Pages<P extends Page<unknown>> {
  readonly rows: readonly P['rows'][number][]
  /** The last loaded page, for its facts besides the rows. */
  readonly last: P | undefined
  readonly error: unknown
  readonly isLoading: boolean
  readonly hasMore: boolean
  readonly more: () => void
  readonly reload: () => void
}

interface PagesOptions {
  /** Loads the first page again after this time, while the list has no other page and the document is visible. */
  readonly everyMs?: number
}

/** A list that is loaded page by page: the first page at once, the others on request. */
export function usePages<P extends Page<unknown>>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<P>,
  deps: readonly unknown[],
  { everyMs }: PagesOptions = {},
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
  // other filters start with the first page
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
    const once = async (): Promise<boolean> => {
      try {
        const page = await load(cursor, signal)
        if (signal.aborted) return false
        setState((before) => ({
          rows: cursor === undefined ? page.rows : [...before.rows, ...page.rows],
          last: page,
          error: undefined,
          isLoading: false,
        }))
      } catch (error) {
        if (signal.aborted || gone(error)) return false
        setState((before) => ({ ...before, error, isLoading: false }))
      }
      return true
    }
    const end = repeat(once, cursor === undefined ? everyMs : undefined)
    return () => {
      end()
      controller.abort()
    }
  }, [key, wanted.round, cursor])

  const next = state.last?.cursor
  const more = useCallback(() => setWanted(({ round }) => ({ round: round + 1, cursor: next })), [next])
  const reload = useCallback(() => setWanted(({ round }) => ({ round: round + 1, cursor: undefined })), [])
  useReturn(state.error, reload)
  return { ...state, hasMore: next !== undefined, more, reload }
}
