import { constants } from 'node:buffer'

/** The first bytes of the elements of RESP2 and RESP3. */
export const TYPE = {
  bulk: 36, // $
  bulkError: 33, // !
  verbatim: 61, // =
  simple: 43, // +
  error: 45, // -
  integer: 58, // :
  bigNumber: 40, // (
  double: 44, // ,
  boolean: 35, // #
  nil: 95, // _
  array: 42, // *
  set: 126, // ~
  map: 37, // %
  push: 62, // >
} as const

const CR = 13
const LF = 10
const MINUS = 45
const PLUS = 43
const ZERO = 48

/**
 * The longest text of V8, a few bytes below the longest string of Redis: ioredis turns some replies into texts, and a longer one would end
 * the process.
 */
const MAX_BULK = constants.MAX_STRING_LENGTH
/**
 * The longest part of a message: announcements are short numbers, other messages come from other programs, and ioredis would make texts of
 * them.
 */
const MAX_MESSAGE_PART = 1024 * 1024
/** The most elements of a reply, for which ioredis allocates before they arrive; nearly all replies have far fewer. */
const MAX_ELEMENTS = 2 ** 20
/** The most elements of a nested array; BLMPOP has a thousand. */
const MAX_NESTED = 2 ** 14
/** The most elements of a reply that is a whole list. */
const MAX_LISTED = 2 ** 27
const MAX_DEPTH = 32
/** More digits than any number has. */
const MAX_DIGITS = 20
/** More than the longest known kind of push, "punsubscribe". */
const MAX_KIND = 16
/** Longer names of channels in acknowledgements are not read, because the client would have to hold them back. */
const MAX_CHANNEL = 16 * 1024
/** The number of elements of a frame whose types are noted. */
const NOTED = 4

const NIL = -1
const INCOMPLETE = -2

/** The bytes are not replies of Redis. The message does not quote them, because they may be payload. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  constructor(what: string) {
    super(`protocol error: ${what}`)
  }
}

/**
 * Checks replies byte by byte before ioredis decodes them without checks: a wrong byte in a length would be an endless loop
 * there. Skips bodies of strings. Reads a line only when it is complete, so that a decoder which gets the bytes up to `safe`
 * never sees a part of a line.
 */
export class ReplyScanner {
  /** Whether arrays can be messages, as on a subscriber with RESP2. */
  tracksArrays = false
  /** Whether arrays are messages, or the replies to commands that subscribe. */
  isSubscribed = false
  /** Whether the frame is the reply to a command for a whole list. */
  isList = false
  /** When `next` has returned -1: the end of the bytes that can be decoded. The rest must be scanned again with the next chunk. */
  safe = 0
  /** The type of the frame that `next` completed. */
  type = 0
  /** The number of its elements. */
  count = 0
  /** The types of the first four elements of a frame that may be a message, seven bits each, nil as `TYPE.nil`. */
  shape = 0
  /** The text of the first element of a push. */
  kind = ''
  /** The bytes of the channel in the acknowledgement of a subscription, or of its end, as latin1. */
  channel: string | undefined
  #noted = 0
  /** Whether the frame may be a message. */
  #isTracked = false
  /** Whether the frame must be a message. */
  #isMessage = false
  /** The missing elements by depth. */
  readonly #missing: number[] = Array.from({ length: MAX_DEPTH + 1 }, () => 0)
  #depth = 0
  /** The missing bytes of a body. */
  #body = 0
  /** Whether a body is complete, but its line end is missing. */
  #ending = false
  /** The end of the last line read. */
  #after = 0

