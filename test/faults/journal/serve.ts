import { createHash } from 'node:crypto'
import type { Order, Payload, Said } from './protocol.js'

/** Before anybody shifts it: the clock of the machine, which all processes of the bench share. */
export const machineNow = Date.now.bind(Date)

export function say(said: Said): void {
  process.send?.(said)
}

export function digestOf(payload: Payload): string {
  return createHash('sha1').update(JSON.stringify(payload)).digest('base64')
}

/** Carries out the bench's orders until the bench is gone. */
export function serve(carryOut: (order: Order) => Promise<unknown>): void {
  process.on('message', ({ call, order }: { call: number; order: Order }) => {
    carryOut(order).then(
      (answer) => process.send?.({ call, answer }),
      (error: unknown) => process.send?.({ call, error: String(error instanceof Error ? error.stack : error) }),
    )
  })
  process.on('disconnect', () => process.exit(0))
}
