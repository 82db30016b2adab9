import { InvalidTicketError, describe } from '../errors.js'

const SHARDED = /^(0|[1-9]\d{0,2})\.(.*)$/s
const MAX_SHARD = 255

/** A ticket of a sharded queue: the number of the shard, a dot, and the ticket of the shard's own queue. */
export function joinTicket(shard: number, ticket: string): string {
  return `${shard}.${ticket}`
}

/** The parts of a sharded queue's ticket; the second is not checked. */
export function splitTicket(ticket: unknown): { shard: number; ticket: string } {
  const parts = partsOf(ticket)
  if (parts !== undefined) return parts
  throw new InvalidTicketError(`expected a ticket as returned by offer of a sharded queue, got ${describe(ticket)}`)
}

/** A ticket without its shard; returns any other text unchanged. */
export function withoutShard(ticket: unknown): unknown {
  return partsOf(ticket)?.ticket ?? ticket
}

function partsOf(ticket: unknown): { shard: number; ticket: string } | undefined {
  const [, number, rest] = (typeof ticket === 'string' && SHARDED.exec(ticket)) || []
  const shard = Number(number)
  return rest !== undefined && shard <= MAX_SHARD ? { shard, ticket: rest } : undefined
}
