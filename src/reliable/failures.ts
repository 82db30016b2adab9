import { asNumber } from '../store/replies.js'
import { clean } from '../text.js'

/** One failed delivery in a message's history. */
export interface FailedAttempt {
  readonly attempt: number
  readonly at: Date
  readonly reason: string
}

/** More lines than a history has: the scripts keep 8,192 bytes of it, and a line has at least 17. */
const MOST_LINES = 500
const MOST_BYTES = 8_192
const NONE = Buffer.alloc(0)

/** Reads the last lines of `<attempt> <epoch ms> <JSON text>`; leaves out unreadable ones. */
export function readFailures(lines: string): FailedAttempt[] {
  const last = lines.split('\n').slice(-MOST_LINES)
  return last.flatMap((line) => {
    const [, attempt, at, json = ''] = /^(\d{1,15}) (\d{1,15}) (.*)$/s.exec(line) ?? []
    if (attempt === undefined || at === undefined) return []
    return [{ attempt: Number(attempt), at: new Date(asNumber(at)), reason: clean(textIn(json)) }]
  })
}

/** Writes the lines as the scripts do; leaves out the oldest if there is no room. */
export function writeFailures(failures: readonly FailedAttempt[]): Buffer {
  if (failures.length === 0) return NONE
  const lines: string[] = []
  let bytes = 0
  for (const { attempt, at, reason } of failures.slice(-MOST_LINES).reverse()) {
    const line = `${attempt} ${at.getTime()} ${JSON.stringify(reason)}\n`
    bytes += Buffer.byteLength(line)
    if (bytes > MOST_BYTES) break
    lines.push(line)
  }
  return Buffer.from(lines.reverse().join(''))
}

/** The text of a JSON string; any other text unchanged. */
function textIn(json: string): string {
  try {
    const text: unknown = JSON.parse(json)
    return typeof text === 'string' ? text : json
  } catch {
    return json
  }
}
