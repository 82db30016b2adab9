import {
  AuthError,
  CommandError,
  ReadOnlyError,
  type RedelayedError,
  UnsupportedServerError,
  WrongTypeError,
} from '../errors.js'

/** Collects the commands that a server refused: managed services refuse CONFIG, and a restricted user is refused more. */
export class Refusals {
  readonly #notes = new Map<string, string>()

  /** What was refused, in words, and the server's reason. */
  get list(): readonly (readonly [what: string, why: string])[] {
    return [...this.#notes]
  }

  note(what: string, why: string): void {
    this.#notes.set(what, why)
  }

  /** The reply, or `undefined` and a note when the server refuses the command. A broken connection is not a refusal. */
  async unlessRefused<T>(what: string, answer: Promise<T>): Promise<T | undefined> {
    try {
      return await answer
    } catch (error) {
      if (!isRefusal(error)) throw error
      this.note(what, error.message)
      return undefined
    }
  }
}

const REFUSALS = [AuthError, CommandError, ReadOnlyError, UnsupportedServerError, WrongTypeError]

export function isRefusal(error: unknown): error is RedelayedError {
  return REFUSALS.some((type) => error instanceof type)
}
