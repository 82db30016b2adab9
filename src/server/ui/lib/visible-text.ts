/**
 * Characters that a reader would not see, or that change how the rest is read: control characters, direction marks, characters without
 * width, unusual line ends, lone surrogates.
 */
const HIDDEN_IN_LINE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
/** The same for texts of several lines, which keep tabs and line feeds. */
const HIDDEN = new RegExp(String.raw`(?![\t\n])${HIDDEN_IN_LINE.source}`, 'gu')

export interface Part {
  readonly text: string
  readonly isEscape: boolean
}

export interface Visible {
  readonly parts: readonly Part[]
  /** The number of characters cut off at the end. */
  readonly cut: number
}

/** The most escapes that get an element each; a text with more is shown in one piece. */
const MOST_PARTS = 400

/** A text from outside, cut, with hidden characters written as escapes. */
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

/** The same for attributes such as `title`, which cannot have markup. */
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
