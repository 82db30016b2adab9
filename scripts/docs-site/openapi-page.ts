// The OpenAPI document of the service as a page.

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly additionalProperties?: Schema | boolean
}
interface Content {
  readonly description?: string
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}
interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly {
    name: string
    in: string
    required?: boolean
    description?: string
    schema?: Schema
  }[]
  readonly requestBody?: Content & { readonly required?: boolean }
  readonly responses?: Readonly<Record<string, Content>>
}
export interface OpenApi {
  readonly info: { readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

/** @param base what the address of the site begins with */
export function openApiPage({ info, paths, components }: OpenApi, base: string): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationPart(method, path, operation)),
  )
  const schemas = Object.entries(components?.schemas ?? {}).map(
    ([name, schema]) =>
      `### ${name}\n\n${schema.description === undefined ? '' : `${cell(schema.description)}\n\n`}${fields(schema)}`,
  )
  return `# The HTTP API, path by path

Written from the OpenAPI 3.1 document of version ${info.version}: [openapi.json](${base}openapi.json){target="_self"}. [The HTTP API](/docs/http-api.md) explains it.

## Paths

${operations.join('\n')}
## Schemas

${schemas.join('\n')}`
}

function operationPart(method: string, path: string, operation: Operation): string {
  const { summary, description, parameters = [], requestBody, responses = {} } = operation
  const parts = [`### \`${method.toUpperCase()} ${path}\`\n`]
  for (const text of [summary, description]) if (text !== undefined) parts.push(`${cell(text)}\n`)
  if (parameters.length > 0) {
    parts.push('| parameter | in | type | |', '|---|---|---|---|')
    for (const { name, in: place, required, description: about, schema } of parameters)
      parts.push(
        `| \`${name}\` | ${place}${required ? ', required' : ''} | ${typeOf(schema)} | ${cell(about ?? schema?.description)} |`,
      )
    parts.push('')
  }
  if (requestBody !== undefined) parts.push(`Body: ${contents(requestBody)}\n`)
  parts.push('| answer | body |', '|---|---|')
  for (const [status, response] of Object.entries(responses)) parts.push(`| ${status} | ${contents(response)} |`)
  return `${parts.join('\n')}\n`
}

function contents({ content, description }: Content): string {
  const kinds = Object.entries(content ?? {}).map(([kind, { schema }]) => `\`${kind}\` ${typeOf(schema)}`)
  return kinds.length > 0 ? kinds.join(', ') : cell(description)
}

function fields(schema: Schema): string {
  const all = { ...schema.properties }
  for (const part of schema.allOf ?? []) Object.assign(all, part.properties)
  if (Object.keys(all).length === 0) return `${typeOf(schema)}\n`
  const rows = Object.entries(all).map(([name, field]) => {
    const required = schema.required?.includes(name) ? '' : 'optional'
    return `| \`${name}\` | ${typeOf(field)} | ${[required, cell(field.description)].filter(Boolean).join('; ')} |`
  })
  return `| field | type | |\n|---|---|---|\n${rows.join('\n')}\n`
}

/** A type in a cell, with its bounds. */
function typeOf(schema: Schema | undefined): string {
  if (schema === undefined) return ''
  const { $ref, type, format, items, anyOf, oneOf, enum: values, const: value, minimum, maximum } = schema
  if ($ref !== undefined) {
    const name = $ref.replace(/^.*\//, '')
    return `[${name}](#${name.toLowerCase()})`
  }
  if (value !== undefined) return `\`${JSON.stringify(value)}\``
  if (values !== undefined) return values.map((each) => `\`${JSON.stringify(each)}\``).join(' or ')
  const choices = anyOf ?? oneOf
  if (choices !== undefined) return [...new Set(choices.map(typeOf))].join(' or ')
  if (items !== undefined) return `list of ${typeOf(items)}`
  const bounds = minimum === undefined && maximum === undefined ? '' : ` ${minimum ?? ''}…${maximum ?? ''}`
  return `${typeof type === 'string' ? type : (type?.join(' or ') ?? 'anything')}${format === undefined ? '' : ` (${format})`}${bounds}`
}

/** A text in a cell of a table. */
function cell(text = ''): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;')
}