  /** The end of the frame that begins or continues at `from`; -1 if the chunk ends before it. */
  next(chunk: Buffer, from: number): number {
    const end = chunk.length
    let at = from
    for (;;) {
      if (this.#body > 0) {
        if (end - at <= this.#body) {
          this.#body -= end - at
          this.safe = end
          return -1
        }
        at += this.#body
        this.#body = 0
      }
      if (this.#ending) {
        if (end - at < 2) return this.#wait(at)
        if (chunk[at] !== CR || chunk[at + 1] !== LF) throw new ProtocolError('a string does not end where it should')
        at += 2
        this.#ending = false
        if (this.#isWhole()) return at
        continue
      }
      if (at === end) return this.#wait(at)
      const type = chunk[at] as number
      if (this.#depth === 0) this.#begin(type)
      switch (type) {
        case TYPE.bulk:
        case TYPE.verbatim:
        case TYPE.bulkError: {
          const length = this.#length(chunk, at + 1, this.#isMessage ? MAX_MESSAGE_PART : MAX_BULK)
          if (length === INCOMPLETE) return this.#wait(at)
          if (length === NIL && type !== TYPE.bulk) throw new ProtocolError('a length is negative')
          if (type === TYPE.verbatim && length < 4) throw new ProtocolError('a string has no format')
          if (this.#isTracked && this.#depth === 1 && this.#noted < NOTED) {
            if (this.#noted === 0 && type === TYPE.bulk && length > 0 && length <= MAX_KIND) {
              if (end - this.#after < length + 2) return this.#wait(at)
              this.kind = chunk.toString('latin1', this.#after, this.#after + length)
            }
            if (this.#noted === 1 && length >= 0 && length <= MAX_CHANNEL && this.kind.endsWith('subscribe')) {
              if (end - this.#after < length + 2) return this.#wait(at)
              this.channel = chunk.toString('latin1', this.#after, this.#after + length)
            }
            this.#note(length === NIL ? TYPE.nil : type)
          }
          at = this.#after
          if (length === NIL) {
            if (this.#isWhole()) return at
          } else {
            this.#body = length
            this.#ending = true
          }
          continue
        }
        case TYPE.array:
        case TYPE.set:
        case TYPE.map:
        case TYPE.push: {
          const count = this.#length(chunk, at + 1, this.#mostElements())
          if (count === INCOMPLETE) return this.#wait(at)
          if (count === NIL && type !== TYPE.array) throw new ProtocolError('a length is negative')
          if (type === TYPE.push && this.#depth > 0) throw new ProtocolError('a push within a reply')
          at = this.#after
          if (this.#isTracked && this.#depth === 1) this.#note(count === NIL ? TYPE.nil : type)
          if (this.#depth === 0) {
            if (count === NIL) this.type = TYPE.nil
            this.count = count
          }
          if (count > 0) {
            if (this.#depth === MAX_DEPTH) throw new ProtocolError('elements are nested too deep')
            this.#missing[++this.#depth] = type === TYPE.map ? 2 * count : count
          } else if (this.#isWhole()) return at
          continue
        }
        default: {
          const after = type === TYPE.integer ? this.#integer(chunk, at + 1) : this.#line(chunk, at)
          if (after === INCOMPLETE) return this.#wait(at)
          if (this.#isTracked && this.#depth === 1 && this.#noted < NOTED) {
            if (this.#noted === 0 && type === TYPE.simple && after - at - 3 <= MAX_KIND) {
              this.kind = chunk.toString('latin1', at + 1, after - 2)
            }
            this.#note(type)
          }
          at = after
          if (this.#isWhole()) return at
        }
      }
    }
  }

  #mostElements(): number {
    if (this.#depth > 0) return MAX_NESTED
    return this.isList ? MAX_LISTED : MAX_ELEMENTS
  }

  #begin(type: number): void {
    this.type = type
    this.count = 0
    this.shape = 0
    this.kind = ''
    this.channel = undefined
    this.#noted = 0
    this.#isTracked = type === TYPE.push || (this.tracksArrays && type === TYPE.array)
    this.#isMessage = this.#isTracked && (type === TYPE.push || this.isSubscribed)
  }

  #note(type: number): void {
    if (this.#noted === NOTED) return
    this.shape |= type << (7 * this.#noted)
    this.#noted++
  }

  /** Counts an ended element; returns whether the frame has ended. */
  #isWhole(): boolean {
    while (this.#depth > 0) {
      if (--(this.#missing as [number])[this.#depth as 0] > 0) return false
      this.#depth--
    }
    return true
  }

  #wait(at: number): -1 {
    this.safe = at
    return -1
  }

  /** The number in a line of digits; sets `#after` to the end of the line. */
  #length(chunk: Buffer, from: number, most: number): number {
    const end = chunk.length
    let at = from
    let length = 0
    if (chunk[at] === MINUS) {
      if (end - at < 4) return INCOMPLETE
      if (chunk[at + 1] !== ZERO + 1) throw new ProtocolError('a length is negative')
      at += 2
      length = NIL
    } else {
      for (; at < end; at++) {
        const digit = (chunk[at] as number) - ZERO
        if (digit < 0 || digit > 9) break
        length = length * 10 + digit
        if (at - from > MAX_DIGITS) throw new ProtocolError('a length is too large')
      }
      if (at === end) return INCOMPLETE
      if (at === from) throw new ProtocolError('a length is not a number')
      if (length > most) throw new ProtocolError('a length is too large')
    }
    if (chunk[at] !== CR) throw new ProtocolError('a length is not a number')
    if (at + 1 === end) return INCOMPLETE
    if (chunk[at + 1] !== LF) throw new ProtocolError('a line does not end where it should')
    this.#after = at + 2
    return length
  }

  #integer(chunk: Buffer, from: number): number {
    const end = chunk.length
    let at = from
    if (chunk[at] === MINUS || chunk[at] === PLUS) at++
    const first = at
    for (; at < end; at++) {
      const digit = (chunk[at] as number) - ZERO
      if (digit < 0 || digit > 9) break
    }
    if (at - first > MAX_DIGITS) throw unknown(TYPE.integer)
    if (at === end) return INCOMPLETE
    if (at === first || chunk[at] !== CR) throw unknown(TYPE.integer)
    if (at + 1 === end) return INCOMPLETE
    if (chunk[at + 1] !== LF) throw new ProtocolError('a line does not end where it should')
    return at + 2
  }

  /** The end of a line that is a whole element, except an integer. */
  #line(chunk: Buffer, from: number): number {
    const type = chunk[from] as number
    const isText = type === TYPE.simple || type === TYPE.error
    const end = chunk.length
    let at = from + 1
    for (; at < end; at++) {
      const byte = chunk[at] as number
      if (byte === CR) break
      if (isText ? byte === LF : !isPartOf(type, byte, at - from)) throw unknown(type)
    }
    if (isText || isValueOf(type)) {
      if (end - at < 2) return INCOMPLETE
    } else throw unknown(type)
    if (chunk[at + 1] !== LF) throw new ProtocolError('a line does not end where it should')
    const length = at - from - 1
    if (!isText && (type === TYPE.nil ? length !== 0 : length === 0)) throw unknown(type)
    return at + 2
  }
}

function isValueOf(type: number): boolean {
  return (
    type === TYPE.integer ||
    type === TYPE.double ||
    type === TYPE.boolean ||
    type === TYPE.bigNumber ||
    type === TYPE.nil
  )
}

/** Whether a byte can be at this position of a number or the like; the first position is 1. */
function isPartOf(type: number, byte: number, at: number): boolean {
  const isDigit = byte >= ZERO && byte <= ZERO + 9
  switch (type) {
    case TYPE.bigNumber:
      return isDigit || (at === 1 && (byte === MINUS || byte === PLUS))
    case TYPE.double:
      return isDigit || DOUBLE.includes(String.fromCharCode(byte))
    case TYPE.boolean:
      return at === 1 && (byte === 116 || byte === 102)
    default:
      return false
  }
}

/** The characters of a double, including `inf` and `nan`. */
const DOUBLE = '+-.eEinfa'

function unknown(type: number): ProtocolError {
  if (isValueOf(type)) return new ProtocolError('a value is not of its type')
  return new ProtocolError('an unknown type of reply')
}
