import { problem, PROBLEMS, type ProblemCode } from './problem.js'

export const PROBLEM = 'application/problem+json'

/** A problem as the bytes of an HTTP/1.1 answer, for connections that have no request that Node could read. */
export function bareAnswer(code: ProblemCode, detail: string, headers: readonly string[] = []): string {
  const body = JSON.stringify(problem(code, detail))
  const [status, title] = PROBLEMS[code]
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    `Content-Type: ${PROBLEM}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
