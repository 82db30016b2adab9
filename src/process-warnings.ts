import { cleanError } from './clean-error.js'
import type { RedelayedError } from './errors.js'

/** The `code` of the process warnings that are not errors. */
export type WarningCode =
  | 'REDELAYED_EVICTION'
  | 'REDELAYED_SERVERS'
  | 'REDELAYED_TIMESTAMP_DELAY'
  | 'REDELAYED_UNREADABLE'
  | 'REDELAYED_HANDLER_FAILED'

/** The most different errors without a listener that are printed as warnings. */
const MAX_ERRORS = 100

/** The process warnings of one client, each once, so that an outage does not fill the log. */
export class ProcessWarnings {
  readonly #isOn: boolean
  readonly #errors = new Set<string>()
  readonly #codes = new Set<WarningCode>()

  constructor(isOn: boolean) {
    this.#isOn = isOn
  }

  /** Warns of an error, once per code and queue. */
  error(error: RedelayedError): void {
    const key = `${error.code} ${error.queue ?? ''}`
    if (!this.#isOn || this.#errors.has(key) || this.#errors.size >= MAX_ERRORS) return
    this.#errors.add(key)
    const { cause: why } = error
    const cause = why instanceof Error && !error.message.includes(why.message) ? ` (${why.message})` : ''
    process.emitWarning(`${error.message}${cause}; listen to 'error' to see every one`, 'RedelayedWarning', error.code)
  }

  /** Warns once per code. `listenTo` is the event that reports each occurrence; the stack of `error` is printed below the text. */
  once(code: WarningCode, text: string, listenTo: string, error?: Error): void {
    if (!this.#isOn || this.#codes.has(code)) return
    this.#codes.add(code)
    const detail = error && cleanError(error).stack
    process.emitWarning(`${text}; this is said once, listen to '${listenTo}' to see every one`, {
      type: 'RedelayedWarning',
      code,
      ...(detail !== undefined && { detail }),
    })
  }
}
