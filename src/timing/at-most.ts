/** Resolves when the promise has ended, in whatever way, and after `ms` at the latest. */
export async function atMost(ms: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([promise.catch(() => undefined), timeout])
  clearTimeout(timer)
}
