type Json = Record<string, unknown>

/** Pairs of fields that exclude each other. */
const PAIRS = [
  ['delay', 'dueAt'],
  ['body', 'bodyBase64'],
  ...(['state', 'bizKey', 'dueFrom', 'dueTo', 'endpoint', 'since', 'until', 'reason', 'dryRun'] as const).map(
    (name) => ['ids', name] as const,
  ),
] as const
const B64 = '([A-Za-z0-9+/]{4})'
/** The last one or two bytes: the unused bits are 0. */
const [B64_1, B64_2] = ['[A-Za-z0-9+/][AQgw]==', '[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=']
/**
 * A message with a group has the priority 0. In two parts: a client generator makes a map of a type with `properties` directly in a
 * negation.
 */
const NO_PRIORITY = {
  not: { allOf: [{ required: ['group', 'priority'] }, { properties: { priority: { minimum: 1 } } }] },
}
/** Rules that the operations check themselves, with clearer problems than a schema gives. */
const FORMS: Readonly<Record<string, Json>> = {
  bodyBase64: { pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' },
  leases: {
    items: {
      type: 'string',
      pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\\.\\d{1,9}(~\\d{1,15})?\\.[A-Za-z0-9_-]{1,1024}$',
    },
  },
  // its check takes time that grows with the square of their number
  topics: { uniqueItems: true },
  url: { format: 'uri' },
  secret: { pattern: `^(whsec_(${B64}{8,21}(${B64_1})?|${B64}{8,20}${B64_2})|whsk_${B64}{10}${B64_2})$` },
}

/** The schema of a body for the OpenAPI document: with the rules that the operation itself checks. */
export function described<T>(body: T): T {
  const { properties, allOf = [] } = body as { properties?: Record<string, Json>; allOf?: Json[] }
  if (properties === undefined) return body
  const fields = Object.entries(properties).map(([name, schema]) => [name, { ...schema, ...FORMS[name] }])
  const pairs: Json[] = PAIRS.filter((pair) => pair.every((name) => name in properties)).map((required) => ({
    not: { required },
  }))
  if ('group' in properties) pairs.push(NO_PRIORITY)
  return {
    ...body,
    properties: Object.fromEntries(fields) as Record<string, Json>,
    // some client generators lose a type whose allOf has one element
    ...(allOf.length + pairs.length === 1 ? pairs[0] : pairs.length > 0 && { allOf: [...allOf, ...pairs] }),
  }
}
