export { createClient } from './client.js'
export type { BlockingQueueOptions, ClientOptions, QueueOptions, RedelayedClient } from './client.js'
export { codecs, java, JavaEnum, JavaValue } from './codec/index.js'
export type {
  ClassDeclaration,
  Codec,
  CompositeParts,
  CompressionOptions,
  FieldType,
  JacksonOptions,
  JavaClass,
  Kryo5Options,
  TypedJacksonOptions,
  ZstdImplementation,
  ZstdOptions,
} from './codec/index.js'
export { dueOf } from './codec/ticket.js'
export type { Ticket } from './codec/ticket.js'
export type { AofDurability, Durability, ReplicaDurability } from './connection/durability.js'
export type { ConnectOptions, HostAndPort, IoredisClient } from './connection/options.js'
export {
  AuthError,
  CommandError,
  ConnectionError,
  CrossSlotError,
  DecodeError,
  DurabilityError,
  EncodeError,
  InternalError,
  InvalidArgumentError,
  InvalidTicketError,
  NoSuchElementError,
  OfferAllError,
  PayloadTooLargeError,
  ReadOnlyError,
  RedelayedError,
  ShutdownError,
  UnsupportedOperationError,
  UnsupportedServerError,
  WrongTypeError,
} from './errors.js'
export type { Acknowledgement, ErrorDetails, OfferFailure } from './errors.js'
export type {
  EventName,
  Listener,
  QuarantinedEvent,
  ReconnectingEvent,
  RedelayedEvents,
  SubscribedEvent,
  TransferredEvent,
} from './events.js'
export type { NameMapper } from './keys.js'
export type { Tuning } from './options.js'
export type { BlockingDeque } from './queues/blocking-deque.js'
export type { BlockingQueue } from './queues/blocking-queue.js'
export type { DelayedQueue, DelayedQueueOptions, OfferItem, OfferOptions } from './queues/delayed-queue.js'
export type { DelayedQueueStats, ScheduledMessage } from './queues/inspection.js'
export type { Deque, DequeMove } from './queues/deque.js'
export type { KeyedObject } from './queues/keyed-object.js'
export type { ListQueue, QueueMove } from './queues/list-queue.js'
export type { Queue } from './queues/queue.js'
export type { QuarantinedEntry } from './queues/queue-object.js'
export type { ShardedDelayedQueue } from './queues/sharded/sharded-delayed-queue.js'
export type {
  ShardedDelayedQueueOptions,
  ShardedOfferItem,
  ShardedOfferOptions,
} from './queues/sharded/sharded-options.js'
export type { FurtherQueues, NamedElement, TakeManyOptions, TakeOptions } from './queues/waiting-queue.js'
export type { RedissonYamlOptions } from './redisson/redisson-yaml.js'
export type { TimeUnit } from './timing/units.js'
