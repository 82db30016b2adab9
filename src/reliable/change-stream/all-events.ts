import { RedelayedError, ShutdownError, toRedelayed } from '../../errors.js'
import type { MessagesEventName, QueueEvent } from '../../events.js'
import type { QueueHandle } from '../../queues/queue-handle.js'
import type { ChangeKind, MessageChange } from './change.js'
import type { ChangeStream } from './change-stream.js'

/** The events of changes; other changes raise none. */
const EVENTS: ReadonlyMap<ChangeKind, MessagesEventName> = new Map([
  ['added', 'added'],
  ['polled', 'polled'],
  ['acknowledged', 'acknowledged'],
  ['failed', 'failed'],
  ['dead', 'rejected'],
  ['expired', 'expired'],
  ['removed', 'removed'],
])

/** Emits a queue's events from its change stream, and so from all processes, until the returned function is called. */
export async function startAllEvents(handle: QueueHandle<unknown>, stream: ChangeStream): Promise<() => Promise<void>> {
  const { name, context } = handle
  const ending = new AbortController()
  const batches = await stream.follow({ from: 'end', signal: ending.signal })
  const { emit, end } = context.hub.fromAll(name)
  const isOver = (async () => {
    try {
      for await (const { position, changes } of batches)
        emit(
          position,
          eventsOf(changes, (change) => progressOf(handle, change)),
        )
    } catch (thrown) {
      if (ending.signal.aborted || thrown instanceof ShutdownError) return
      context.hub.emit('error', handle.withQueueName(toRedelayed(thrown)))
    } finally {
      end()
    }
  })()
  return async () => {
    ending.abort()
    await isOver
  }
}

/** Makes one event of consecutive changes of one kind, except for progress. */
function eventsOf(
  changes: readonly MessageChange[],
  progressIn: (change: MessageChange) => QueueEvent | undefined,
): QueueEvent[] {
  const events: QueueEvent[] = []
  let last: [name: MessagesEventName, ids: string[]] | undefined
  for (const change of changes) {
    const progress = progressIn(change)
    if (progress !== undefined) events.push(progress)
    const event = EVENTS.get(change.change)
    if (event === undefined) continue
    if (last?.[0] === event) last[1].push(change.id)
    else events.push((last = [event, [change.id]]))
  }
  return events
}

/** The event of a progress, decoded only for a listener; an unreadable progress is reported. */
function progressOf(handle: QueueHandle<unknown>, { id, progress }: MessageChange): QueueEvent | undefined {
  const { name, context } = handle
  if (progress === undefined || !context.hub.hasListener('progress', name)) return undefined
  try {
    return ['progress', { id, progress: handle.decode(Buffer.from(progress)) }]
  } catch (thrown) {
    if (!(thrown instanceof RedelayedError)) throw thrown
    context.hub.emit('error', handle.withQueueName(thrown))
    return undefined
  }
}
