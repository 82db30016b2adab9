// `redelayed-server journal migrate | verify | restore | prune`.
import { parseArgs } from 'node:util'
import { cac } from 'cac'
import { createClient, RedelayedError, type ConnectOptions, type RedelayedClient, type ReliableQueue } from 'redelayed'
import { parseJournalUrl } from '../config/journal-options.js'
import { whereabouts, whereaboutsOf } from '../config/load-settings.js'
import { JournalDatabase } from '../database/database.js'
import { createJournal, type Journal } from '../journal/journal.js'
import type { JournalQueue } from '../journal/journal-queue.js'
import { connectOptionsOf } from '../service/connections.js'

interface Flags {
  readonly journal?: string
  readonly redis?: string
  readonly redisCluster?: string
  readonly redisSentinels?: string
  readonly shards?: string
  readonly expired?: boolean
  readonly dryRun?: boolean
  readonly olderThan?: string
}

const DAY_MS = 86_400_000
const MOST_SHARDS = 256
/** How often a restore shows its progress. */
const SHOW_MS = 1_000
const program = cac('redelayed-server')
program.option(
  '--journal <url>',
  'sqlite:<path>, postgres://… or mysql://… (default: as the service has it, see below)',
)
program.option('--redis <url>', 'the Redis of the queues (default: as the service has it)')
program.option('--redis-cluster <url,url,…>', 'some nodes of a Redis Cluster, in the place of --redis')
program.option('--redis-sentinels <url,url,…>', 'sentinels; the host in --redis is then the name of the master')
program.option('--queue <name>', 'a reliable queue; may be given several times')
program.option(
  '--shards <number>',
  'the queues are sharded: how many shards they have; while that changes, the larger number',
)
program.option('--id <id>', 'restore: only this message; may be given several times')
program.option('--expired', 'restore: also messages that expired; they expire no more')
program.option('--dry-run', 'restore: say what would be done, and change nothing')
program.option('--older-than <days>', 'prune: what became final longer ago (default: 7)')
program.command('journal <action>', 'migrate, verify, restore or prune').action(run)
program.command('').action(() => program.outputHelp())
program.help((sections) => [
  ...sections,
  {
    title: 'The environment',
    body: '  REDELAYED_JOURNAL, REDELAYED_REDIS, REDELAYED_REDIS_CLUSTER and REDELAYED_REDIS_SENTINELS, each also with _FILE, and REDELAYED_CONFIG are those of the service; then REDIS_URL.',
  },
])

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
      throw new RedelayedError('ERR_USAGE', `journal ${action}: expected migrate, verify, restore or prune`)
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
  let notSettled = 0
  for await (const { id, what, sql, redis } of queue.verify({ onNotSettled: () => notSettled++ })) {
    differences++
    console.log(`${queue.name} ${JSON.stringify(id)}: ${what} (SQL: ${sql}, Redis: ${redis})`)
  }
  // for example messages that are handled meanwhile: in a queue in use these are not faults
  const more = notSettled === 0 ? '' : `, ${notSettled} not settled (they kept changing, and could not be compared)`
  console.log(`${queue.name}: ${differences} differences${more}.`)
  if (differences > 0) process.exitCode = 1
}

async function restore(queue: JournalQueue<unknown>, { expired = false, dryRun = false }: Flags): Promise<void> {
  const ids = textsOf('id')
  const total = ids.length === 0 ? await queue.size({ expired }) : undefined
  const startedAt = performance.now()
  let shownAt = -Infinity
  const result = await queue.restore({
    ...(ids.length === 0 ? {} : { ids }),
    expired,
    dryRun,
    onProgress: ({ checked, restored }) => {
      if (performance.now() - shownAt < SHOW_MS) return
      shownAt = performance.now()
      const rate = checked / ((shownAt - startedAt) / 1000)
      const [of, left] = total === undefined ? ['', ''] : [` of ${total}`, `, ${leftText(total - checked, rate)} left`]
      const verb = dryRun ? 'would be restored' : 'restored'
      console.log(`${queue.name}: ${checked}${of} checked, ${restored} ${verb}, ${Math.round(rate)} a second${left}`)
    },
  })
  const verb = dryRun ? 'would be restored' : 'restored'
  console.log(`${queue.name}: ${result.checked} open in SQL, ${result.restored} ${verb}, ${result.refused} refused.`)
  if (result.refused > 0) process.exitCode = 1
}

/** How long checking the remaining messages takes. */
function leftText(count: number, perSecond: number): string {
  const seconds = Math.ceil(Math.max(0, count) / perSecond)
  return seconds < 100 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`
}

async function withQueues(flags: Flags, action: (queue: JournalQueue<unknown>) => Promise<void>): Promise<void> {
  const names = textsOf('queue')
  if (names.length === 0) throw new RedelayedError('ERR_USAGE', '--queue is missing')
  const shards = shardsOf(flags)
  const where = redisOf(flags)
  await using journal = await createJournal({ url: journalOf(flags), migrate: false, background: false })
  const client = createClient(where)
  try {
    for (const queue of await attachAll(journal, client, names, shards)) await action(queue)
  } finally {
    await journal.close()
    await client.shutdown()
  }
}

/** Each queue, or each shard of it, with its dead letters. */
async function attachAll(
  journal: Journal,
  client: RedelayedClient,
  names: readonly string[],
  shards: number | undefined,
): Promise<JournalQueue<unknown>[]> {
  const queues: JournalQueue<unknown>[] = []
  for (const name of names) {
    const parts: readonly ReliableQueue[] =
      shards === undefined ? [client.getReliableQueue(name)] : client.getShardedReliableQueue(name, { shards }).shards
    for (const queue of parts) queues.push(await journal.attach(queue), await journal.attach(queue.deadLetters))
  }
  return queues
}

function redisOf({ redis, redisCluster, redisSentinels }: Flags): ConnectOptions {
  if (redis !== undefined && redisCluster !== undefined)
    throw new RedelayedError('ERR_USAGE', '--redis and --redis-cluster exclude each other')
  const given = { redis, redisCluster, redisSentinels }
  const isGiven = Object.values(given).some((each) => each !== undefined)
  const { redis: url = 'redis://127.0.0.1:6379', ...others } = isGiven ? whereaboutsOf(given) : whereabouts(process.env)
  return connectOptionsOf({ redis: url, ...others }, undefined)
}

function shardsOf({ shards }: Flags): number | undefined {
  if (shards === undefined) return undefined
  const count = Number(shards)
  if (Number.isInteger(count) && count >= 1 && count <= MOST_SHARDS) return count
  throw new RedelayedError('ERR_USAGE', `--shards takes a whole number from 1 to ${MOST_SHARDS}`)
}

function journalOf({ journal = whereabouts(process.env).journal }: Flags): string {
  if (journal === undefined || journal === 'off')
    throw new RedelayedError('ERR_USAGE', '--journal or REDELAYED_JOURNAL is missing')
  return journal
}

/** The values exactly as given: the command parser would turn digits into a number, and a long id into another one. */
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
  process.exitCode = error instanceof RedelayedError && ['ERR_USAGE', 'ERR_CONFIG'].includes(error.code) ? 2 : 1
}
