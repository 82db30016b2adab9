import { asNumber } from '../store/replies.js'
import { clean } from '../text.js'

/** One line of a message's history. */
export interface FailedAttempt {
  readonly attempt: number
  readonly at: Date
  readonly reason: string
}

/** The scripts keep 8,192 bytes of a history, and none of their lines is shorter than 17. */
const MOST_LINES = 500

/** The last lines of `<attempt> <epoch ms> <JSON text>`; what cannot be read is left out. */
export function readFailures(lines: string): FailedAttempt[] {
  const last = lines.split('\n').slice(-MOST_LINES)
  return last.flatMap((line) => {
    const [, attempt, at, json = ''] = /^(\d{1,15}) (\d{1,15}) (.*)$/s.exec(line) ?? []
    if (attempt === undefined || at === undefined) return []
    return [{ attempt: Number(attempt), at: new Date(asNumber(at)), reason: clean(textIn(json)) }]
  })
}

/** JSON of a text; any other bytes are shown as they are. */
function textIn(json: string): string {
  try {
    const text: unknown = JSON.parse(json)
    return typeof text === 'string' ? text : json
  } catch {
    return json
  }
}
