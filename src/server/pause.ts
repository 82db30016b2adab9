/** Resolves after `ms`, or when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end, { once: true })
    if (signal?.aborted === true) end()
  })
}

/** The result of an action, or, after `ms`, what `late` returns or throws. */
export async function within<R>(ms: number, action: Promise<R>, late: () => R): Promise<R> {
  let timer: NodeJS.Timeout | undefined
  const isOver = new Promise<void>((resolve) => (timer = setTimeout(resolve, Math.max(0, ms))))
  try {
    return await Promise.race([action, isOver.then(late)])
  } finally {
    clearTimeout(timer)
  }
}

/** An error that names what took too long. */
export function late(message: string): () => never {
  return () => {
    throw new Error(message)
  }
}

/** Waits for an action, but at most `ms`. */
export async function atMost(ms: number, action: Promise<unknown> | undefined): Promise<void> {
  const ended = new AbortController()
  try {
    await Promise.race([action, pause(ms, ended.signal)])
  } finally {
    ended.abort()
  }
}
