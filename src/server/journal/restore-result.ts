/** What a restore by hand has found. */
export interface RestoreResult {
  /** Messages that SQL knows as open, or expired where these were asked for. */
  readonly checked: number
  /** Of them, those that Redis lacked; without those whose restore Redis did not answer in time. */
  readonly restored: number
  /** Of them, those whose rows make no message, each with an `error` event of the journal. */
  readonly refused: number
}

/** Of several restores, one after the other. */
export function sumOf(one: RestoreResult, other: RestoreResult): RestoreResult {
  return {
    checked: one.checked + other.checked,
    restored: one.restored + other.restored,
    refused: one.refused + other.refused,
  }
}

export const NOTHING_RESTORED: RestoreResult = { checked: 0, restored: 0, refused: 0 }
