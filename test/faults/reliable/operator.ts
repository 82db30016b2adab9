import type { BenchQueue } from './queue.js'

interface Left {
  /** What is due long after. */
  readonly left: readonly string[]
  readonly dead: readonly string[]
  readonly farMs: number
}

/** Finds each remaining message by its id, changes and removes it; does the same with dead letters, and redrives them together. */
export async function operate(queue: BenchQueue, { left, dead, farMs }: Left): Promise<void> {
  const problems: string[] = []
  const check = async (id: string, steps: Readonly<Record<string, () => Promise<boolean>>>): Promise<void> => {
    for (const [what, step] of Object.entries(steps)) if (!(await step())) problems.push(`${what} of ${id}`)
  }
  for (const id of left) {
    await check(id, {
      contains: async () => queue.contains(id),
      get: async () => (await queue.get(id))?.id === id,
      reschedule: async () => queue.reschedule(id, farMs),
      updatePayload: async () => queue.updatePayload(id, { poison: false, long: true }),
      'get after updatePayload': async () => (await queue.get(id))?.payload.long === true,
      cancel: async () => queue.cancel(id),
      'contains after cancel': async () => !(await queue.contains(id)),
    })
  }
  const letters = queue.deadLetters
  for (const id of dead) {
    await check(id, {
      'contains among the dead letters': async () => letters.contains(id),
      'get among the dead letters': async () => (await letters.get(id))?.id === id,
    })
  }
  const moved = dead.length === 0 ? 0 : await queue.redrive(dead.length)
  if (moved !== dead.length) problems.push(`redrive moved ${moved} of ${dead.length} dead letters`)
  if (problems.length > 0) throw new Error(`by their ids went wrong: ${problems.join(', ')}`)
}
