export { DelayClient } from './client.js'
export type { Leased, LeaseAnswer, NegativeOptions } from './client.js'
export { NoAnswerError, ProblemError } from './errors.js'
export type { CallOptions, ClientOptions } from './requests.js'
export type { ServiceEvent, WatchOptions } from './events.js'
export type { DeadLetter, DeadLetterFilter, DeadLetters } from './dead-letters.js'
export type { Restore, Restores } from './restores.js'
export type { Endpoint, EndpointMade, Endpoints, LoggedDelivery, Secret } from './endpoints.js'
export type {
  MessageChange,
  PurgeWhich,
  Push,
  Pushed,
  Received,
  ReceiveOptions,
  RedriveWhich,
  Shown,
  TopicClient,
  TopicInfo,
  TopicSettings,
} from './topic-client.js'
