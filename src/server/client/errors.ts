import type { Static } from 'typebox'
import type { ProblemCode } from '../api/problem.js'
import type { ProblemOutput } from '../api/schemas.js'

type Problem = Static<typeof ProblemOutput>

/** The service answered with a problem (RFC 9457). */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  /** Of the HTTP answer, or that an item of a batch would have had. */
  readonly status: number
  /** Stays the same between versions; `unknown` where the answer had none, as those of proxies. */
  readonly code: ProblemCode | 'unknown'
  readonly detail: string | undefined
  /** The log of the service has it too. */
  readonly requestId: string | undefined
  /** The parts of the request that are wrong. */
  readonly errors: NonNullable<Problem['errors']>
  /** How long to wait before the next attempt, in milliseconds, where the service says it. */
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

/** There was no whole answer: the connection failed, or it took too long. The service may have done what was asked. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
}
