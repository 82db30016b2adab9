import { DurabilityError } from '../../errors.js'
import type { WaitedFor } from '../../store/waited-for.js'
import type { Wait } from './durability.js'

/** The error of a write that was accepted and is less durable than asked; `undefined` if it is durable. */
export function shortfall(
  accepted: ConstructorParameters<typeof DurabilityError>[0],
  { asked, timeoutMs }: Wait,
  { by, error: cause }: Omit<WaitedFor, 'reply'>,
): DurabilityError | undefined {
  const reached = cause === undefined && by.replicas >= asked.replicas && (by.aof || !asked.aof)
  return reached ? undefined : new DurabilityError(accepted, asked, by, timeoutMs, { cause })
}
