/** One delivery of a message: which one, and what tells it from all others. */
export interface Delivery {
  readonly id: string
  readonly priority: number
  /** What it is called among those in flight: its priority and id. */
  readonly member: string | Buffer
  readonly lease: string
}
