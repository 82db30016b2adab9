import type { ReliableQueueConfig, StoredQueueConfig } from '../../index.js'
import { inLargestUnit } from '../../duration.js'
import { printable, quoted } from '../../text.js'
import { confirm } from '../confirm.js'
import { UsageError } from '../failure.js'
import { oneOf, parseDelay, parseWhole, textOption, type RawOptions } from '../input.js'
import { jsonText, table } from '../output.js'
import { withSession } from '../session.js'
import { namesOfReliable, parseShards, partsOf, wholeQueue } from '../whole-queue.js'

type Kind = 'count' | 'time' | 'rate' | 'flag'

interface Setting {
  readonly name: Exclude<keyof ReliableQueueConfig, 'changes'>
  readonly kind: Kind
  readonly help: string
}

/** The settings that the command sets: all except `changes`, whose change forgets the kept ones. */
const SETTINGS: readonly Setting[] = [
  { name: 'visibilityTimeout', kind: 'time', help: 'How long a consumer has a message (30s)' },
  { name: 'deliveryLimit', kind: 'count', help: 'The most deliveries of a message (10)' },
  { name: 'timeToLive', kind: 'time', help: 'How long a visible message waits before it is removed (for ever)' },
  { name: 'delay', kind: 'time', help: 'The delay of messages that are added without one (0)' },
  { name: 'maxSize', kind: 'count', help: 'The most messages in the queue (no limit)' },
  { name: 'maxMessageBytes', kind: 'count', help: 'The largest payload (that of the client)' },
  { name: 'deadLetters', kind: 'flag', help: 'true or false: whether rejected messages become dead letters (true)' },
  { name: 'keepDeadLetters', kind: 'count', help: 'The most dead letters (all)' },
  { name: 'keepDeadLettersFor', kind: 'time', help: 'How long dead letters are kept (for ever)' },
  { name: 'keepCompleted', kind: 'count', help: 'The most completed messages that are kept (none)' },
  { name: 'keepCompletedFor', kind: 'time', help: 'How long completed messages are kept (only bounded by number)' },
  { name: 'concurrency', kind: 'count', help: 'The most messages that consumers have at once (no limit)' },
  { name: 'rateLimit', kind: 'rate', help: 'The most deliveries in a time, such as 100/1m (no limit)' },
  { name: 'groupConcurrency', kind: 'count', help: 'As --concurrency, for each group (no limit)' },
  { name: 'groupRateLimit', kind: 'rate', help: 'As --rate-limit, for each group (no limit)' },
]
/** The settings that bound what is kept: a lower bound removes some of it. */
const BOUNDS = ['keepDeadLetters', 'keepDeadLettersFor', 'keepCompleted', 'keepCompletedFor'] as const
const MOST_COUNT = 999_999_999
const PLACEHOLDERS: Readonly<Record<Kind, string>> = { count: '<n>', time: '<time>', rate: '<n/time>', flag: '<flag>' }

/** The options of the command: their definitions and texts. */
export const CONFIG_OPTIONS: readonly (readonly [option: string, help: string])[] = SETTINGS.map(
  ({ name, kind, help }) => [`${flagOf(name)} ${PLACEHOLDERS[kind]}`, help],
)

type Changes = { -readonly [K in Setting['name']]?: ReliableQueueConfig[K] }

/** Shows the configuration of a queue, after it has changed the settings that are given. */
export async function config(queue: string, options: RawOptions): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  const changes = parseChanges(options)
  const isChange = Object.keys(changes).length > 0
  const shards = parseShards(options)
  await withSession(options, async (session) => {
    let parts
    if (isChange || shards !== null) {
      const target = await wholeQueue(session, queue, shards)
      parts = partsOf(target)
      if (isChange) {
        const before = await Promise.all(parts.map((part) => part.getConfig()))
        const lowered = BOUNDS.filter((name) => before.some((stored) => isLowered(name, stored, changes[name])))
        if (lowered.length > 0) {
          const question = `Set ${lowered.join(', ')} of ${quoted(queue)}, so that it can remove messages that it keeps now?`
          await confirm(question, options['yes'] === true)
        }
        await target.setConfig(changes)
      }
    } else parts = (await namesOfReliable(session, queue)).map((name) => session.reliable(name))
    const all = await Promise.all(parts.map(async (part) => ({ queue: part.name, config: await part.getConfig() })))
    const [first] = all
    const isSharded = all.length > 1 || first?.queue !== queue
    session.print(
      { queue, changed: Object.keys(changes), config: first?.config ?? {}, shards: isSharded ? all : null },
      () => [
        ...(isChange ? [`${printable(queue)}: ${Object.keys(changes).join(', ')} set for all processes`] : []),
        ...table([['SETTING', 'VALUE'], ...rowsOf(all.map((one) => one.config))]),
      ],
    )
  })
}

function parseChanges(options: RawOptions): Changes {
  const changes: Record<string, unknown> = {}
  for (const { name, kind } of SETTINGS) {
    const text = textOption(options, name)
    if (text !== undefined) changes[name] = text === 'default' ? null : parsed(flagOf(name), kind, text)
  }
  return changes
}

function parsed(flag: string, kind: Kind, text: string): unknown {
  if (kind === 'count') return parseWhole(flag, text, MOST_COUNT)
  if (kind === 'time') return parseDelay(text, flag)
  if (kind === 'flag') return oneOf(flag, text, ['true', 'false']) === 'true'
  const [, max, per] = /^(\d+)\/(.+)$/.exec(text) ?? []
  if (max === undefined || per === undefined)
    throw new UsageError(`${flag}: expected a number and a time, such as 100/1m, or default, got ${quoted(text)}`)
  return { max: parseWhole(flag, max, MOST_COUNT), perMs: parseDelay(per, flag) }
}

/** Whether a setting bounds what is kept more closely than before; without `keepCompleted` the queue keeps none. */
function isLowered(name: (typeof BOUNDS)[number], stored: StoredQueueConfig, after: unknown): boolean {
  const before = stored[name]
  if (after === undefined) return false
  if (name === 'keepCompletedFor' && typeof stored.keepCompleted !== 'number') return false // there are none
  const isNone = name === 'keepCompleted'
  const bound = (value: unknown): number => (typeof value === 'number' ? value : isNone ? 0 : Infinity)
  return bound(after) < bound(before)
}

function rowsOf(configs: readonly StoredQueueConfig[]): string[][] {
  const names = [...SETTINGS, { name: 'changes', kind: 'json' }] as const
  return names.map(({ name, kind }) => {
    const values = configs.map((stored) => cellOf(kind, stored[name]))
    const others = new Set(values)
    const cell = others.size <= 1 ? (values[0] ?? '') : `${[...others].join(', ')} (the shards differ)`
    return [name, printable(cell)]
  })
}

function cellOf(kind: Kind | 'json', value: unknown): string {
  if (value === undefined || value === null) return 'default'
  if (kind === 'time') return inLargestUnit(value as number)
  if (kind === 'rate') {
    const { max, perMs } = value as { max: number; perMs: number }
    return `${max} in ${inLargestUnit(perMs)}`
  }
  return jsonText(value, 0)
}

/** `--keep-completed` for `keepCompleted`. */
function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}
