import { InvalidArgumentError } from '../errors.js'

export type Variables = Readonly<Record<string, string | undefined>>

const REFERENCE = /\$\{([\w.]+)(?::-([^}]*))?\}/g

/**
 * Replaces `${NAME}` and `${NAME:-default}`. Only inside a value, so that a password with quotes or colons stays one; and
 * what has neither value nor default is refused, where Redisson leaves the reference and looks for a host of that name.
 */
export function substitute(text: string, path: string, variables: Variables): string {
  return text.replaceAll(REFERENCE, (_, name: string, fallback: string | undefined) => {
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined
    if (value !== undefined) return value
    if (fallback !== undefined) return fallback
    throw new InvalidArgumentError(
      path,
      `the variable ${name} to be set, or a default as \${${name}:-value}`,
      undefined,
    )
  })
}
