import { noteServerTime } from '../lib/clock.js'
import { createStore } from '../lib/store.js'
import { connection } from './connection.js'
import { request } from './request.js'
import { gone } from './session.js'
import type { Overview } from './types.js'

export interface Live {
  readonly overview: Overview | undefined
  readonly error: unknown
  /** The time since which the stream is broken; undefined while it is open. */
  readonly disconnectedSince: number | undefined
}

export const live = createStore<Live>({ overview: undefined, error: undefined, disconnectedSince: undefined })

const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 10_000
/** A faster stream does not draw more often: figures cannot be read that fast. */
const DRAW_MS = 200

/** Whose answer is on its way before anything is drawn. */
let asked: Promise<Overview> | undefined

/** Asks for the first overview while the page is still being built. */
export function askForOverview(): void {
  const answer = request<Overview>('GET', '/v1/overview')
  asked = answer
  answer.catch(() => {
    if (asked === answer) asked = undefined // such as without a session: the next one is asked for anew
  })
}

/**
 * Keeps `live` fresh until the returned function is called. The first overview comes by a separate request, whose refusal can be read:
 * `EventSource` hides the reason. It reconnects by itself, but not after an answer that is not a stream, so that is done here.
 */
export function watchOverview(): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let retryMs = FIRST_RETRY_MS
  let isOver = false
  let tookAt = 0
  let latest: string | undefined
  let drawing: ReturnType<typeof setTimeout> | undefined
  const controller = new AbortController()
  const change = (some: Partial<Live>): void => live.set({ ...live.get(), ...some })

  const take = (overview: Overview): void => {
    tookAt = performance.now()
    noteServerTime(overview.at)
    connection.answered()
    change({ overview, error: undefined, disconnectedSince: undefined })
  }
  const takeLatest = (): void => {
    if (latest !== undefined) take(JSON.parse(latest) as Overview)
    clearTimeout(drawing)
    drawing = latest = undefined
  }
  const retry = (): void => {
    source?.close()
    source = undefined
    clearTimeout(drawing)
    drawing = latest = undefined
    if (live.get().disconnectedSince === undefined) change({ disconnectedSince: Date.now() })
    clearTimeout(timer)
    timer = setTimeout(() => void start(), retryMs)
    retryMs = Math.min(retryMs * 1.6, LAST_RETRY_MS)
  }
  const start = async (): Promise<void> => {
    const answer = asked ?? request<Overview>('GET', '/v1/overview', { signal: controller.signal })
    asked = undefined
    try {
      take(await answer)
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
      latest = String(data)
      const left = tookAt + DRAW_MS - performance.now()
      if (left <= 0) takeLatest()
      else drawing ??= setTimeout(takeLatest, left)
    })
    source.addEventListener('error', retry)
  }
  void start()
  return () => {
    isOver = true
    controller.abort()
    clearTimeout(timer)
    clearTimeout(drawing)
    source?.close()
  }
}
