import { InvalidArgumentError } from '../errors.js'
import type { Instrumentation } from '../instrumentation.js'
import type { ReliableMessage } from '../reliable/message.js'
import { TASK_HEADER } from '../reliable/record.js'
import type { TaskName, TaskPayload } from '../reliable/tasks.js'
import { UnknownTaskError } from './outcomes.js'

/** The second argument of a handler. Wrap it as a copy, `{ ...context }`: through a Proxy, or as a prototype, its `signal` throws a `TypeError`. */
export interface HandlerContext<T = unknown> {
  /** The name of the queue that the message came from. */
  readonly queue: string
  readonly message: ReliableMessage<T>
  /** Aborted when the message is no longer this worker's, the handler took too long, or the worker's `shutdownTimeout` is over. */
  readonly signal: AbortSignal
}

/** Handles one payload. Its result is ignored, except for `retryIn` and with `keepResults`. */
export type Handler<T = unknown> = (payload: T, context: HandlerContext<T>) => unknown

/** The handler of one task: it may name the type of that task's payload alone. */
export interface TaskHandler<T> {
  // a method, because only methods may narrow their parameters
  handle(payload: T, context: HandlerContext<T>): unknown
}

/** One handler per task, by name. */
export type Handlers<T = unknown> = Readonly<Record<string, TaskHandler<T>['handle']>>

/** The handlers for queues of these payloads: with `Tasks`, one for each of their tasks, because a message without a handler fails. */
export type HandlersOf<T> =
  string extends TaskName<T> ? Handlers<T> : { readonly [N in TaskName<T>]: TaskHandler<TaskPayload<T, N>>['handle'] }

/** Makes one function of the handler or handlers, and wraps it with the instrumentation. */
export function handlerOf(given: Handler | Handlers, instrumentation: Instrumentation | undefined): Handler {
  const handler = dispatcher(given)
  const onHandle = instrumentation?.onHandle?.bind(instrumentation)
  if (onHandle === undefined) return handler
  return (payload, context) => {
    const { id, headers, attempt } = context.message
    return onHandle({ queue: context.queue, id, headers, attempt }, async () => handler(payload, context))
  }
}

function dispatcher(given: Handler | Handlers): Handler {
  if (typeof given === 'function') return given
  if (typeof given !== 'object' || given === null)
    throw new InvalidArgumentError('handlers', 'a function, or an object of them', given)
  const byName = new Map(Object.entries(given))
  for (const [name, handler] of byName) {
    if (typeof handler !== 'function') throw new InvalidArgumentError(`handlers.${name}`, 'a function', handler)
  }
  return (payload, context) => {
    const task = context.message.headers[TASK_HEADER] ?? ''
    const handler = byName.get(task)
    if (handler === undefined) throw new UnknownTaskError(task, [...byName.keys()])
    return handler(payload, context)
  }
}
