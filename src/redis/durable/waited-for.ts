import { DurabilityError, type Acknowledgement, type RedelayedError } from '../../errors.js'
import { script, type Script, type ScriptSource } from '../../store/script.js'
import type { Wait } from './durability.js'

/** The reply to a command, and how safe what it wrote was when the wait ended. */
export interface WaitedFor<R = unknown> {
  readonly reply: R
  readonly by: Acknowledgement
  /** Why the server did not wait. */
  readonly error?: RedelayedError
}

/** The script where its writes are waited for. */
export function waitedFor<S extends ScriptSource, R>({ source, decode }: Script<S, R>): Script<S, WaitedFor<R>> {
  return script(source, (reply) => {
    const waited = reply as WaitedFor
    return { ...waited, reply: decode(waited.reply) }
  })
}

/** The error of what was accepted and is not as safe as asked; nothing when it is. */
export function shortfall(
  accepted: ConstructorParameters<typeof DurabilityError>[0],
  { asked, timeoutMs }: Wait,
  { by, error: cause }: Omit<WaitedFor, 'reply'>,
): DurabilityError | undefined {
  const reached = cause === undefined && by.replicas >= asked.replicas && (by.aof || !asked.aof)
  return reached ? undefined : new DurabilityError(accepted, asked, by, timeoutMs, { cause })
}
