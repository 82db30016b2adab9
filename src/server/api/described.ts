type Json = Record<string, unknown>

/** Fields of which a request has one at most. */
const PAIRS = [
  ['delay', 'dueAt'],
  ['body', 'bodyBase64'],
] as const
const B64 = '([A-Za-z0-9+/]{4})'
/** One byte at the end, and two: the bits that are over are 0. */
const [B64_1, B64_2] = ['[A-Za-z0-9+/][AQgw]==', '[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=']
/** What the operations check by themselves, with problems that say more than a schema does. */
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

/** The schema of a body as the description has it: with what the operation refuses beside what its schema refuses. */
export function described<T>(body: T): T {
  const { properties, allOf = [] } = body as { properties?: Record<string, Json>; allOf?: Json[] }
  if (properties === undefined) return body
  const fields = Object.entries(properties).map(([name, schema]) => [name, { ...schema, ...FORMS[name] }])
  const pairs = PAIRS.filter((pair) => pair.every((name) => name in properties)).map((required) => ({
    not: { required },
  }))
  return {
    ...body,
    properties: Object.fromEntries(fields) as Record<string, Json>,
    // some generators of clients lose a type that has an allOf of one
    ...(allOf.length + pairs.length === 1 ? pairs[0] : pairs.length > 0 && { allOf: [...allOf, ...pairs] }),
  }
}
