import { noteServerTime } from '../lib/clock.js'
import { createStore } from '../lib/store.js'
import { connection } from './connection.js'
import { request } from './request.js'
import { gone } from './session.js'
import type { Overview } from './types.js'

export interface Live {
  readonly overview: Overview | undefined
  readonly error: unknown
  /** Since when nothing comes; undefined while the stream is open. */
  readonly disconnectedSince: number | undefined
}

export const live = createStore<Live>({ overview: undefined, error: undefined, disconnectedSince: undefined })

const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 10_000

/**
 * Keeps `live` fresh until the returned function is called. The first overview comes by a request of its own, whose refusal can be read; `EventSource` says
 * only that there was one. It reconnects by itself, but not after an answer that is no stream, so that is done here.
 */
export function watchOverview(): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let retryMs = FIRST_RETRY_MS
  let isOver = false
  const controller = new AbortController()
  const change = (some: Partial<Live>): void => live.set({ ...live.get(), ...some })

  const take = (overview: Overview): void => {
    noteServerTime(overview.at)
    connection.answered()
    change({ overview, error: undefined, disconnectedSince: undefined })
  }
  const retry = (): void => {
    source?.close()
    source = undefined
    if (live.get().disconnectedSince === undefined) change({ disconnectedSince: Date.now() })
    clearTimeout(timer)
    timer = setTimeout(() => void start(), retryMs)
    retryMs = Math.min(retryMs * 1.6, LAST_RETRY_MS)
  }
  const start = async (): Promise<void> => {
    try {
      take(await request<Overview>('GET', '/v1/overview', { signal: controller.signal }))
    } catch (error) {
      if (isOver || gone(error)) return
      change({ error })
      retry()
      return
    }
    if (isOver) return
    source = new EventSource('/v1/overview/stream')
    source.addEventListener('overview', ({ data }) => {
      retryMs = FIRST_RETRY_MS
      take(JSON.parse(String(data)) as Overview)
    })
    source.addEventListener('error', retry)
  }
  void start()
  return () => {
    isOver = true
    controller.abort()
    clearTimeout(timer)
    source?.close()
  }
}
