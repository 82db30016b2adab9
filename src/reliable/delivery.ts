/** One delivery of a message: the message's id, and the lease that identifies the delivery. */
export interface Delivery {
  readonly id: string
  readonly priority: number
  /** What it is called among those in flight: its priority and id. */
  readonly member: string | Buffer
  readonly lease: string
}
