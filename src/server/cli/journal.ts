// `redelayed-server journal migrate | verify | restore | prune`.
import { parseArgs } from 'node:util'
import { cac } from 'cac'
import { createClient, RedelayedError, type RedelayedClient, type ReliableQueue } from 'redelayed'
import { parseJournalUrl } from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { createJournal, type Journal } from '../journal/journal.js'
import type { JournalQueue } from '../journal/journal-queue.js'

interface Flags {
  readonly journal?: string
  readonly redis?: string
  readonly expired?: boolean
  readonly dryRun?: boolean
  readonly olderThan?: string
}

const DAY_MS = 86_400_000
const program = cac('redelayed-server')
program.option('--journal <url>', 'sqlite:<path>, postgres://… or mysql://… (default: REDELAYED_JOURNAL)')
program.option('--redis <url>', 'the Redis of the queues (default: REDIS_URL)')
program.option('--queue <name>', 'a reliable queue; may be given several times')
program.option('--id <id>', 'restore: only this message; may be given several times')
program.option('--expired', 'restore: also messages that expired; they expire no more')
program.option('--dry-run', 'restore: say what would be done, and change nothing')
program.option('--older-than <days>', 'prune: what became final longer ago (default: 7)')
program.command('journal <action>', 'migrate, verify, restore or prune').action(run)
program.command('').action(() => program.outputHelp())
program.help()

async function run(action: string, flags: Flags): Promise<void> {
  switch (action) {
    case 'migrate':
      return migrate(flags)
    case 'prune':
      return prune(flags)
    case 'verify':
      return withQueues(flags, verify)
    case 'restore':
      return withQueues(flags, (queue) => restore(queue, flags))
    default:
      throw new RedelayedError('ERR_USAGE', `journal ${action}: there are migrate, verify, restore and prune`)
  }
}

async function migrate(flags: Flags): Promise<void> {
  const database = new JournalDatabase(parseJournalUrl(journalOf(flags)))
  try {
    const done = await database.migrate()
    console.log(done.length === 0 ? 'The tables are of this version.' : `Done: ${done.join(', ')}.`)
  } finally {
    await database.close()
  }
}

async function prune(flags: Flags): Promise<void> {
  const days = Number(flags.olderThan ?? 7)
  if (!(days >= 0)) throw new RedelayedError('ERR_USAGE', '--older-than takes a number of days')
  await using journal = await createJournal({ url: journalOf(flags), migrate: false, background: false })
  const { messages, flow } = await journal.prune(days * DAY_MS)
  console.log(`Removed ${messages} messages that were final and ${flow} changes.`)
}

async function verify(queue: JournalQueue<unknown>): Promise<void> {
  let differences = 0
  for await (const { id, what, sql, redis } of queue.verify()) {
    differences++
    console.log(`${queue.name} ${JSON.stringify(id)}: ${what} (SQL: ${sql}, Redis: ${redis})`)
  }
  console.log(`${queue.name}: ${differences} differences.`)
  if (differences > 0) process.exitCode = 1
}

async function restore(queue: JournalQueue<unknown>, { expired = false, dryRun = false }: Flags): Promise<void> {
  const ids = textsOf('id')
  const startedAt = performance.now()
  let shownAt = startedAt
  const result = await queue.restore({
    ...(ids.length === 0 ? {} : { ids }),
    expired,
    dryRun,
    onProgress: ({ checked, restored }) => {
      if (performance.now() - shownAt < 1_000) return
      shownAt = performance.now()
      const rate = Math.round(checked / ((shownAt - startedAt) / 1000))
      console.log(`${queue.name}: ${checked} checked, ${restored} restored, ${rate} a second`)
    },
  })
  const verb = dryRun ? 'would be restored' : 'restored'
  console.log(`${queue.name}: ${result.checked} open in SQL, ${result.restored} ${verb}, ${result.refused} refused.`)
  if (result.refused > 0) process.exitCode = 1
}

async function withQueues(flags: Flags, action: (queue: JournalQueue<unknown>) => Promise<void>): Promise<void> {
  const names = textsOf('queue')
  if (names.length === 0) throw new RedelayedError('ERR_USAGE', '--queue is missing')
  const url = flags.redis ?? process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
  await using journal = await createJournal({ url: journalOf(flags), migrate: false, background: false })
  const client = createClient({ url })
  try {
    for (const queue of await attachAll(journal, client, names)) await action(queue)
  } finally {
    await journal.close()
    await client.shutdown()
  }
}

/** Each queue with its dead letters. */
async function attachAll(
  journal: Journal,
  client: RedelayedClient,
  names: readonly string[],
): Promise<JournalQueue<unknown>[]> {
  const queues: JournalQueue<unknown>[] = []
  for (const name of names) {
    const queue: ReliableQueue = client.getReliableQueue(name)
    queues.push(await journal.attach(queue), await journal.attach(queue.deadLetters))
  }
  return queues
}

function journalOf({ journal = process.env.REDELAYED_JOURNAL }: Flags): string {
  if (journal === undefined) throw new RedelayedError('ERR_USAGE', '--journal or REDELAYED_JOURNAL is missing')
  return journal
}

/** As they were given: the parser of the commands makes numbers of what looks like one, and another id of a long one. */
function textsOf(flag: 'id' | 'queue'): string[] {
  const options = { [flag]: { type: 'string', multiple: true } } as const
  const { values } = parseArgs({ args: process.argv.slice(2), options, strict: false })
  return ((values[flag] as (string | boolean)[] | undefined) ?? []).filter((value) => typeof value === 'string')
}

try {
  program.parse(process.argv, { run: false })
  await program.runMatchedCommand()
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = error instanceof RedelayedError && error.code === 'ERR_USAGE' ? 2 : 1
}
