import type { AddOptions } from './add-options.js'
import type { ScheduleOptions } from './repeats/repeat-definition.js'

declare const tasks: unique symbol

/**
 * The payloads of a queue whose tasks have types: one type of payload for each name. `getReliableQueue<Tasks<{ ... }>>` checks the names
 * and payloads of `addTask`, of `upsertSchedule`, and of the handlers of `createWorker`. Without `Tasks` an object type is the type of all
 * payloads. `Tasks` does not exist at run time.
 */
export type Tasks<M extends object> = M[keyof M] & { readonly [tasks]?: M }

/** The payload type of each task: from `Tasks`, or else the queue's payload for every name. */
export type TaskPayloads<T> = typeof tasks extends keyof T ? NonNullable<T[typeof tasks]> : Record<string, T>

/** The names of the tasks of some payloads; `string` if any may be used. */
export type TaskName<T> = T extends unknown ? keyof TaskPayloads<T> & string : never

/** The payload of a task. */
export type TaskPayload<T, N extends string> = T extends unknown
  ? N extends keyof TaskPayloads<T>
    ? TaskPayloads<T>[N]
    : never
  : never

/** The arguments of `addTask`: with `Tasks`, one of its names and the payload of that task. */
export type TaskArguments<T> = {
  [N in TaskName<T>]: [task: N, payload: TaskPayload<T, N>, options?: AddOptions]
}[TaskName<T>]

/** The arguments of `upsertSchedule` after the name: with `Tasks`, the payload of the task that the options name. */
export type ScheduleArguments<T> =
  string extends TaskName<T>
    ? [payload: T, options: ScheduleOptions]
    : {
        [N in TaskName<T>]: [payload: TaskPayload<T, N>, options: ScheduleOptions & { readonly task: N }]
      }[TaskName<T>]
