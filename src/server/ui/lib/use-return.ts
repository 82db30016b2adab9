import { useEffect } from 'preact/hooks'
import { connection } from '../api/connection.js'
import { Unreachable } from '../api/request.js'
import { useStore } from './store.js'

/** When the service is back, loads again what could not be loaded while it was away. */
export function useReturn(error: unknown, reload: () => void): void {
  const returns = useStore(connection.returns)
  useEffect(() => {
    if (error instanceof Unreachable) reload()
    // only when it is back: while it is away, each failed attempt would start the next one
  }, [returns])
}
