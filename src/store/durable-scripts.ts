import type { Acknowledgement, RedelayedError } from '../errors.js'
import { add } from './reliable-scripts.js'
import { script, type Script, type ScriptSource } from './script.js'
import { offer, wheelOffer } from './scripts.js'

/** The reply to a command, and the durability of its writes when the wait ended. */
export interface WaitedFor<R = unknown> {
  readonly reply: R
  readonly by: Acknowledgement
  /** Why the server did not wait. */
  readonly error?: RedelayedError
}

/** A script whose writes are waited for. */
export function waitedFor<S extends ScriptSource, R>({ source, decode }: Script<S, R>): Script<S, WaitedFor<R>> {
  return script(source, (reply) => {
    const waited = reply as WaitedFor
    return { ...waited, reply: decode(waited.reply) }
  })
}

/** The texts of the scripts whose writes are waited for, which connections load in advance. */
export const DURABLE_SCRIPTS: readonly string[] = [offer.source.source, wheelOffer.source.source, add.source.source]
