import type { Acknowledgement, RedelayedError } from '../errors.js'
import { script, type Script, type ScriptSource } from './script.js'

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
