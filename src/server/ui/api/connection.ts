import { createStore } from '../lib/store.js'

/** Since when the service has not answered; undefined while it does. */
const lostSince = createStore<number | undefined>(undefined)

export const connection = {
  lostSince,
  answered(): void {
    lostSince.set(undefined)
  },
  lost(): void {
    if (lostSince.get() === undefined) lostSince.set(Date.now())
  },
}
