/** What a member of the mixed fleet has to do, and what it reports. Java's side of it is Fleet.java. */
export interface FleetJob {
  readonly queue: string
  /** Messages are called `name:i`, for i from `from` up to but without `to`. */
  readonly name: string
  readonly from: number
  readonly to: number
  readonly everyMs: number
  readonly maxDelay: number
}

/** `due` is the earliest time that is right, by the clock of this machine. */
export type ProducerEvent =
  | { readonly event: 'offering'; readonly name: string; readonly i: number; readonly due: number }
  | { readonly event: 'offered'; readonly name: string; readonly i: number; readonly due?: number }
  | { readonly event: 'unknown'; readonly name: string; readonly i: number; readonly why: string }

export interface TakenEvent {
  readonly event: 'taken'
  readonly value: string
  readonly at: number
}

export type FleetEvent = ProducerEvent | TakenEvent
