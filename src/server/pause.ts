/** Resolves after so long, or when the signal is aborted. */
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

/** What comes within so long, else an error. */
export async function withLimit<T>(ms: number, action: Promise<T>, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), ms)
  })
  try {
    return await Promise.race([action, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for something, but not longer than so long. */
export async function atMost(ms: number, action: Promise<unknown> | undefined): Promise<void> {
  const ended = new AbortController()
  try {
    await Promise.race([action, pause(ms, ended.signal)])
  } finally {
    ended.abort()
  }
}
