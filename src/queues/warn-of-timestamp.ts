import { quoted } from '../text.js'
import { timestampUnit } from '../timing/timestamp-delay.js'
import type { QueueContext } from './context.js'

/** Warns of a delay that is most likely a timestamp. */
export function warnOfTimestamp(context: QueueContext, queue: string, delayMs: number): void {
  const unit = timestampUnit(delayMs, context.settings.localTime())
  if (unit === undefined) return
  const then = new Date(unit === 'seconds' ? delayMs * 1_000 : delayMs).toISOString()
  const message =
    `queue ${quoted(queue)}: a delay of ${Math.round(delayMs / 86_400_000)} days looks like the time ${then} in ${unit} since 1970. ` +
    'Give points in time as a Date (offerAt, or the option date)'
  context.hub.emit('warning', { code: 'REDELAYED_TIMESTAMP_DELAY', message, queue })
}
