import { NegativeResult } from '../failure.js'
import type { RawOptions } from '../input.js'
import { withSession } from '../session.js'

export async function cancel(queue: string, ticket: string, options: RawOptions): Promise<void> {
  await withSession(options, async ({ delayed, print, json }) => {
    const cancelled = await delayed(queue).cancel(ticket)
    if (json || cancelled) print({ queue, ticket, cancelled }, () => ['cancelled'])
    if (cancelled) return
    throw new NegativeResult('nothing was cancelled: the message was delivered, cancelled or rescheduled before')
  })
}
