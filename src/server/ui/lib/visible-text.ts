/**
 * What a reader would not see, or what would change how the rest is read: control characters, those that turn the direction, those without a width, other
 * ends of lines, halves of surrogate pairs.
 */
const HIDDEN_IN_LINE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
/** Where there are several lines, tabs and line feeds do what they are for. */
const HIDDEN = new RegExp(String.raw`(?![\t\n])${HIDDEN_IN_LINE.source}`, 'gu')

export interface Part {
  readonly text: string
  readonly isEscape: boolean
}

export interface Visible {
  readonly parts: readonly Part[]
  /** How many characters were left out at the end. */
  readonly cut: number
}

/** So many escapes get an element each; a text with more of them is shown in one piece. */
const MOST_PARTS = 400

/** A text from outside, cut and with what is hidden written as escapes. */
export function visible(given: string, limit: number, isBlock = false): Visible {
  const text = given.length > limit ? given.slice(0, limit) : given
  const cut = given.length - text.length
  const parts: Part[] = []
  let from = 0
  for (const found of text.matchAll(isBlock ? HIDDEN : HIDDEN_IN_LINE)) {
    if (found.index > from) parts.push({ text: text.slice(from, found.index), isEscape: false })
    parts.push({ text: escaped(found[0]), isEscape: true })
    from = found.index + found[0].length
  }
  if (from < text.length) parts.push({ text: text.slice(from), isEscape: false })
  if (parts.length <= MOST_PARTS) return { parts, cut }
  return { parts: [{ text: parts.map((part) => part.text).join(''), isEscape: false }], cut }
}

/** For attributes such as `title`, where nothing can be marked. */
export function visibleLine(text: string, limit = 300): string {
  const { parts, cut } = visible(text, limit)
  return parts.map((part) => part.text).join('') + (cut > 0 ? '…' : '')
}

function escaped(character: string): string {
  if (character === '\n') return '\\n'
  if (character === '\t') return '\\t'
  if (character === '\r') return '\\r'
  const code = (character.codePointAt(0) ?? 0).toString(16)
  return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\u{${code}}`
}
