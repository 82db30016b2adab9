import { useEffect } from 'preact/hooks'
import { createStore, useStore } from './store.js'

/** How far the clock of the service is ahead of this machine's, according to its last answers. */
let aheadMs = 0

/** Updates the difference from an answer; the header `Date` has whole seconds, so smaller differences do not count. */
export function noteServerTime(at: number): void {
  const ahead = at - Date.now()
  if (Math.abs(ahead - aheadMs) > 1_500) aheadMs = Math.abs(ahead) > 1_500 ? ahead : 0
}

/** The time of the service, from which "in 5 m" and "late" are counted. */
export function serverNow(): number {
  return Date.now() + aheadMs
}

const second = createStore(serverNow())
let users = 0
let timer: ReturnType<typeof setInterval> | undefined

/** The time of the service, updated every second. All components share one timer. */
export function useNow(): number {
  useEffect(() => {
    if (users++ === 0) timer = setInterval(() => second.set(serverNow()), 1_000)
    second.set(serverNow())
    return () => {
      if (--users === 0) clearInterval(timer)
    }
  }, [])
  return useStore(second)
}
