import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import type { FastifySchema, FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'

interface Field {
  readonly type?: string
  readonly maxItems?: number
  readonly anyOf?: readonly Field[]
}

type Validate = ReturnType<FastifySchemaCompiler<FastifySchema>>

/** The form of a query's text, by its type: the compiler would read `true` as 1, and 0.5 as 0. */
const FORMS: Readonly<Record<string, RegExp>> = { integer: /^-?\d{1,16}$/, boolean: /^(true|false)?$/ }

/** Like TypeBox's compiler, but a query's numbers must be written as numbers, and texts stay as they are. */
export const validatorCompiler: FastifySchemaCompiler<FastifySchema> = (route) => {
  const isText = route.httpPart === 'headers' || route.httpPart === 'params'
  if (isText && areTexts(route.schema)) return textsValidator(route.schema)
  const validate = (TypeBoxValidatorCompiler as FastifySchemaCompiler<FastifySchema>)(route)
  if (route.httpPart === 'body') return withinBounds(route.schema, validate)
  if (route.httpPart !== 'querystring') return validate
  const { properties = {} } = route.schema as { properties?: Record<string, Field> }
  const forms = Object.entries(properties).flatMap(([name, { type, anyOf = [] }]) => {
    const form = FORMS[type ?? anyOf.find((each) => each.type !== undefined)?.type ?? '']
    return form === undefined ? [] : [[name, form] as const]
  })
  return (query: unknown) => {
    for (const [name, form] of forms) {
      const given = (query as Record<string, unknown>)[name]
      if (given === undefined || (typeof given === 'string' && form.test(given))) continue
      return { error: [{ instancePath: `/${name}`, message: `must match ${String(form)}` }] as never }
    }
    return validate(query) as { value: unknown }
  }
}

/** Checks the lengths of arrays first: the compiler would look for errors in each of half a million elements. */
function withinBounds(schema: unknown, validate: Validate): Validate {
  const { properties = {} } = schema as { properties?: Record<string, Field> }
  const bounds = Object.entries(properties).flatMap(([name, { maxItems }]) =>
    maxItems === undefined ? [] : [[name, maxItems] as const],
  )
  if (bounds.length === 0) return validate
  return (body) => {
    for (const [name, most] of bounds) {
      const given = (body as Record<string, unknown> | null)?.[name]
      if (Array.isArray(given) && given.length > most)
        return { error: [{ instancePath: `/${name}`, message: `must not have more than ${most} items` }] as never }
    }
    return validate(body)
  }
}

function areTexts(schema: unknown): boolean {
  const { properties = {} } = schema as { properties?: Record<string, Field> }
  return Object.values(properties).every(({ type }) => type === 'string')
}

/** A validator without conversions: TypeBox's compiler would search all headers of each request for values to convert. */
function textsValidator(schema: TSchema): (texts: unknown) => true | { readonly error: never } {
  const form = Compile(schema)
  return (texts) => form.Check(texts) || { error: form.Errors(texts) as never }
}
