import { InvalidArgumentError, inWords } from '../../errors.js'
import { integer } from '../../options.js'
import type { Tree } from './yaml-tree.js'

/** One map of the file. It remembers which settings were read, so that the reader can report the others. */
export class Section {
  readonly path: string
  readonly #entries: Map<string, Tree>

  constructor(tree: Tree) {
    if (!(tree.value instanceof Map))
      throw new InvalidArgumentError(tree.path || 'the YAML', 'settings', inWords(kindOf(tree)))
    this.path = tree.path
    this.#entries = new Map(tree.value as ReadonlyMap<string, Tree>)
  }

  /** The settings that were not read yet and are not null. */
  get rest(): string[] {
    return [...this.#entries].filter(([, { value }]) => value !== null).map(([name]) => name)
  }

  at(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`
  }

  has(name: string): boolean {
    return (this.#entries.get(name)?.value ?? null) !== null
  }

  take(name: string): Tree | undefined {
    const tree = this.#entries.get(name)
    this.#entries.delete(name)
    return tree === undefined || tree.value === null ? undefined : tree
  }

  section(name: string): Section | undefined {
    const tree = this.take(name)
    return tree && new Section(tree)
  }

  text(name: string): string | undefined {
    const tree = this.take(name)
    return tree && textOf(tree)
  }

  required(name: string): string {
    const text = this.text(name)
    if (text === undefined) throw new InvalidArgumentError(this.at(name), 'a value', undefined)
    return text
  }

  number(name: string): number | undefined {
    const tree = this.take(name)
    if (tree === undefined) return undefined
    const { path, value } = tree
    // a variable is text
    const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
    return integer(path, number, 0, Number.MAX_SAFE_INTEGER)
  }

  flag(name: string): boolean | undefined {
    const tree = this.take(name)
    if (tree === undefined) return undefined
    const { value } = tree
    if (value === true || value === 'true') return true
    if (value === false || value === 'false') return false
    throw new InvalidArgumentError(tree.path, 'true or false', inWords(kindOf(tree)))
  }

  /** A list of texts; Jackson accepts a single one without the dash, too. */
  list(name: string): string[] | undefined {
    const tree = this.take(name)
    if (tree === undefined) return undefined
    if (!Array.isArray(tree.value)) return [textOf(tree)]
    return (tree.value as readonly Tree[]).map(textOf)
  }

  /** A map of texts. */
  texts(name: string): Map<string, string> {
    const tree = this.take(name)
    if (tree === undefined) return new Map()
    if (!(tree.value instanceof Map)) throw new InvalidArgumentError(tree.path, 'a map', inWords(kindOf(tree)))
    return new Map([...(tree.value as ReadonlyMap<string, Tree>)].map(([key, value]) => [key, textOf(value)]))
  }

  /** An object: `!<class> { settings }`, or in JSON `{ class: …, settings }`. */
  object(name: string): { javaClass: string; settings: Section } | undefined {
    const tree = this.take(name)
    if (tree === undefined) return undefined
    const empty = tree.value === '' || tree.value === null
    const settings = new Section(empty ? { ...tree, value: new Map() } : tree)
    const javaClass = tree.javaClass ?? settings.text('class')
    if (javaClass === undefined)
      throw new InvalidArgumentError(tree.path, 'a class, as !<org.redisson…> {}', inWords('none'))
    return { javaClass, settings }
  }
}

function textOf(tree: Tree): string {
  const { value, path, javaClass } = tree
  if (javaClass !== undefined) throw new InvalidArgumentError(path, 'text without a tag', inWords('a tag')) // perhaps a password
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return tree.source ?? String(value)
  throw new InvalidArgumentError(path, 'text', inWords(kindOf(tree)))
}

/** The kind, not the value, which may be a password. */
function kindOf({ value }: Tree): string {
  if (value instanceof Map) return 'a map'
  if (Array.isArray(value)) return 'a list'
  return value === null ? 'nothing' : `a ${typeof value}`
}
