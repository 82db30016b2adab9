import { bytes } from './bytes.js'
import { json } from './json.js'
import { msgpack } from './msgpack.js'
import { string } from './string.js'

export type { Codec } from './codec.js'

/** The codecs of the main entry; `msgpack` is the default. Those of Java are in `redelayed/java`. */
export const codecs = Object.freeze({ msgpack, json, string, bytes })
