/** Waiting for what happens, instead of sleeping for a while and hoping. */

interface Emitter<Args extends unknown[]> {
  on(event: string, listener: (...args: Args) => void): unknown
  off(event: string, listener: (...args: Args) => void): unknown
}

/** Only what never happens takes so long; a busy machine may need a good part of it. */
const LIMIT_MS = 15_000

/** Resolves with the first argument of the next matching event; rejects after `timeoutMs`. */
export function once<T = unknown>(
  emitter: Emitter<any[]>, // eslint-disable-line @typescript-eslint/no-explicit-any -- emitters type their events differently
  event: string,
  predicate: (value: T) => boolean = () => true,
  timeoutMs = LIMIT_MS,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const seen: unknown[] = []
    const listener = (value: T) => {
      if (!predicate(value)) return void seen.push(value)
      end()
      resolve(value)
    }
    const timer = setTimeout(() => {
      end()
      const others = seen.length ? `; ${seen.length} others came, the last ${String(seen.at(-1))}` : ''
      reject(new Error(`no matching "${event}" event within ${timeoutMs} ms${others}`))
    }, timeoutMs)
    const end = () => {
      clearTimeout(timer)
      emitter.off(event, listener)
    }
    emitter.on(event, listener)
  })
}

/** Repeats `check` until it no longer throws or rejects, and gives its result; after `timeoutMs` it throws the last error. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = LIMIT_MS, everyMs = 5): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() >= deadline) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

/** How many timers keep the process alive. */
export function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
}
