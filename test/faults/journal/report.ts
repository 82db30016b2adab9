import { spawnSync } from 'node:child_process'
import { cpus } from 'node:os'
import { WRONGS, type Wrong } from './books.js'
import type { Plant } from './plants.js'
import type { Outcome, Search } from './run.js'
import { versionOf } from './sql.js'

const TITLES: Readonly<Record<Wrong, string>> = {
  lost: 'lost',
  early: 'early',
  cancelled: 'handled after cancel',
  twice: 'twice, outside of the window',
  refused: 'refused and delivered',
  changed: 'changed',
  verify: 'differences',
  other: 'other',
}
const COUNTS = ['accepted', 'journalled', 'refused', 'unknown', 'cancelled', 'delivered', 'twice'] as const

/** What a run found, as a page. */
export function report({
  command,
  commit,
  minutes,
  planned,
  outcomes,
  searches,
}: {
  command: string
  /** Of what was tested. */
  commit: string
  minutes: number
  planned: number
  outcomes: readonly Outcome[]
  searches: readonly (Search & { readonly plant: Plant })[]
}): string {
  const kinds = [...new Set(outcomes.map(({ kind }) => kind))]
  const names = [...new Set(outcomes.map(({ name }) => name))].sort()
  const failed = outcomes.filter(({ problems }) => problems.length > 0)
  const heads = ['times', ...COUNTS, ...WRONGS.map((wrong) => TITLES[wrong])]
  const row = (title: string, some: readonly Outcome[]): string =>
    `| ${[title, some.length, ...COUNTS.map((name) => sum(some, name)), ...WRONGS.map((wrong) => wrongs(some, wrong))].map(cell).join(' | ')} |`
  const lines = [
    '# Faults of the journal',
    '',
    `Made by \`${command}\` at commit ${commit} in ${minutes.toFixed(1)} minutes. Node ${process.versions.node}, ${redisVersion()}, ` +
      `${kinds.map(versionOf).join(', ')}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}.`,
    '',
    `${outcomes.length} of ${planned} faults, ${failed.length} of them with something wrong. After each one everything is handled to the end, each message is judged, and`,
    '`verify` compares SQL and Redis; [the journal](../../docs/journal.md#the-fault-bench) says how. "journalled" to "twice" are counts of messages:',
    'accepted while Redis did not answer; refused; without an answer for their producer; cancelled; handled more than once, inside of the documented window.',
    'The columns after "twice" must be 0.',
    '',
    `| fault | ${heads.join(' | ')} |`,
    `| --- | ${heads.map(() => '---:').join(' | ')} |`,
    ...names.map((name) =>
      row(
        name,
        outcomes.filter((each) => each.name === name),
      ),
    ),
    ...kinds.map((kind) =>
      row(
        `**${kind}**`,
        outcomes.filter((each) => each.kind === kind),
      ),
    ),
    row('**all**', outcomes),
  ]
  if (failed.length > 0) {
    lines.push('', '## What was wrong', '')
    for (const { kind, name, problems } of failed)
      lines.push(...problems.map(({ wrong, text }) => `- ${kind}: ${name}: ${wrong}: ${text.replaceAll('\n', ' ')}`))
  }
  if (searches.length > 0) {
    lines.push(
      '',
      '## Planted faults',
      '',
      '| planted | database | found in round | as |',
      '| --- | --- | ---: | --- |',
    )
    for (const { plant, found, rounds } of searches) {
      const how = found.map((wrong) => TITLES[wrong]).join(', ')
      lines.push(`| ${plant.what} | ${plant.on} | ${rounds} | ${how === '' ? '**not found**' : how} |`)
    }
  }
  return `${lines.join('\n')}\n`
}

function sum(outcomes: readonly Outcome[], name: (typeof COUNTS)[number]): number {
  return outcomes.reduce((all, { result }) => all + (result?.[name] ?? 0), 0)
}

function wrongs(outcomes: readonly Outcome[], wrong: Wrong): number {
  return outcomes.reduce((all, { problems }) => all + problems.filter((each) => each.wrong === wrong).length, 0)
}

function cell(value: string | number): string {
  return typeof value === 'number' ? value.toLocaleString('en') : value
}

function redisVersion(): string {
  const { stdout } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' })
  return `Redis ${/v=(\S+)/.exec(stdout)?.[1] ?? 'of an unknown version'}`
}
