import type * as Yaml from 'yaml'
import { InvalidArgumentError, inWords } from '../../errors.js'
import { optional } from '../../optional.js'

/** A value of the file, with the name of the Java class in the tag before it (`!<org.redisson…> {}`), if any. */
export interface Tree {
  /** The path of the value, such as `singleServerConfig.address`. */
  readonly path: string
  readonly javaClass: string | undefined
  readonly value: string | number | boolean | null | readonly Tree[] | ReadonlyMap<string, Tree>
  /** The source text of a number or word, because a password can be 0123 or 1e5. */
  readonly source?: string | undefined
}

/** Redisson's own files are three levels deep. */
const MAX_DEPTH = 8
/** Redisson's files have two thousand characters; for larger wrong texts the parser takes too long. */
const MAX_CHARS = 16_384
/** The most open brackets, checked before parsing, because the parser recurses for each. Values may contain some that are never closed. */
const MAX_OPEN = 64
/** The most aliases: they can expand a small file to a large one, and the parser searches the whole file for each. */
const MAX_VALUES = 10_000
const MAX_ALIASES = 100
/** Tags that only name the type that the value has anyway. */
const PLAIN_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/
const CLASS_NAME = /^[\p{L}_$][\p{L}\p{N}_$]*(\.[\p{L}_$][\p{L}\p{N}_$]*)+$/u

/** Reads YAML into plain data. A tag is kept as a name; no object is created from it. */
export function readTree(text: string, resolve: (text: string, path: string) => string): Tree {
  if (text.length > MAX_CHARS)
    throw new InvalidArgumentError('the YAML', `at most ${MAX_CHARS} characters`, text.length)
  assertFlat(text)
  const { parseDocument, isAlias, isMap, isScalar, isSeq, LineCounter } = library()
  const lines = new LineCounter()
  // a pretty error would quote the line, which may contain a password
  // duplicate keys are found below, in less time
  const document = withoutStacks(() =>
    parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false }),
  )
  const [error] = document.errors
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0])
    throw new InvalidArgumentError('the YAML', 'valid syntax', inWords(`${error.code} in line ${line}, column ${col}`))
  }
  let values = 0
  let aliases = 0
  return convert(document.contents, '', 0)

  function convert(node: Yaml.Node | null, path: string, depth: number): Tree {
    if (depth > MAX_DEPTH) throw new InvalidArgumentError(path, `at most ${MAX_DEPTH} levels`, inWords('more'))
    if (++values > MAX_VALUES)
      throw new InvalidArgumentError('the YAML', `at most ${MAX_VALUES} values`, inWords('more'))
    if (node === null) return { path, javaClass: undefined, value: null }
    if (isAlias(node)) {
      if (++aliases > MAX_ALIASES) {
        throw new InvalidArgumentError('the YAML', `at most ${MAX_ALIASES} aliases`, inWords('more'))
      }
      const target = node.resolve(document)
      if (target === undefined) throw new InvalidArgumentError(path, 'an anchor for the alias', inWords('none'))
      return convert(target, path, depth + 1)
    }
    const javaClass = classOf(node.tag, path)
    if (isMap(node)) {
      const entries = new Map<string, Tree>()
      for (const pair of node.items as Yaml.Pair<Yaml.Node, Yaml.Node | null>[]) {
        const key = isScalar(pair.key) ? String(pair.key.value) : ''
        const at = path === '' ? key : `${path}.${key}`
        if (entries.has(key)) throw new InvalidArgumentError(at, 'one value', inWords('several'))
        entries.set(key, convert(pair.value, at, depth + 1))
      }
      return { path, javaClass, value: entries }
    }
    if (isSeq(node)) {
      const items = node.items as Yaml.Node[]
      return { path, javaClass, value: items.map((item, index) => convert(item, `${path}[${index}]`, depth + 1)) }
    }
    const value: unknown = isScalar(node) ? node.value : null
    if (typeof value === 'string') return { path, javaClass, value: resolve(value, path) }
    if (typeof value === 'number' || typeof value === 'boolean' || value === null) {
      return { path, javaClass, value, source: isScalar(node) ? node.source : undefined }
    }
    throw new InvalidArgumentError(path, 'text, a number, true or false', value)
  }
}

function assertFlat(text: string): void {
  let open = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '[' || char === '{') open++
    else if (char === ']' || char === '}') open--
    if (open > MAX_OPEN)
      throw new InvalidArgumentError('the YAML', `at most ${MAX_OPEN} open brackets`, inWords('more'))
  }
}

/** Reports only the position of the first error: a wrong text can have thousands. */
function withoutStacks<T>(action: () => T): T {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return action()
  } finally {
    Error.stackTraceLimit = limit
  }
}

function classOf(tag: string | undefined, path: string): string | undefined {
  if (tag === undefined || PLAIN_TAG.test(tag)) return undefined
  if (CLASS_NAME.test(tag)) return tag
  throw new InvalidArgumentError(
    path || 'the YAML',
    'no tag but the name of a Java class, as !<org.redisson…>',
    inWords('a tag'),
  )
}

/** `yaml` is an optional package: only applications that read such a file need it. */
function library(): typeof Yaml {
  return optional('yaml', 'reading YAML') as typeof Yaml
}
