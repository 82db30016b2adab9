import { ShutdownError, toRedelayed } from '../../errors.js'
import type { MessagesEventName } from '../../events.js'
import type { QueueHandle } from '../../queues/queue-handle.js'
import type { ChangeKind, MessageChange } from './change.js'
import type { ChangeStream } from './change-stream.js'

/** The events that changes are; others raise none. */
const EVENTS: ReadonlyMap<ChangeKind, MessagesEventName> = new Map([
  ['added', 'added'],
  ['polled', 'polled'],
  ['acknowledged', 'acknowledged'],
  ['failed', 'failed'],
  ['dead', 'rejected'],
  ['expired', 'expired'],
  ['removed', 'removed'],
])

/** The events of a queue come from its change stream, so from all processes, until the function is called that is returned. */
export async function startAllEvents(handle: QueueHandle<unknown>, stream: ChangeStream): Promise<() => Promise<void>> {
  const { name, context } = handle
  const ending = new AbortController()
  const batches = await stream.follow({ from: 'end', signal: ending.signal })
  const { emit, end } = context.hub.fromAll(name)
  const isOver = (async () => {
    try {
      for await (const { position, changes } of batches) emit(position, eventsOf(changes))
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

/** Changes of one kind that follow each other are one event. */
function eventsOf(changes: readonly MessageChange[]): [MessagesEventName, string[]][] {
  const events: [MessagesEventName, string[]][] = []
  for (const { change, id } of changes) {
    const event = EVENTS.get(change)
    if (event === undefined) continue
    const last = events.at(-1)
    if (last?.[0] === event) last[1].push(id)
    else events.push([event, [id]])
  }
  return events
}
