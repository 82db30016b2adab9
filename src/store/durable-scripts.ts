import type { Acknowledgement, RedelayedError } from '../errors.js'
import { add } from './reliable-scripts.js'
import { script, type Script, type ScriptSource } from './script.js'
import { offer } from './scripts.js'

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

/** The texts of the scripts whose writes are waited for, for connections that load them before they are used. */
export const DURABLE_SCRIPTS: readonly string[] = [offer.source.source, add.source.source]
