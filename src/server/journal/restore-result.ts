/** The counts of a restore by hand. */
export interface RestoreResult {
  /** Messages that SQL knows as open, with `expired` also those that expired. */
  readonly checked: number
  /** The checked messages that Redis lacked, without those for which Redis did not answer in time. */
  readonly restored: number
  /** The checked messages whose rows are invalid, each with an `error` event of the journal. */
  readonly refused: number
}

/** The sum of two restores. */
export function sumOf(one: RestoreResult, other: RestoreResult): RestoreResult {
  return {
    checked: one.checked + other.checked,
    restored: one.restored + other.restored,
    refused: one.refused + other.refused,
  }
}

export const NOTHING_RESTORED: RestoreResult = { checked: 0, restored: 0, refused: 0 }
