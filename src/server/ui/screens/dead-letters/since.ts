const DAY_MS = 86_400_000

export const SINCE = [
  ['', 'Any time'],
  ['hour', 'The last hour'],
  ['today', 'Since today, 00:00'],
  ['yesterday', 'Since yesterday, 00:00'],
  ['week', 'The last 7 days'],
] as const

/**
 * The time of a preset, in the reader's zone; other values are epoch milliseconds. Rounded to the minute, so that a reload requests the
 * same list.
 */
export function sinceOf(preset: string, now = Date.now()): number | undefined {
  const midnight = new Date(now)
  midnight.setHours(0, 0, 0, 0)
  switch (preset) {
    case '':
      return undefined
    case 'hour':
      return Math.floor((now - 3_600_000) / 60_000) * 60_000
    case 'today':
      return midnight.getTime()
    case 'yesterday':
      midnight.setDate(midnight.getDate() - 1)
      return midnight.getTime()
    case 'week':
      return Math.floor((now - 7 * DAY_MS) / 60_000) * 60_000
    default: {
      const at = Number(preset)
      return Number.isSafeInteger(at) && at >= 0 ? at : undefined
    }
  }
}
