import { useEffect } from 'preact/hooks'
import { connection } from '../api/connection.js'
import { Unreachable } from '../api/request.js'
import { useStore } from './store.js'

/** Loads again what could not be loaded because the service was away, when it is back. */
export function useReturn(error: unknown, reload: () => void): void {
  const returns = useStore(connection.returns)
  useEffect(() => {
    if (error instanceof Unreachable) reload()
    // only when it is back: while it is away, each try would be followed by the next one
  }, [returns])
}
