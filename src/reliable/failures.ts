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
const MOST_BYTES = 8_192
const NONE = Buffer.alloc(0)

/** The last lines of `<attempt> <epoch ms> <JSON text>`; what cannot be read is left out. */
export function readFailures(lines: string): FailedAttempt[] {
  const last = lines.split('\n').slice(-MOST_LINES)
  return last.flatMap((line) => {
    const [, attempt, at, json = ''] = /^(\d{1,15}) (\d{1,15}) (.*)$/s.exec(line) ?? []
    if (attempt === undefined || at === undefined) return []
    return [{ attempt: Number(attempt), at: new Date(asNumber(at)), reason: clean(textIn(json)) }]
  })
}

/** The lines as the scripts write them; the oldest are left out where there is no room. */
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

/** JSON of a text; any other bytes are shown as they are. */
function textIn(json: string): string {
  try {
    const text: unknown = JSON.parse(json)
    return typeof text === 'string' ? text : json
  } catch {
    return json
  }
}
