import { InvalidArgumentError } from '../../errors.js'

export type Variables = Readonly<Record<string, string | undefined>>

/** Sticky: it is tried only where a reference begins, and matches only closed references. */
const NAME = /[\w.]{1,200}/y

/**
 * Replaces `${NAME}` and `${NAME:-default}`. Only inside parsed values, so that a password may contain quotes and colons; and
 * a variable without value and default is refused, where Redisson keeps the reference and resolves a host of that name.
 */
export function substitute(text: string, path: string, variables: Variables): string {
  const parts: string[] = []
  let from = 0
  for (let at = text.indexOf('${'); at !== -1; at = text.indexOf('${', at + 2)) {
    const reference = referenceAt(text, at)
    if (reference === null) break
    if (reference === undefined) continue
    parts.push(text.slice(from, at), valueOf(reference, path, variables))
    from = reference.end
    at = from - 2
  }
  return from === 0 ? text : parts.join('') + text.slice(from)
}

interface Reference {
  readonly name: string
  readonly fallback: string | undefined
  readonly end: number
}

/** The reference at a position; `undefined` if there is none, `null` if there is none further on either, because no bracket is closed. */
function referenceAt(text: string, at: number): Reference | undefined | null {
  NAME.lastIndex = at + 2
  const name = NAME.exec(text)?.[0]
  if (name === undefined) return undefined
  const next = at + 2 + name.length
  if (text[next] === '}') return { name, fallback: undefined, end: next + 1 }
  if (!text.startsWith(':-', next)) return undefined
  const close = text.indexOf('}', next + 2)
  return close === -1 ? null : { name, fallback: text.slice(next + 2, close), end: close + 1 }
}

function valueOf({ name, fallback }: Reference, path: string, variables: Variables): string {
  const value = Object.hasOwn(variables, name) ? variables[name] : undefined
  if (value !== undefined) return value
  if (fallback !== undefined) return fallback
  throw new InvalidArgumentError(path, `the variable ${name} to be set, or a default as \${${name}:-value}`, undefined)
}
