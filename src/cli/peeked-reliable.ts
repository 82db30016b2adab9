import type { Codec } from '../index.js'
import type { Access } from '../doctor/access.js'
import type { Family } from '../doctor/families.js'
import {
  measureLimits,
  measureReliable,
  sumOfLimits,
  sumOfReliable,
  type LimitFigures,
  type ReliableFigures,
} from '../doctor/measure-reliable.js'
import { byNumber, firstDeadLetters, nextMessages, type QueuedMessage } from '../doctor/next-messages.js'
import { inLargestUnit } from '../duration.js'
import { printable } from '../text.js'
import { isoTime, moment, preview, table } from './output.js'
import { heading } from './peeked-delayed.js'
import { groupLine, taskLine } from './reliable.js'
import { messageDocument, progressCell, shown, undecodableOf, valueCell, type ShownMessage } from './shown-message.js'
import type { Undecodable } from './undecodable.js'

const MOST_ID = 60
const MOST_REASON = 100

/** The next messages of a reliable queue, of all its shards together. */
interface PeekedReliable {
  readonly figures: Omit<ReliableFigures, 'changes'>
  /** The limits; `null` if they cannot be read. */
  readonly limits: LimitFigures | null
  readonly isSharded: boolean
  readonly visible: readonly ShownMessage[]
  readonly delayed: readonly ShownMessage[]
  readonly inFlight: readonly ShownMessage[]
  readonly deadLetters: readonly ShownMessage[]
  readonly undecodable: readonly Undecodable[]
}

export async function peekReliable(
  { sender }: Access,
  families: readonly Family[],
  limit: number,
  codec: Codec,
): Promise<PeekedReliable> {
  const isSharded = families.some(({ shards }) => shards !== null)
  const names = families.flatMap(({ queue, shards }) => shards ?? [queue])
  const all = await Promise.all(
    names.map(async (queue) => ({
      figures: await measureReliable(sender, queue),
      limits: await measureLimits(sender, queue),
      messages: (await nextMessages(sender, queue, limit)).map((message) => shown(queue, message, codec)),
      dead: (await firstDeadLetters(sender, queue, limit)).map((message) => shown(queue, message, codec)),
    })),
  )
  const messages = all.flatMap((one) => one.messages)
  const first = (state: QueuedMessage['state'], compare: (a: ShownMessage, b: ShownMessage) => number) =>
    messages
      .filter((message) => message.state === state)
      .sort(compare)
      .slice(0, limit)
  const parts = {
    visible: first('visible', (a, b) => b.priority - a.priority || byTime(a, b)),
    delayed: first('delayed', byTime),
    inFlight: first('inFlight', byTime),
    deadLetters: all
      .flatMap(({ dead }) => dead)
      .sort(byTime)
      .slice(0, limit),
  }
  const shownOnes = Object.values(parts).flat()
  const undecodable = undecodableOf(shownOnes.flatMap(({ payload, progress }) => [payload, progress?.value]))
  const figures = sumOfReliable(all.map((one) => one.figures))
  return { figures, limits: sumOfLimits(all.map((one) => one.limits)), isSharded, ...parts, undecodable }
}

export function reliablePeekDocument({
  figures,
  limits,
  visible,
  delayed,
  inFlight,
  deadLetters,
}: PeekedReliable): object {
  return {
    ...figures,
    ...(limits ?? { limits: null, heldBack: null, batches: null }),
    nextAtTime: isoTime(figures.nextAt),
    messages: [...visible, ...delayed, ...inFlight].map(messageDocument),
    deadLetters: deadLetters.map(messageDocument),
  }
}

/** The lines about limits, pauses and batches; empty without any. */
function limitLines({ limits, heldBack, batches }: LimitFigures): string[] {
  const rate = ({ max, perMs }: { max: number; perMs: number }): string => `${max} in ${inLargestUnit(perMs)}`
  const of = (most: number | null, rated: { max: number; perMs: number } | null): string[] => [
    ...(most === null ? [] : [`${most} at once`]),
    ...(rated === null ? [] : [rate(rated)]),
  ]
  const queue = of(limits.concurrency, limits.rateLimit)
  const group = of(limits.groupConcurrency, limits.groupRateLimit)
  const said = [
    ...(queue.length === 0 ? [] : [queue.join(', ')]),
    ...(group.length === 0 ? [] : [`of each group ${group.join(', ')}`]),
  ]
  const { byPause, byLimit } = heldBack
  return [
    ...(said.length === 0 ? [] : [`Limits: ${said.join('; ')}.`]),
    ...(byPause + byLimit === 0 ? [] : [`Held back: ${byLimit} by a limit, ${byPause} by a pause.`]),
    ...(batches.unfinished + batches.finished === 0
      ? []
      : [`Batches: ${batches.unfinished} unfinished, ${batches.finished} finished.`]),
  ]
}

export function reliableLines({ figures, limits, isSharded, ...parts }: PeekedReliable): string[] {
  const { now } = figures
  const { visible, delayed, inFlight, deadLetters } = parts
  const part = (what: string, count: number, messages: readonly ShownMessage[], order: string, time: string) => [
    heading(what, count, messages.length, order),
    ...messageTable(messages, now, isSharded, time),
  ]
  return [
    ...(figures.pollPaused ? ['Polling is disabled: no consumer gets a message.'] : []),
    ...groupLine(figures.groups, 'Groups'),
    ...taskLine(figures.tasks, 'Tasks'),
    ...(limits === null ? [] : limitLines(limits)),
    ...part('visible', figures.visible, visible, 'next delivered first', 'VISIBLE SINCE'),
    ...part('delayed', figures.delayed, delayed, 'next due first', 'VISIBLE AT'),
    ...part('in flight', figures.inFlight, inFlight, 'next back first', 'BACK AT'),
    ...part('dead letters', figures.dead, deadLetters, 'oldest first', 'DEAD SINCE'),
  ]
}

function byTime(a: ShownMessage, b: ShownMessage): number {
  return byNumber(a.visibleAt, b.visibleAt)
}

function messageTable(messages: readonly ShownMessage[], now: number, isSharded: boolean, time: string): string[] {
  if (messages.length === 0) return []
  // most consumers report none
  const hasProgress = messages.some(({ progress }) => progress !== null)
  const headings = [
    'ID',
    'PRIORITY',
    'ATTEMPTS',
    'HEADERS',
    'PAYLOAD',
    ...(hasProgress ? ['PROGRESS'] : []),
    'LAST FAILURE',
  ]
  const rows = messages.map(({ queue, id, visibleAt, priority, attempts, headers, payload, progress, failures }) => [
    `  ${moment(visibleAt, now)}`,
    ...(isSharded ? [printable(queue)] : []),
    printable(id, MOST_ID),
    String(priority),
    String(attempts),
    Object.keys(headers).length === 0 ? '-' : preview(headers),
    valueCell(payload),
    ...(hasProgress ? [progressCell(progress, now)] : []),
    printable(failures.at(-1)?.reason || '-', MOST_REASON),
  ])
  return table([[`  ${time}`, ...(isSharded ? ['SHARD'] : []), ...headings], ...rows])
}
