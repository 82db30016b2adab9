import { AuthError, ConnectionError, type RedelayedError } from '../../errors.js'
import { reasonIn } from '../replies/server-errors.js'

/** The beginning of ioredis's errors about sentinels. */
const OF_SENTINEL = 'failed to connect to sentinel'
const SENTINEL = 'look at sentinels, and at sentinelUsername and sentinelPassword'

/** The advice by the code of the socket's or of the system's error. */
const ADVICE = new Map([
  ['ECONNREFUSED', 'no server listens there: does Redis run, and are host and port right (url)?'],
  ['ENOTFOUND', 'no such host: look at the url, or at host'],
  ['EAI_AGAIN', 'the name of the host could not be resolved: look at the url, or at host'],
  ['ETIMEDOUT', 'no answer from there: look at host and port (url), and at firewalls'],
  ['EHOSTUNREACH', 'no way leads there: look at the host (url), and at the network'],
  ['ENETUNREACH', 'no way leads there: look at the host (url), and at the network'],
  ['ENOENT', 'no such socket: look at the path'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'this port does not speak TLS: use redis:// in the url, or leave tls out'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'the certificate is for another name: look at the url, or at tls.servername'],
  ['CERT_HAS_EXPIRED', "the server's certificate has expired"],
])

/** OpenSSL's names and texts for a certificate that no known authority has signed; the errors of sentinels have only the text. */
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/
const UNTRUSTED_TEXT = /self[- ]signed certificate|unable to (get|verify) .*certificate/
const TRUST = "give your authority's certificate as tls.ca, or its file to Node as NODE_EXTRA_CA_CERTS"

/** The only error that ioredis reports about an unreachable node of a cluster. */
const CLOSED = 'Connection is closed.'
const REACHABLE = 'does Redis run there, and is TLS on (rediss:// in the url, or tls) exactly where the server has it?'

/** The errors of a TLS port, which ends a connection at the first byte that is not TLS. */
const ENDED = /ECONNRESET|EPIPE/
const WANTS_TLS = 'the server ended the connection: if this port speaks TLS, use rediss:// in the url, or tls'

/** Adds the address and advice to the error of an attempt to connect. */
export function advised(error: RedelayedError, address: string, usesTls: boolean): RedelayedError {
  const { cause } = error
  if (error instanceof AuthError) return new AuthError(`${address}: ${error.message}`, { cause })
  if (!(error instanceof ConnectionError) || !(cause instanceof Error)) return error
  const advice = adviceFor(cause, usesTls)
  if (advice === undefined) return error
  return new ConnectionError(`${reasonIn(error.message)} (${advice})`, error.outcome, { cause })
}

function adviceFor(cause: Error, usesTls: boolean): string | undefined {
  const { code = '' } = cause as NodeJS.ErrnoException
  if (UNTRUSTED.test(code) || UNTRUSTED_TEXT.test(cause.message)) return TRUST
  if (cause.message.startsWith(OF_SENTINEL)) return SENTINEL
  if (cause.message === CLOSED) return REACHABLE
  if (!usesTls && ENDED.test(code)) return WANTS_TLS
  return ADVICE.get(code)
}
