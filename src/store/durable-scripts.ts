import { add } from './reliable-scripts.js'
import { offer } from './scripts.js'

/** The texts of the scripts whose writes are waited for, for connections that load them before they are used. */
export const DURABLE_SCRIPTS: readonly string[] = [offer.source.source, add.source.source]
