/**
 * The kind of a failed command that the service sent without the library: `refused`: Redis refused it; `unavailable`: Redis did not answer.
 */
export type RedisFailure = 'refused' | 'unavailable'

const UNAVAILABLE = new Set(['AbortError', 'InterruptError', 'MaxRetriesPerRequestError', 'ClusterAllFailedError'])
/** The messages of ioredis errors without a name of their own, and Node's error codes for connections. */
const TEXTS =
  /^(Command timed out|Connection is closed|Socket timeout|Failed to refresh slots cache|Cluster isn't ready)/
const CODES = /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)/

/** `undefined` for any other error. */
export function redisFailureOf(thrown: unknown): RedisFailure | undefined {
  if (!(thrown instanceof Error)) return undefined
  if (thrown.name === 'ReplyError')
    return /^(LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)/.test(thrown.message) ? 'unavailable' : 'refused'
  const { code } = thrown as { code?: unknown }
  const isKnown =
    UNAVAILABLE.has(thrown.name) || TEXTS.test(thrown.message) || (typeof code === 'string' && CODES.test(code))
  return isKnown ? 'unavailable' : undefined
}
