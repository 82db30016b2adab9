import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BadRequest } from './problem.js'
import { readJson } from './strict-json.js'

/** A batch of lines, each a message of its own. */
export class Lines {
  readonly lines: readonly Buffer[]

  constructor(lines: readonly Buffer[]) {
    this.lines = lines
  }
}

const NEWLINE = 0x0a
/** The room for the rest of a message beside its body, and for its JSON. */
const BESIDE_BODY = 262_144

/** The most bytes of a request with one message, whose body can be base64. */
export function requestLimit({ maxMessageBytes }: { readonly maxMessageBytes: number }): number {
  return Math.ceil((maxMessageBytes * 4) / 3) + BESIDE_BODY
}

/** Makes an app read only JSON bodies. */
export function readOnlyJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    parse(done, () => {
      assertPlain(request)
      return body.length === 0 ? undefined : readJson(body as Buffer)
    })
  })
}

/** Makes the routes of this scope also read bodies with a JSON value in each line. */
export function readAlsoLines(app: FastifyInstance, most: number): void {
  app.addContentTypeParser(
    ['application/x-ndjson', 'application/jsonl'],
    { parseAs: 'buffer' },
    (request, body, done) => {
      parse(done, () => {
        assertPlain(request)
        return new Lines(linesOf(body as Buffer, most))
      })
    },
  )
}

/** @throws BadRequest there are more than `most` lines: each costs more memory than its bytes */
function linesOf(body: Buffer, most: number): Buffer[] {
  const lines: Buffer[] = []
  for (let from = 0; from < body.length;) {
    const end = body.indexOf(NEWLINE, from)
    const to = end < 0 ? body.length : end
    const line = body.subarray(from, body[to - 1] === 0x0d ? to - 1 : to)
    if (line.length > 0 && lines.push(line) > most)
      throw new BadRequest('invalid-request', `expected at most ${most} messages`)
    from = to + 1
  }
  return lines
}

function assertPlain({ headers }: FastifyRequest): void {
  const [, charset = 'utf-8'] = /;\s*charset="?([^";\s]+)/i.exec(headers['content-type'] ?? '') ?? []
  if (!/^utf-?8$/i.test(charset)) throw new BadRequest('unsupported-media-type', 'the body must be UTF-8')
}

/** Refuses a compressed body before it is read: it could be larger than it looks. @throws BadRequest */
export function assertUncompressed({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    throw new BadRequest('unsupported-media-type', 'compressed bodies are not supported')
}

function parse(done: (error: Error | null, body?: unknown) => void, read: () => unknown): void {
  let value: unknown
  try {
    value = read()
  } catch (thrown) {
    done(thrown as Error)
    return
  }
  done(null, value)
}
