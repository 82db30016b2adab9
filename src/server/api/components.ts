import * as schemas from './schemas.js'

type Json = Record<string, unknown>

/** Schemas that are not types of a client program: the parts of paths, queries and headers. */
const PARTS = /(Params|Query|Headers)$/
const INT32 = 2_147_483_647

/** The names of the schemas, by their content: an optional schema is a copy. */
const NAMES = new Map(
  Object.entries(schemas)
    .filter((entry): entry is [string, Extract<(typeof entry)[1], object>] => {
      const [name, schema] = entry
      return typeof schema === 'object' && !PARTS.test(name) && schema !== schemas.Flag
    })
    .map(([name, schema]) => [JSON.stringify(schema), name]),
)

/** A copy of a schema in which each named schema has its name as its `title`, and `change` is applied to each. */
export function named<T>(schema: T, change: (schema: Json) => Json = (same) => same): T {
  if (Array.isArray(schema)) return schema.map((each: unknown) => named(each, change)) as T
  if (!isObject(schema)) return schema
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, named(value, change)]))
  const title = NAMES.get(JSON.stringify(schema))
  return change(title === undefined ? copy : { title, ...copy }) as T
}

/**
 * Moves each schema with a `title` to the components, where client generators find one type for it, and adds the formats of integers and
 * the types of enums, which generators would otherwise guess.
 *
 * @throws Error two schemas with one name differ
 */
export function withComponents<T extends { paths?: unknown; components?: object }>(document: T): T {
  const components = new Map<string, string>()
  const names = new Set(NAMES.values())
  const moved = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(moved)
    if (!isObject(value)) return value
    const node = typed(Object.fromEntries(Object.entries(value).map(([key, each]) => [key, moved(each)])))
    const { title } = node
    if (typeof title !== 'string' || !names.has(title)) return node
    const text = JSON.stringify(node)
    const before = components.get(title) ?? text
    if (before !== text) throw new Error(`two schemas have the name ${title}`)
    components.set(title, text)
    return { $ref: `#/components/schemas/${title}` }
  }
  const paths = moved(document.paths)
  const sorted = [...components].sort(([a], [b]) => (a < b ? -1 : 1))
  const all = Object.fromEntries(sorted.map(([name, text]) => [name, JSON.parse(text) as Json]))
  return { ...document, paths, components: { ...document.components, schemas: all } }
}

function typed(node: Json): Json {
  const { type, enum: values, maximum, format, schema } = node
  if (type === undefined && Array.isArray(values) && values.every((each) => typeof each === 'string'))
    return { type: 'string', ...node }
  if (type === 'integer' && format === undefined)
    return { ...node, format: typeof maximum === 'number' && maximum <= INT32 ? 'int32' : 'int64' }
  // a flag may have no value
  if (node['in'] === 'query' && isFlag(schema)) return { ...node, schema: { type: 'boolean' }, allowEmptyValue: true }
  return node
}

function isFlag(schema: unknown): boolean {
  if (!isObject(schema) || !Array.isArray(schema['anyOf'])) return false
  const [first, second] = schema['anyOf'] as [Json?, Json?]
  return first?.['type'] === 'boolean' && JSON.stringify(second?.['enum'] ?? [second?.['const']]) === '[""]'
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null
}
