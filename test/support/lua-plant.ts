import { createHash } from 'node:crypto'

interface LuaSource {
  readonly source: string
  readonly sha1: string
}

interface Token {
  readonly text: string
  readonly from: number
  readonly to: number
}

/** Blanks, comments, strings, names, numbers, operators. */
const TOKEN = /--\[\[[^]*?\]\]|--[^\n]*|\s+|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\w+|[=~<>]=|\.{2,3}|[^]/g

/**
 * A script with other code in the place of a pattern, which must occur once. In the pattern `$name` stands for any name, and for the same one wherever it
 * occurs again; the code may use it. Formatting and comments make no difference.
 */
export function plantLua<T extends LuaSource>(script: T, pattern: string, code: string): T {
  const all = tokens(script.source)
  const wanted = tokens(pattern.replaceAll('$', '__any_')).map(({ text }) => text.replace('__any_', '$'))
  const places = all.flatMap((_, first) => match(all, first, wanted) ?? [])
  const [place] = places
  if (place === undefined || places.length > 1) throw new Error(`the script has ${places.length} times: ${pattern}`)
  const text = code.replaceAll(/\$\w+/g, (name) => place.bound.get(name) ?? name)
  const source = `${script.source.slice(0, place.from)} ${text} ${script.source.slice(place.to)}`
  return { ...script, source, sha1: createHash('sha1').update(source).digest('hex') }
}

function match(all: readonly Token[], first: number, wanted: readonly string[]) {
  const [begin, end] = [all[first], all[first + wanted.length - 1]]
  if (begin === undefined || end === undefined) return undefined
  const bound = new Map<string, string>()
  const isMatch = wanted.every((name, index) => {
    const text = all[first + index]?.text ?? ''
    if (!name.startsWith('$')) return name === text
    if (!bound.has(name) && /^[A-Za-z_]\w*$/.test(text)) bound.set(name, text)
    return bound.get(name) === text
  })
  return isMatch ? { from: begin.from, to: end.to, bound } : undefined
}

function tokens(source: string): Token[] {
  return Array.from(source.matchAll(TOKEN), ({ 0: text, index }) => ({
    text,
    from: index,
    to: index + text.length,
  })).filter(({ text }) => !/^(\s|--)/.test(text))
}
