import { RedelayedError, type ErrorDetails } from 'redelayed'

/** Why the service refused a request; a refused request changed nothing. */
export type TopicErrorCode =
  /** Not a name that a topic can have. */
  | 'ERR_TOPIC_NAME'
  | 'ERR_TOPIC_NOT_FOUND'
  /** It has messages. */
  | 'ERR_TOPIC_NOT_EMPTY'
  /** The number of shards cannot be changed. */
  | 'ERR_TOPIC_SHARDS'
  /** Other requests kept the topic busy. */
  | 'ERR_TOPIC_BUSY'
  /** The service has its most topics. */
  | 'ERR_TOO_MANY_TOPICS'
  | 'ERR_MESSAGE_NOT_FOUND'
  /** A consumer has the message. */
  | 'ERR_MESSAGE_IN_FLIGHT'
  /** The message was pushed as bytes and cannot get a JSON body. */
  | 'ERR_MESSAGE_HAS_BYTES'
  /** A part of the message is invalid. */
  | 'ERR_MESSAGE_INVALID'
  /** The body is larger than the service takes. */
  | 'ERR_MESSAGE_TOO_LARGE'
  /** The key was used with another message before. */
  | 'ERR_IDEMPOTENCY_MISMATCH'
  /** Another program removes the key each time before it is read. */
  | 'ERR_IDEMPOTENCY_KEY_REMOVED'
  /** The service knows its most idempotency keys. */
  | 'ERR_TOO_MANY_KEYS'
  /** The text is not a lease. */
  | 'ERR_LEASE'
  /** The topic keeps no events. */
  | 'ERR_NO_EVENTS'
  /** The listing cannot be continued there. */
  | 'ERR_CURSOR'
  | 'ERR_ENDPOINT_NOT_FOUND'
  /** The topic has no endpoint, so its messages send no webhooks. */
  | 'ERR_NO_ENDPOINT'
  /** Topics use the endpoint. */
  | 'ERR_ENDPOINT_IN_USE'
  | 'ERR_TOO_MANY_ENDPOINTS'
  /** This instance has no worker number to draw ids with. */
  | 'ERR_IDS_UNAVAILABLE'
  /** The journal cannot do what was asked. */
  | 'ERR_NOT_WITH_JOURNAL'

export class TopicError extends RedelayedError {
  declare readonly code: TopicErrorCode

  constructor(code: TopicErrorCode, message: string, details: ErrorDetails = {}) {
    super(code, message, details)
  }
}

export function topicNotFound(name: string): TopicError {
  return new TopicError('ERR_TOPIC_NOT_FOUND', `there is no topic ${JSON.stringify(name)}`)
}
