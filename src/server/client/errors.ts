import type { Static } from 'typebox'
import type { ProblemCode } from '../api/problem.js'
import type { ProblemOutput } from '../api/schemas.js'

type Problem = Static<typeof ProblemOutput>

/** The service answered with a problem (RFC 9457). */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  /** The status of the HTTP answer, or the one that an item of a batch would have had. */
  readonly status: number
  /** Never changes between versions; `unknown` if the answer has no code, for example one of a proxy. */
  readonly code: ProblemCode | 'unknown'
  readonly detail: string | undefined
  /** The id of the request, which the log of the service has too. */
  readonly requestId: string | undefined
  /** The invalid parts of the request. */
  readonly errors: NonNullable<Problem['errors']>
  /** How long to wait before the next attempt, in milliseconds, if the service says it. */
  readonly retryAfter: number | undefined

  constructor(problem: Partial<Problem> & { readonly status: number }, retryAfter?: number) {
    const { status, title = `HTTP ${status}`, code = 'unknown', detail } = problem
    super(detail === undefined ? title : `${title}: ${detail}`)
    this.status = status
    this.code = code as ProblemError['code']
    this.detail = detail
    this.requestId = problem.requestId
    this.errors = problem.errors ?? []
    this.retryAfter = retryAfter
  }
}

/** There was no complete answer: the connection failed, or it took too long. The service may have carried out the request. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
}
