/** A message that a worker is about to handle, as far as an instrumentation may see it. */
export interface TracedMessage {
  readonly queue: string
  readonly id: string
  readonly headers: Readonly<Record<string, string>>
  /** The number of this delivery, from 1. */
  readonly attempt: number
}

/** Code that sees messages on their way, for traces. What it throws fails the call it was asked in. */
export interface Instrumentation {
  /** The headers that go with a message, from those that the application gave. */
  readonly onAdd?: (queue: string, headers: Readonly<Record<string, string>>) => Readonly<Record<string, string>>
  /** Runs the handler of a message: calls `handle` once, and resolves or rejects as that does. */
  readonly onHandle?: (message: TracedMessage, handle: () => Promise<unknown>) => Promise<unknown>
}
