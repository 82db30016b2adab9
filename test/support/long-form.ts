/** CI plays the long form of what plays many rounds, elsewhere a fourth of it does; `CI=true npm test` plays all of it. */
export const isLongForm = process.env['CI'] !== undefined

export function rounds(inCi: number): number {
  return isLongForm ? inCi : Math.ceil(inCi / 4)
}
