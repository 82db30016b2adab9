import { createHash } from 'node:crypto'

type Json = Record<string, unknown>

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 62rem; margin: 0 auto; padding: 1rem }
h2 { margin-top: 2.5rem; text-transform: capitalize }
section { border-top: 1px solid #8886; padding: .5rem 0 }
h3 { margin: .5rem 0; font: 600 1rem ui-monospace, monospace; overflow-wrap: anywhere }
h3 b { display: inline-block; min-width: 4.5em }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 }
td, th { border: 1px solid #8886; padding: .2rem .5rem; text-align: left; vertical-align: top }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere }
summary { cursor: pointer }
nav a { margin-right: 1rem }
`
const HASH = createHash('sha256').update(STYLE).digest('base64')
/** Allows only the content of the document itself. */
export const READABLE_PAGE_POLICY = `default-src 'none'; style-src 'sha256-${HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const METHODS = ['get', 'put', 'post', 'patch', 'delete']

/** The OpenAPI document as a page without scripts, which makes no further requests. */
export function readablePage(document: object): string {
  const { info, paths, components } = document as { info: Json; paths: Record<string, Json>; components: Json }
  const schemas = (components['schemas'] ?? {}) as Record<string, Json>
  const byTag = new Map<string, string[]>()
  for (const [path, methods] of Object.entries(paths)) {
    for (const method of METHODS) {
      const operation = methods[method] as Json | undefined
      if (operation === undefined) continue
      const [tag = 'other'] = (operation['tags'] ?? []) as string[]
      byTag.set(tag, [...(byTag.get(tag) ?? []), shownOperation(method, path, operation)])
    }
  }
  const tags = [...byTag.keys()]
  const types = Object.entries(schemas)
    .filter(([, { properties }]) => properties !== undefined)
    .map(([name, schema]) => `<section id="type-${text(name)}"><h3>${text(name)}</h3>${fieldsOf(schema)}</section>`)
  const title = `${text(info['title'])} ${text(info['version'])}`
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${title}: the HTTP API</title><style>${STYLE}</style></head><body>`,
    `<h1>${title}: the HTTP API</h1><p>${text(info['description'])} A key goes along as`,
    ' <code>Authorization: Bearer &lt;key&gt;</code>. The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>',
    `<nav>${[...tags, 'types'].map((tag) => `<a href="#${anchor(tag)}">${text(tag)}</a>`).join('')}</nav>`,
    ...tags.map((tag) => `<h2 id="${anchor(tag)}">${text(tag)}</h2>${(byTag.get(tag) ?? []).join('')}`),
    `<h2 id="types">types</h2>${types.join('')}</body></html>`,
  ].join('\n')
}

function shownOperation(method: string, path: string, operation: Json): string {
  const parameters = (operation['parameters'] ?? []) as Json[]
  const { content = {}, required } = (operation['requestBody'] ?? {}) as { content?: Json; required?: boolean }
  const bodies = Object.entries(content).map(
    ([type, each]) =>
      `<p>Body${required === false ? ' (can be left out)' : ''}, <code>${text(type)}</code>: ${typeOf((each as Json)['schema'])}</p>`,
  )
  const answers = Object.entries((operation['responses'] ?? {}) as Record<string, Json>).map(([status, answer]) => {
    const [first] = Object.values((answer['content'] ?? {}) as Record<string, Json>)
    const about = answer['description'] === 'Default Response' ? '' : text(answer['description'])
    return row([`<code>${text(status)}</code>`, first === undefined ? '' : typeOf(first['schema']), about])
  })
  const isOpen = Array.isArray(operation['security']) && operation['security'].length === 0
  return [
    `<section id="${text(operation['operationId'])}"><h3><b>${text(method.toUpperCase())}</b> ${text(path)}</h3>`,
    `<p>${text(operation['summary'])}.${isOpen ? ' It needs no key.' : ''}</p>`,
    ...(parameters.length === 0 ? [] : [table(['parameter', 'in', 'type', 'meaning'], parameters.map(shownParameter))]),
    ...bodies,
    `<details><summary>answers</summary>${table(['status', 'type', 'meaning'], answers)}</details></section>`,
  ].join('')
}

function shownParameter({ name, in: where, required, schema, description }: Json): string {
  const about = description ?? (schema as Json | undefined)?.['description']
  return row([`<code>${text(name)}</code>${required === true ? '' : '?'}`, text(where), typeOf(schema), text(about)])
}

function fieldsOf({ properties, required = [] }: Json): string {
  const rows = Object.entries((properties ?? {}) as Record<string, Json>).map(([name, schema]) => {
    const mark = (required as string[]).includes(name) ? '' : '?'
    return row([`<code>${text(name)}</code>${mark}`, typeOf(schema), text(schema['description'])])
  })
  return table(['field', 'type', 'meaning'], rows)
}

/** A type in a few words: a name, a list, a range. */
function typeOf(given: unknown): string {
  if (typeof given !== 'object' || given === null) return 'anything'
  const schema = given as Json
  const {
    $ref,
    type,
    items,
    enum: values,
    const: only,
    anyOf,
    minimum,
    maximum,
    maxLength,
    maxItems,
    properties,
  } = schema
  if (typeof $ref === 'string') {
    const name = text($ref.split('/').at(-1))
    return `<a href="#type-${name}">${name}</a>`
  }
  if (Array.isArray(anyOf)) return anyOf.map(typeOf).join(' or ')
  if (Array.isArray(values)) return values.map((each) => `<code>${text(each)}</code>`).join(' or ')
  if (only !== undefined) return `<code>${text(only)}</code>`
  if (type === 'array') return `list of ${typeOf(items)}${maxItems === undefined ? '' : `, at most ${text(maxItems)}`}`
  if (properties !== undefined) return `<details><summary>object</summary>${fieldsOf(schema)}</details>`
  const range = [
    minimum === undefined ? '' : `from ${text(minimum)}`,
    maximum === undefined ? '' : `to ${text(maximum)}`,
  ]
  const length = maxLength === undefined ? '' : `up to ${text(maxLength)} characters`
  const words = [type === undefined ? 'anything' : [type].flat().map(text).join(' or '), ...range, length]
  return words.filter((word) => word !== '').join(' ')
}

function table(head: readonly string[], rows: readonly string[]): string {
  return `<table><tr>${head.map((each) => `<th>${each}</th>`).join('')}</tr>${rows.join('')}</table>`
}

function row(cells: readonly string[]): string {
  return `<tr>${cells.map((each) => `<td>${each}</td>`).join('')}</tr>`
}

function anchor(tag: string): string {
  return text(tag.replaceAll(' ', '-'))
}

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function text(value: unknown): string {
  const plain = typeof value === 'string' ? value : ['number', 'boolean'].includes(typeof value) ? String(value) : ''
  return plain.replace(/[&<>"']/g, (character) => ESCAPED[character] ?? '')
}
