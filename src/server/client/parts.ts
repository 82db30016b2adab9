interface Part {
  readonly done: number
  readonly cursor?: string | undefined
}

/**
 * Repeats a request that does a bounded part of the work for what `which` selects, until all is done, or `most`. Resolves with the sum.
 *
 * @throws TypeError a condition is `undefined`
 */
export async function sumOfParts(
  which: object,
  ask: (body: object, sum: number) => Promise<Part>,
  most = Infinity,
): Promise<number> {
  assertGiven(which)
  let [sum, cursor] = [0, undefined as string | undefined]
  do {
    const part = await ask({ ...which, ...(cursor !== undefined && { cursor }) }, sum)
    sum += part.done
    cursor = part.cursor
  } while (cursor !== undefined && sum < most)
  return sum
}

/** JSON leaves out conditions that are `undefined`, and fewer conditions select more messages. */
export function assertGiven(which: object): void {
  for (const [name, value] of Object.entries(which))
    if (value === undefined) throw new TypeError(`${name}: expected a value, got undefined; leave it out to select all`)
}
