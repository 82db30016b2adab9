// The page of all options. Of a doc comment the clauses "Default …" and "… to …" become cells of their own.
import ts from 'typescript'
import { cell, code, docOf, exportedDeclarations, nameOf, typeText, type Declaration, type Page } from './source.js'

interface Section {
  title: string
  text?: string
  types: readonly string[]
}

/** What calls return of an option. */
const RETURNED: readonly string[] = ['StoredQueueConfig', 'StoredRateLimit', 'StoredChangesConfig']

const SECTIONS: readonly Section[] = [
  {
    title: 'The client',
    text: '`createClient(options)` accepts the options of the first three types together, and refuses unknown ones.',
    types: ['ConnectOptions', 'Tuning', 'ClientOptions', 'HostAndPort', 'NameMapper', 'PingOptions'],
  },
  {
    title: 'Queues and delayed queues',
    text: '`getQueue`, `getDeque`, `getBlockingQueue`, `getBlockingDeque`, `getDelayedQueue`, and the calls on them.',
    types: [
      'QueueOptions',
      'BlockingQueueOptions',
      'DelayedQueueOptions',
      'OfferOptions',
      'OfferItem',
      'TakeOptions',
      'TakeManyOptions',
    ],
  },
  {
    title: 'Durability of an offer or an addition',
    types: ['Durability', 'ReplicaDurability', 'AofDurability'],
  },
  {
    title: 'Reliable queues',
    text: '`ReliableQueueConfig` is for `setConfig`. Redis stores it, and it applies to all processes; `null` removes a setting.',
    types: [
      'ReliableQueueConfig',
      'RateLimitConfig',
      'ChangesConfig',
      'AddOptions',
      'AddManyOptions',
      'AddItem',
      'ExistingPolicy',
      'PollOptions',
      'PollManyOptions',
      'AcknowledgeOptions',
      'ProgressOptions',
      'NegativeOptions',
      'WaitOptions',
      'CloseBatchOptions',
      'LastBatchMessage',
      'MoveMessages',
      'RepeatTimes',
      'ScheduleOptions',
      'MissedTicks',
      'ChangesOptions',
      'ReadChangesOptions',
      'RestoreOptions',
    ],
  },
  { title: 'Workers', types: ['WorkerOptions', 'WorkerHealthOptions', 'RetryPolicy'] },
  {
    title: 'Sharded queues',
    types: [
      'ShardedDelayedQueueOptions',
      'ShardedOfferOptions',
      'ShardedOfferItem',
      'ShardedReliableQueueOptions',
      'ShardedChangesOptions',
    ],
  },
  {
    title: 'Java',
    text: 'Options of `redelayed/java`.',
    types: [
      'Kryo5Options',
      'ClassDeclaration',
      'JacksonOptions',
      'TypedJacksonOptions',
      'JavaClass',
      'CompressionOptions',
      'ZstdOptions',
      'CompositeParts',
      'RedissonYamlOptions',
    ],
  },
  {
    title: 'Metrics and traces',
    text: 'Options of `redelayed/prometheus` and `redelayed/opentelemetry`.',
    types: ['PrometheusOptions', 'OpenTelemetryOptions', 'MeasureOptions'],
  },
  { title: 'The test kit', text: 'Options of `redelayed/testing`.', types: ['TestKitOptions'] },
]

/** What a new type of options is called, so that none is forgotten. */
const OPTIONS = /(Options|Config|Policy|Tuning|Settings)$/
/** Options whose names say that they are times. */
const TIMES = /(Interval|[tT]imeout|Ms)$/

export function optionsPage(): Page {
  const exported = exportedDeclarations()
  const problems: string[] = []
  const listed = new Set([...SECTIONS.flatMap(({ types }) => types), ...RETURNED])
  for (const name of exported.keys()) {
    if (OPTIONS.test(name) && !listed.has(name)) problems.push(`${name}: in no section of scripts/reference/options.ts`)
  }
  let count = 0
  const lines = [
    '# All options',
    '',
    '<!-- Written by scripts/reference.ts from the doc comments of src. Do not edit: run `npm run reference`. -->',
    '',
    'Every option of the package with its type, default and range. Durations are milliseconds unless the table says otherwise; a `Duration` can also be a string such as `"500ms"`, `"5s"`, `"15m"`, `"2h"` or `"7d"`. An option with',
    'an empty "default" has no effect when you leave it out. Unknown options, and values outside their range, cause an [`ERR_INVALID_ARGUMENT`](reference-errors.md), which',
    'lists the known options. The settings of the delay service are [on its page](service.md#settings), and those of the',
    'command line in `npx redelayed <command> --help`.',
    '',
  ]
  for (const { title, text, types } of SECTIONS) {
    lines.push(`## ${title}`, '')
    if (text !== undefined) lines.push(text, '')
    for (const name of types) {
      const found = exported.get(name)
      if (found === undefined) {
        problems.push(`${name}: not exported, but in a section of scripts/reference/options.ts`)
        continue
      }
      const rows = rowsOf(found.node, problems)
      count += rows.length
      lines.push(`### ${name}`, '', ...describe(found.node), ...rows)
      if (rows.length > 0) lines.push('')
    }
  }
  return { text: `${lines.join('\n').trimEnd()}\n`, count, problems }
}

