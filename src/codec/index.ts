import { bytes } from './bytes.js'
import { json } from './json.js'
import { msgpack } from './msgpack.js'
import { string } from './string.js'

export type { Codec } from './codec.js'

/** The codecs that come with the package; `msgpack` is the default. */
export const codecs = Object.freeze({ msgpack, json, string, bytes })
