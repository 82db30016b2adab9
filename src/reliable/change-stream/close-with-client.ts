import { ShutdownError } from '../../errors.js'
import type { PrefetchBuffer } from '../../queues/context.js'
import { onAbort } from '../../redis/blocking/abort-signals.js'

/** A signal that aborts with the caller's, or when the client is shut down; and the function that ends it. */
export function closeWithClient(
  buffers: Set<PrefetchBuffer>,
  signal: AbortSignal | undefined,
): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController()
  const buffer: PrefetchBuffer = {
    holding: false,
    close: () => {
      controller.abort(new ShutdownError('the client was shut down'))
      return Promise.resolve()
    },
  }
  buffers.add(buffer)
  if (signal?.aborted === true) controller.abort(signal.reason)
  const unlisten = signal && onAbort(signal, () => controller.abort(signal.reason))
  const end = (): void => {
    buffers.delete(buffer)
    unlisten?.()
  }
  return { signal: controller.signal, end }
}
