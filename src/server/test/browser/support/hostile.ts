// Texts that attack a page: markup that runs script, characters that turn or hide what is read, words that do not break.

/** Calls the binding that must never be called. */
const RUN = 'window.hostile(1)'

export const RLO = '\u202e'
export const MARKUP = `<script>${RUN}</script><img src=x onerror="${RUN}"><svg onload=${RUN}><a href="javascript:${RUN}">x</a>`
export const HIDDEN = `a${RLO}b\u200bc\u001b[31md\u0000e\u2028f`
export const ALL = `"'><${MARKUP}${HIDDEN}{{constructor.constructor('${RUN}')()}}`
/** As long as an id may be. */
export const LONG_ID = 'w'.repeat(500)
export const LONG_WORD = 'W'.repeat(1_000_000)
