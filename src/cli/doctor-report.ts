import { printable } from '../text.js'
import { reliableQueues, type Examination } from '../doctor/doctor.js'
import { counted, meaningOf, type Finding, type Level } from '../doctor/finding.js'
import type { QueueState } from '../doctor/inspect-queue.js'
import type { ServerState } from '../doctor/inspect-server.js'
import type { Repaired, Step } from '../doctor/repair.js'
import { failureLine, NegativeResult, notShown } from './failure.js'
import { jsonText, table } from './output.js'
import { inLargestUnit } from '../duration.js'
import type { Progress } from './progress.js'

/** Prints step by step for people. With `--json` it prints one document at the end, and the plan of `--fix` on stderr before. */
export class Report {
  readonly #json: boolean
  readonly #progress: Progress
  #document: Record<string, unknown> = {}

  constructor(json: boolean, progress: Progress) {
    this.#json = json
    this.#progress = progress
  }

  examined({ isCluster, servers, queues, reliable, findings, left }: Examination): void {
    this.#progress.clear()
    if (left > 0) console.error(failureLine(notShown(left)))
    const server = { cluster: isCluster, servers: servers.map(serverDocument) }
    this.#document = {
      server,
      queues: queues.map(queueDocument),
      reliableQueues: Array.from(reliableQueues(reliable), ([queue, repeats]) => ({ queue, repeats })),
      findings: findings.map(findingDocument),
      notExamined: left,
      fixed: [],
    }
    if (this.#json) return
    this.#print(servers.map(serverLine))
    if (queues.length > 0) this.#print(table([HEADINGS, ...queues.map(row)]))
    else this.#print(['No delayed queue was found.'])
    if (reliable.length > 0)
      this.#print([
        `Reliable queues: ${[...reliableQueues(reliable).keys()].map((name) => printable(name)).join(', ')}`,
      ])
    this.#print(findings.length === 0 ? ['No findings'] : listing(findings))
  }

  planned(plan: readonly Step[]): void {
    const lines = plan.map(({ queue, code, does }) => `  ${printable(queue)}: ${code}: ${does}`)
    const text = plan.length === 0 ? ['--fix finds nothing that it can repair'] : ['--fix does this now:', ...lines]
    if (this.#json) {
      this.#progress.clear()
      console.error(text.join('\n'))
    } else this.#print(['', ...text])
  }

  repaired(fixed: readonly Repaired[], left: readonly Finding[]): void {
    this.#document = { ...this.#document, fixed, left: left.map(findingDocument) }
    if (this.#json || fixed.length === 0) return
    this.#print([
      'Done:',
      ...fixed.map(({ queue, code, count, error }) => {
        const result = error === undefined ? `${counted(count, 'entry', 'entries')} repaired` : `failed: ${error}`
        return `  ${printable(queue)}: ${code}: ${printable(result)}`
      }),
    ])
    this.#print(left.length === 0 ? ['No findings are left'] : ['', 'Left:', ...listing(left)])
  }

  /** Errors and warnings make the result negative. */
  end(findings: readonly Finding[]): void {
    if (this.#json) this.#print([jsonText(this.#document)])
    const count = (wanted: Level) => findings.filter(({ level }) => level === wanted).length
    const [errors, warnings] = [count('error'), count('warning')]
    if (errors + warnings === 0) return
    throw new NegativeResult(`${counted(errors, 'error')} and ${counted(warnings, 'warning')} were found`)
  }

  #print(lines: readonly string[]): void {
    this.#progress.clear()
    console.log(lines.join('\n'))
  }
}

const HEADINGS = ['QUEUE', 'PENDING', 'OVERDUE', 'DELIVERED', 'QUARANTINED', 'SUBSCRIBERS']
const UNKNOWN = '?'

function row({ name, contents, subscribers }: QueueState): string[] {
  const listeners = String(subscribers ?? UNKNOWN)
  if (contents === undefined) return [printable(name), UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, listeners]
  const { pending, overdue, mostOverdueMs, delivered, quarantined } = contents
  const late = overdue === 0 ? '0' : `${overdue} (by up to ${inLargestUnit(mostOverdueMs)})`
  return [printable(name), String(pending), late, String(delivered), String(quarantined), listeners]
}

function serverLine({ address, info }: ServerState): string {
  const version = info['valkey_version'] ?? info['redis_version'] ?? 'of an unknown version'
  const kind = info['valkey_version'] === undefined ? 'Redis' : 'Valkey'
  return printable(`${kind} ${version} at ${address}${info['role'] === undefined ? '' : `, ${info['role']}`}`)
}

const LEVELS: readonly Level[] = ['error', 'warning', 'info']

/** The worst first. Findings of one kind are grouped, so that their meaning is printed once. */
function listing(findings: readonly Finding[]): string[] {
  const groups = new Map<string, Finding[]>()
  for (const finding of [...findings].sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level))) {
    const heading = `${finding.level}  ${finding.code}`
    groups.set(heading, [...(groups.get(heading) ?? []), finding])
  }
  return [...groups].flatMap(([heading, group]) => {
    const code = group[0]?.code ?? 'not-examined'
    const { means, repair, fix } = meaningOf(code)
    const isFixable = group.some(({ fixable }) => fixable)
    return [
      '',
      heading,
      ...group.map(({ queue, server, found }) => `  ${printable([queue ?? server, found].filter(Boolean).join(': '))}`),
      `  ${means}`,
      `  ${repair}${isFixable && fix !== undefined ? ` (--fix ${fix})` : ''}`,
    ]
  })
}

function findingDocument(finding: Finding) {
  const { means, repair } = meaningOf(finding.code)
  return { ...finding, means, repair }
}

function serverDocument({ address, info, config, clock, acl }: ServerState) {
  return {
    address,
    version: info['valkey_version'] ?? info['redis_version'] ?? null,
    role: info['role'] ?? null,
    maxmemoryPolicy: info['maxmemory_policy'] ?? config['maxmemory-policy'] ?? null,
    appendonly: info['aof_enabled'] === undefined ? null : info['aof_enabled'] === '1',
    appendfsync: config['appendfsync'] ?? null,
    save: config['save'] ?? null,
    replicas: info['connected_slaves'] === undefined ? null : Number(info['connected_slaves']),
    clockAheadMs: clock === undefined ? null : Math.round(clock.aheadMs),
    user: acl?.user ?? null,
  }
}

function queueDocument({ name, contents, subscribers }: QueueState) {
  if (contents === undefined) return { queue: name, subscribers: subscribers ?? null }
  const { missing, suspected, ...counts } = contents
  return { queue: name, subscribers: subscribers ?? null, ...counts, missing: missing.length, suspected }
}
