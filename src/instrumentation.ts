/** The part of a message that an instrumentation sees before a worker handles it. */
export interface TracedMessage {
  readonly queue: string
  readonly id: string
  readonly headers: Readonly<Record<string, string>>
  /** The number of this delivery, from 1. */
  readonly attempt: number
}

/** Hooks around messages, for traces. An error that a hook throws fails the call that ran it. */
export interface Instrumentation {
  /** Returns the headers to send with a message, made from those of the application. */
  readonly onAdd?: (queue: string, headers: Readonly<Record<string, string>>) => Readonly<Record<string, string>>
  /** Runs the handler of a message: calls `handle` once, and resolves or rejects as that does. */
  readonly onHandle?: (message: TracedMessage, handle: () => Promise<unknown>) => Promise<unknown>
}
