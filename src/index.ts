export { createClient } from './client.js'
export type { BlockingQueueOptions, ClientOptions, PingOptions, QueueOptions, RedelayedClient } from './client.js'
export { codecs } from './codecs/index.js'
export type { Codec } from './codecs/index.js'
export { dueOf } from './codecs/ticket.js'
export type { Ticket } from './codecs/ticket.js'
export type { AofDurability, Durability, ReplicaDurability } from './redis/durable/durability.js'
export type { ConnectOptions, HostAndPort, IoredisClient } from './redis/options.js'
export {
  AddManyError,
  AuthError,
  BatchClosedError,
  ChangesBehindError,
  ChangesLostError,
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
  NotCompletedError,
  OfferAllError,
  OperationDisabledError,
  PayloadTooLargeError,
  QueueFullError,
  ReadOnlyError,
  RedelayedError,
  ShutdownError,
  UnsupportedOperationError,
  UnsupportedServerError,
  WrongTypeError,
} from './errors.js'
export type { Acknowledgement, AddFailure, ErrorDetails, OfferFailure } from './errors.js'
export type {
  EventName,
  SettledEvent,
  SettledOutcome,
  Listener,
  MessagesEvent,
  ProgressEvent,
  QuarantinedEvent,
  ReconnectingEvent,
  RedelayedEvents,
  SubscribedEvent,
  TransferredEvent,
  WarningEvent,
} from './events.js'
export type { Instrumentation, TracedMessage } from './instrumentation.js'
export type { NameMapper } from './keys.js'
export type { WarningCode } from './process-warnings.js'
export type { Tuning } from './options.js'
export type { BlockingDeque } from './queues/blocking-deque.js'
export type { BlockingQueue } from './queues/blocking-queue.js'
export type { DelayedQueueOptions, OfferItem, OfferOptions } from './queues/delayed-options.js'
export type { DelayedQueue } from './queues/delayed-queue.js'
export type { WheelQueue } from './queues/wheel-queue.js'
export type { DelayedQueueStats, ScheduledMessage } from './queues/inspection.js'
export type { Deque } from './queues/deque.js'
export type { DequeMove } from './queues/deque-ends.js'
export type { KeyedObject } from './queues/keyed-object.js'
export type { ListQueue, QueueMove } from './queues/list-queue.js'
export type { Queue } from './queues/queue.js'
export type { QuarantinedEntry } from './queues/quarantine.js'
export type { ShardedDelayedQueue } from './sharding/sharded-delayed-queue.js'
export type { ShardedReliableQueue } from './sharding/sharded-reliable-queue.js'
export type { ShardedReliableQueueOptions } from './sharding/sharded-reliable-options.js'
export type { ShardedChangeBatch, ShardedChangePosition, ShardedChangesOptions } from './sharding/sharded-changes.js'
export type { ShardedDelayedQueueOptions, ShardedOfferItem, ShardedOfferOptions } from './sharding/sharded-options.js'
export type { FurtherQueues, NamedElement, TakeManyOptions, TakeOptions } from './queues/waits.js'
export type { AddItem, AddManyOptions, AddOptions, ExistingPolicy } from './reliable/add-options.js'
export type { Added } from './reliable/adder.js'
export type {
  ChangeBatch,
  ChangePage,
  ChangeGroup,
  ChangeKind,
  ChangePosition,
  ChangeStatus,
  MessageChange,
} from './reliable/change-stream/change.js'
export type { ChangesConfig, StoredChangesConfig } from './reliable/change-stream/change-config.js'
export type { ChangesOptions, ReadChangesOptions } from './reliable/change-stream/change-stream.js'
export type { CompletedMessage, WaitOptions } from './reliable/completed.js'
export type { RateLimitConfig, ReliableQueueConfig, StoredQueueConfig, StoredRateLimit } from './reliable/config.js'
export type { ListMessages, MessageInfo, MessageState, ReliableQueueCounts } from './reliable/contents.js'
export type { GroupCounts, QueueTotals } from './reliable/groups.js'
export type { FailedAttempt } from './reliable/failures.js'
export type { AcknowledgeOptions, NegativeOptions, ReliableMessage } from './reliable/message.js'
export type { BatchCounts, CloseBatchOptions, LastBatchMessage, MessageBatch } from './reliable/message-batch.js'
export type { MessageProgress, ProgressOptions } from './reliable/progress.js'
export type {
  RawMessage,
  RestoreItem,
  RestoreOptions,
  RestoreOutcome,
  StoredRawMessage,
} from './reliable/raw-messages.js'
export type { Headers } from './reliable/record.js'
export type { MoveMessages } from './reliable/changes.js'
export type { ScheduleInfo } from './reliable/repeats/schedules.js'
export type { MissedTicks, ScheduleOptions } from './reliable/repeats/repeat-definition.js'
export type { RepeatTimes } from './reliable/repeats/ticks.js'
export type { PollManyOptions, PollOptions } from './reliable/claims.js'
export type { ReliableQueue } from './reliable/reliable-queue.js'
export type { ScheduleArguments, TaskArguments, TaskName, TaskPayload, TaskPayloads, Tasks } from './reliable/tasks.js'
export type { Duration } from './duration.js'
export type { TimeUnit } from './timing/units.js'
export type { Outcome } from './workers/assignment.js'
export type { Handler, HandlerContext, Handlers, HandlersOf, TaskHandler } from './workers/handlers.js'
export {
  HandlerTimeoutError,
  RejectMessage,
  UnknownTaskError,
  VisibilityLostError,
  retryIn,
} from './workers/outcomes.js'
export type { RetryLater } from './workers/outcomes.js'
export type { RetryPolicy } from './workers/retry-delays.js'
export type { PayloadOf, WorkerQueue, WorkerQueues, WorkerSource } from './workers/sources.js'
export type { Worker, WorkerCounts, WorkerEvents } from './workers/worker.js'
export type { WorkerHealth, WorkerHealthOptions } from './workers/worker-health.js'
export type { WorkerOptions } from './workers/worker-options.js'
