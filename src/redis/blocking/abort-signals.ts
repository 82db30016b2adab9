interface Shared {
  readonly actions: Set<() => void>
  readonly listener: () => void
}

const sharedOf = new WeakMap<AbortSignal, Shared>()

/**
 * Calls `action` when the signal aborts, until the returned function is called. All waits that share a signal use
 * one listener, because Node warns of a leak from the eleventh on.
 */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  const shared = sharedOf.get(signal) ?? listen(signal)
  shared.actions.add(action)
  return () => {
    shared.actions.delete(action)
    if (shared.actions.size > 0 || sharedOf.get(signal) !== shared) return
    sharedOf.delete(signal)
    signal.removeEventListener('abort', shared.listener)
  }
}

function listen(signal: AbortSignal): Shared {
  const actions = new Set<() => void>()
  const listener = (): void => actions.forEach((action) => action())
  const shared = { actions, listener }
  sharedOf.set(signal, shared)
  signal.addEventListener('abort', listener, { once: true })
  return shared
}
