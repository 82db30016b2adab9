import { ConnectionError } from '../errors.js'

/** Splits items into pages of at most `most`, for one script or command each. */
export function pagesOf<T>(items: readonly T[], most: number): T[][] {
  const pages: T[][] = []
  for (let from = 0; from < items.length; from += most) pages.push(items.slice(from, from + most))
  return pages
}

/** `isPartly`: earlier pages of the same call were carried out, whatever the outcome of this one. */
export function partly(isPartly: boolean): (error: unknown) => never {
  return (error) => {
    if (!isPartly || !(error instanceof ConnectionError)) throw error
    throw new ConnectionError(error.message, 'unknown', { cause: error })
  }
}
