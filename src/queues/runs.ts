/** Splits a list into runs of consecutive items of the same kind. */
export function runsOf<T>(items: readonly T[], kindOf: (item: T) => unknown): T[][] {
  const runs: T[][] = []
  let kind: unknown
  for (const item of items) {
    const next = kindOf(item)
    const run = runs.at(-1)
    if (run !== undefined && next === kind) run.push(item)
    else runs.push([item])
    kind = next
  }
  return runs
}
