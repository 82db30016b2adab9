import { createStore } from '../lib/store.js'

/** Since when the service has not answered; undefined while it does. */
const lostSince = createStore<number | undefined>(undefined)
/** How often it has answered again after it had not. */
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
  /** How long ago the service has answered. */
  quietMs(): number {
    return Date.now() - answeredAt
  },
}
