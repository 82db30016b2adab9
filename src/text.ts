/** The longest text that an error carries, in UTF-16 units. */
export const MAX_TEXT = 2_000
/** The longest name (of a queue, a key, a class) that a message quotes. */
const MAX_NAME = 200
const CUT = '…'

/**
 * Controls, format characters (bidirectional, zero-width), separators of lines and paragraphs, halves of surrogate pairs, and the
 * fillers of Hangul, which are invisible letters.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u3164\uffa0]/gu
const LINE_BREAKS = /[\t\r\n\u2028\u2029]+/g

/**
 * The texts after which Redis quotes the arguments of a command, such as passwords and payloads, msgpackr the bytes read, and ioredis a
 * reply.
 */
const BEFORE_EXCERPT = [', with args beginning with:', ' end of buffer not reached ', ' Last reply: ', ' Last error: ']
/** How Node's message for a refused option begins; the quoted value follows. */
const NODE_OPTION = /The (?:"|argument '|property ')/
const NODE_VALUE = '. Received '
const NO_RIGHT = 'NOPERM User '
/** The texts before which V8 and Node quote a refused value. */
const AFTER_EXCERPT = ['is not valid JSON', 'is not a valid minimum TLS', 'is not a valid maximum TLS']
const INSTEAD = 'the text '

/**
 * Text from outside for an error or a log: one line of at most `most` UTF-16 units, without characters that steer a terminal,
 * without the credentials of URLs and without the excerpts of payloads that Redis and Node put into their messages. Takes
 * time in proportion to the kept text, not to the given one.
 */
export function clean(text: string, most = MAX_TEXT): string {
  const kept = text.length <= most ? text : `${withoutCutUrl(beginning(text, most - 1))}${CUT}`
  return cut(escaped(withoutCredentials(withoutExcerpt(kept))), most)
}

/** As `clean`, for a text without URLs and excerpts, such as a queue's name in a table. */
export function printable(text: string, most = MAX_TEXT): string {
  return cut(escaped(cut(text, most)), most)
}

/** A name in quotation marks, cut where it is long. */
export function quoted(name: string, most = MAX_NAME): string {
  const inner = escapedInJson(JSON.stringify(cut(name, most))).slice(1, -1)
  return `"${cut(inner, most)}"`
}

/** At most `most` UTF-16 units, never half of a surrogate pair. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : beginning(text, most - 1) + CUT
}

/** Equivalent JSON text without characters that steer a terminal. */
export function escapedInJson(json: string): string {
  return json.replace(UNPRINTABLE, inJson)
}

function beginning(text: string, most: number): string {
  const last = text.charCodeAt(most - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most)
}

function escaped(text: string): string {
  return text.replace(LINE_BREAKS, ' ').replace(UNPRINTABLE, inWords)
}

const inWords = remembered((char) =>
  char.length === 1 ? unit(char, 0) : `\\u{${char.codePointAt(0)?.toString(16) ?? ''}}`,
)

const inJson = remembered((char) => {
  if (char === '\n') return char // between values; inside a text, JSON escapes it
  return char.length === 1 ? unit(char, 0) : unit(char, 0) + unit(char, 1)
})

function unit(char: string, at: number): string {
  return `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`
}

/** Caches the results: there are about two thousand such characters, and a hostile text can have a million of them. */
function remembered(escape: (char: string) => string): (char: string) => string {
  const known = new Map<string, string>()
  return (char) => {
    const found = known.get(char)
    if (found !== undefined) return found
    const made = escape(char)
    known.set(char, made)
    return made
  }
}

function withoutExcerpt(text: string): string {
  const kept = withoutUser(AFTER_EXCERPT.reduce(withoutBefore, text))
  const marks = NODE_OPTION.test(kept) ? [...BEFORE_EXCERPT, NODE_VALUE] : BEFORE_EXCERPT
  const ends = marks.map((mark) => kept.indexOf(mark)).filter((at) => at !== -1)
  return ends.length === 0 ? kept : kept.slice(0, Math.min(...ends))
}

function withoutBefore(text: string, words: string): string {
  const end = text.lastIndexOf(words)
  if (end === -1 || text.startsWith(INSTEAD, end - INSTEAD.length)) return text
  const token = text.indexOf('Unexpected token')
  const start = token !== -1 ? token : text.indexOf('"')
  return start === -1 || start > end ? text : `${text.slice(0, start)}${INSTEAD}${text.slice(end)}`
}

/** Removes the user that Redis 7 names, as the name may be as secret as the password; earlier versions say "this user". */
function withoutUser(text: string): string {
  const start = text.indexOf(NO_RIGHT)
  const end = start === -1 ? -1 : text.indexOf(' has no permissions', start)
  return end === -1 ? text : `${text.slice(0, start)}NOPERM this user${text.slice(end)}`
}

/** Hides everything from the scheme of a URL to the last `@`, as a password may hold any character. */
function withoutCredentials(text: string): string {
  const last = text.lastIndexOf('@')
  for (let at = text.indexOf('://'); at !== -1 && at < last; at = text.indexOf('://', at + 3)) {
    if (!isOfFile(text, at)) return `${text.slice(0, at + 3)}***${text.slice(last)}`
  }
  return text
}

/** Removes a cut URL, which may have lost the `@` that marks its password. */
function withoutCutUrl(text: string): string {
  for (let at = text.indexOf('://'); at !== -1; at = text.indexOf('://', at + 3)) {
    if (!isOfFile(text, at)) return text.slice(0, at + 3)
  }
  return text
}

/** Whether it is a `file:` URL, which has no user and appears in the stack of every error. */
function isOfFile(text: string, at: number): boolean {
  return text.startsWith('file', at - 4)
}
