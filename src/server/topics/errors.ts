import { RedelayedError, type ErrorDetails } from 'redelayed'

/** Why the service refuses what it was asked; of what was refused nothing was done. */
export type TopicErrorCode =
  /** Not a name that a topic can have. */
  | 'ERR_TOPIC_NAME'
  | 'ERR_TOPIC_NOT_FOUND'
  /** It has messages. */
  | 'ERR_TOPIC_NOT_EMPTY'
  /** The number of shards cannot be changed. */
  | 'ERR_TOPIC_SHARDS'
  /** Others make and delete it all the time. */
  | 'ERR_TOPIC_BUSY'
  /** There are as many topics as there can be. */
  | 'ERR_TOO_MANY_TOPICS'
  | 'ERR_MESSAGE_NOT_FOUND'
  /** A consumer has the message. */
  | 'ERR_MESSAGE_IN_FLIGHT'
  /** It was pushed as bytes, and cannot get a body of JSON. */
  | 'ERR_MESSAGE_HAS_BYTES'
  /** A part of the message is not what it should be. */
  | 'ERR_MESSAGE_INVALID'
  /** The body is larger than the service takes. */
  | 'ERR_MESSAGE_TOO_LARGE'
  /** The key was used before with another message. */
  | 'ERR_IDEMPOTENCY_MISMATCH'
  /** As many keys are known as there may be. */
  | 'ERR_TOO_MANY_KEYS'
  /** The text is no lease. */
  | 'ERR_LEASE'
  /** The topic keeps no events. */
  | 'ERR_NO_EVENTS'
  /** The listing cannot be continued there. */
  | 'ERR_CURSOR'
  | 'ERR_ENDPOINT_NOT_FOUND'
  /** The topic has none, so that no webhooks are sent for its messages. */
  | 'ERR_NO_ENDPOINT'
  /** Topics have it. */
  | 'ERR_ENDPOINT_IN_USE'
  | 'ERR_TOO_MANY_ENDPOINTS'
  /** This instance has no worker number to draw ids with. */
  | 'ERR_IDS_UNAVAILABLE'
  /** What the journal cannot keep. */
  | 'ERR_NOT_WITH_JOURNAL'

export class TopicError extends RedelayedError {
  declare readonly code: TopicErrorCode

  constructor(code: TopicErrorCode, message: string, details: ErrorDetails = {}) {
    super(code, message, details)
  }
}
