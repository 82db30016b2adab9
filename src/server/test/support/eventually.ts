/** Repeats a check until it does not throw; resolves with its result. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = 20_000): Promise<T> {
  for (const until = Date.now() + withinMs; ;) {
    try {
      return await check()
    } catch (error) {
      if (Date.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
