/**
 * Runs `action` at once. With `everyMs` it runs `action` again this time after each end, while the page is visible and as long as `action`
 * resolves with true. Returns a function that ends this.
 */
export function repeat(action: () => Promise<boolean>, everyMs: number | undefined): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false
  const run = async (): Promise<void> => {
    const goesOn = await action()
    if (goesOn && !isOver && everyMs !== undefined) timer = setTimeout(again, everyMs)
  }
  const again = (): void => {
    if (document.hidden) timer = setTimeout(again, 1_000)
    else void run()
  }
  void run()
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}
