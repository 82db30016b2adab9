import * as generated from './scripts/generated.js'
import { asFlag } from './replies.js'
import { script } from './script.js'

/** The scripts about groups of messages with the decoders of their replies. */
export const pauseGroup = script(generated.reliablePauseGroup, asFlag)
