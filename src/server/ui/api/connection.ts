import { createStore } from '../lib/store.js'

/** The time since which the service does not answer; undefined while it does. */
const lostSince = createStore<number | undefined>(undefined)
/** The number of times that the service has answered again after an outage. */
const returns = createStore(0)
let answeredAt = 0

export const connection = {
  lostSince,
  returns,
  answered(): void {
    answeredAt = Date.now()
    if (lostSince.get() === undefined) return
    lostSince.set(undefined)
    returns.set(returns.get() + 1)
  },
  lost(): void {
    if (lostSince.get() === undefined) lostSince.set(Date.now())
  },
  /** How long ago the service last answered. */
  quietMs(): number {
    return Date.now() - answeredAt
  },
}
