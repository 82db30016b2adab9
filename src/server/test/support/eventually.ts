/** Repeats a check until it does not throw. */
export async function eventually(check: () => unknown, withinMs = 20_000): Promise<void> {
  for (const until = Date.now() + withinMs; ;) {
    try {
      await check()
      return
    } catch (error) {
      if (Date.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
