import { Progress } from './progress.js'

/** The most messages moved by one script, which takes the server a millisecond or two. */
const PAGE = 100

/** Moves messages from one source after the other, until there are no more or `wanted` were moved. Resolves with how many were. */
export async function moveInPages(
  sources: readonly ((most: number) => Promise<number>)[],
  wanted: number,
): Promise<number> {
  const progress = new Progress()
  let moved = 0
  for (const move of sources) {
    for (let last = 1; last > 0 && moved < wanted; moved += last) {
      last = await move(Math.min(PAGE, wanted - moved))
      progress.show(`${(moved + last).toLocaleString('en')} of ${wanted.toLocaleString('en')} moved`)
    }
  }
  progress.clear()
  return moved
}

/** Moves messages by their ids, each from the source that has it. */
export async function moveByIds(
  sources: readonly ((ids: readonly string[]) => Promise<number>)[],
  ids: readonly string[],
): Promise<number> {
  let moved = 0
  for (const move of sources) {
    for (let from = 0; from < ids.length && moved < ids.length; from += PAGE)
      moved += await move(ids.slice(from, from + PAGE))
  }
  return moved
}
