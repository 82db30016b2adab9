/** A message as a client pushes it. */
export interface Item {
  readonly id: string
  readonly body: { readonly n: number; readonly fails: boolean; readonly text: string }
  readonly delay: number
  readonly priority: number
  readonly headers: Readonly<Record<string, string>>
  readonly bizKey: string
}

/** A message as a consumer received it. */
export interface Received {
  readonly id: string
  readonly lease: string
  readonly leasedUntil: number
  readonly attempt: number
  readonly priority: number
  readonly headers: Readonly<Record<string, string>>
  readonly bizKey?: string
  readonly body: unknown
}

/** The visibility of a message that a consumer has. */
export const VISIBILITY_MS = 3_000

/** The topic beside the topic of the consumers, whose messages come as webhooks. */
export function hooksOf(topic: string): string {
  return `${topic}-hooks`
}