/** What stands before the table: the doc comment, what it extends, or the type itself. */
function describe(node: Declaration): string[] {
  const lines: string[] = []
  const doc = docOf(node)
  if (doc !== '') lines.push(doc, '')
  if (ts.isTypeAliasDeclaration(node)) {
    lines.push('```text', node.type.getText().replaceAll(/^ {2}/gm, '').replaceAll('readonly ', ''), '```', '')
    return lines
  }
  const parents = node.heritageClauses?.flatMap(({ types }) => types.map((type) => code(oneLine(type.getText())))) ?? []
  if (parents.length > 0) lines.push(`With everything of ${parents.join(' and ')}.`, '')
  return lines
}

function rowsOf(node: Declaration, problems: string[]): string[] {
  if (!ts.isInterfaceDeclaration(node) || node.members.length === 0) return []
  return [
    '| option | type | default | range, unit | |',
    '|---|---|---|---|---|',
    ...node.members.flatMap((member) => {
      if (!ts.isPropertySignature(member) && !ts.isMethodSignature(member)) return []
      const name = member.name.getText()
      const type = ts.isMethodSignature(member) ? oneLine(member.getText()) : typeText(member.type)
      const { text, byDefault, range } = splitDoc(docOf(member), name, type)
      const isRequired = member.questionToken === undefined
      if (docOf(member) === '') problems.push(`${nameOf(node)}.${name}: no doc comment`)
      return [
        `| ${code(name)} | ${code(type)} | ${isRequired ? 'required' : cell(byDefault)} | ${cell(range)} | ${cell(text)} |`,
      ]
    }),
  ]
}

/** "How long … 1 to 9; default 5." becomes three cells. */
export function splitDoc(doc: string, name: string, type: string): { text: string; byDefault: string; range: string } {
  let [byDefault, range] = ['', '']
  const kept = doc.split(/(?<=\.)\s+(?=[A-Z0-9`'])/).flatMap((sentence) => {
    const clauses = sentence.split(/;\s+/).filter((clause) => {
      const clean = clause.replace(/\.$/, '')
      const given = /^default:?\s+(.*)$/i.exec(clean)?.[1]
      if (given !== undefined && byDefault === '') {
        byDefault = given
        return false
      }
      if (range === '' && /^(\d[\d,]*(?: millisecond)? to \d|At (least|most) \d)/.test(clean)) {
        range = clean
        return false
      }
      return true
    })
    const text = clauses.join('; ').trim()
    return text === '' ? [] : [/[.:]$/.test(text) ? text : `${text}.`]
  })
  const text = kept.map((sentence) => sentence.replace(/^[a-z]/, (letter) => letter.toUpperCase())).join(' ')
  byDefault ||= /(`[^`]+`)[^`.]{0,30}\(default\)/.exec(doc)?.[1] ?? ''
  range ||= /\d[\d,]* to \d[\d,]*(?= ?[.,;(]|$)/.exec(text)?.[0] ?? ''
  return { text, byDefault, range: withUnit(range, doc, name, type) }
}

function withUnit(range: string, doc: string, name: string, type: string): string {
  if (/byte|KiB|MiB|millisecond/.test(range)) return range.replace(/ milliseconds?/, ' ms')
  if (!/\bnumber\b|Duration/.test(type) || /[{(]/.test(type)) return range
  const unit = /millisecond/i.test(doc) || TIMES.test(name) ? 'ms' : /\bbytes\b/.test(doc) ? 'bytes' : ''
  return [range, unit].filter((part) => part !== '').join(' ')
}

const oneLine = (text: string) =>
  text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ \| undefined(?=$|[;}])/g, '')
    .replaceAll('readonly ', '')
