import type { CAC, Command } from 'cac'
import { quoted } from '../text.js'
import { protect, unprotect } from './arguments.js'
import { batch } from './commands/batch.js'
import { cancel } from './commands/cancel.js'
import { completed } from './commands/completed.js'
import { config, CONFIG_OPTIONS } from './commands/config.js'
import { groups } from './commands/groups.js'
import { message } from './commands/message.js'
import { offer } from './commands/offer.js'
import { doctor } from './commands/doctor.js'
import { move } from './commands/move.js'
import { pause, resume } from './commands/pause.js'
import { DEFAULT_LIMIT, MAX_LIMIT, peek } from './commands/peek.js'
import { redrive } from './commands/redrive.js'
import { stats } from './commands/stats.js'
import { ui } from './commands/ui.js'
import { DEFAULT_INTERVAL, watch } from './commands/watch.js'
import { EXIT_OK, UsageError, exitCodeOf, failureDocument, failureLine } from './failure.js'
import { CODEC_NAMES, DEFAULT_URL } from './input.js'
import version from './version.cjs'

/** Runs the command; resolves with the exit code. */
export async function runProgram(cli: CAC, argv: readonly string[]): Promise<number> {
  try {
    define(cli)
    await run(cli, argv)
    return EXIT_OK
  } catch (error) {
    console.error(wantsJson(argv) ? failureDocument(error) : failureLine(error))
    return exitCodeOf(error)
  }
}

/** Whether `--json` was given, even if the arguments cannot be parsed. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end < 0 ? argv.length : end).includes('--json')
}

function define(cli: CAC): void {
  cli
    .option(
      '--url <url>',
      `Redis to connect to: redis[s]://[user:password@]host:port/db (REDIS_URL, else ${DEFAULT_URL})`,
    )
    .option('--cluster', 'The URL is a node of a Redis Cluster')
    .option('--json', 'Print one JSON document instead of tables')
    .help(withoutTrailingSpaces)
    .version(version)
  // cac would show no error for an unknown command with --help
  cli.showHelpOnExit = false

  withCodec(cli.command('offer <queue> <value> <delay>', 'Add a message to a delayed queue, delivered after a delay'))
    .option(
      '--layout <layout>',
      'redisson: seen by all of Java’s RDelayedQueue; compact: scales; wheel: half the memory',
      {
        default: 'redisson',
      },
    )
    .example(`  $ redelayed offer orders '{"id":17}' 5s`)
    .example(`  $ redelayed offer reminders 'call Ada' 90m --codec string`)
    .action(offer)

  withCodec(
    cli.command('peek <queue>', 'Show what is due next, what waits to be taken, and dead letters; takes nothing'),
  )
    .option('--limit <n>', `How many of each, 1 to ${MAX_LIMIT}`, { default: DEFAULT_LIMIT })
    .example('  $ redelayed peek orders --limit 3')
    .example('  $ redelayed peek orders --codec kryo5')
    .action(peek)

  cli
    .command('stats [...queues]', 'Count the messages of some or all queues, of every kind and by their states')
    .example('  $ redelayed stats orders reminders')
    .action(stats)

  cli
    .command('cancel <queue> <ticket>', 'Remove a pending message by its ticket; exit code 1 when it is not pending')
    .example('  $ redelayed cancel orders Ct7dJHuLlo8AAaH4h_-cU6fZ')
    .action(cancel)

  cli
    .command('watch [...queues]', 'Show some or all queues live: what waits, rates, lateness; Ctrl-C ends it')
    .option('--interval <time>', 'Time between two rounds, 100ms to 1h', { default: DEFAULT_INTERVAL })
    .option('--count <n>', 'End after this number of rounds')
    .example('  $ redelayed watch')
    .example('  $ redelayed watch orders mails --interval 5s')
    .example('  $ redelayed watch mails --json --count 60')
    .action(watch)

  cli
    .command('redrive <queue>', 'Move dead letters of a reliable queue back, where they begin anew')
    .option('--count <n>', 'Only the oldest n')
    .option('--id <id>', 'Only the one of this id; can be given more than once')
    .option('--yes', 'Do not ask before')
    .example('  $ redelayed redrive mails --count 100')
    .example('  $ redelayed redrive mails --id welcome:ada --yes')
    .action(redrive)

  cli
    .command('move <from> <to>', 'Move messages that no consumer has to another reliable queue, where they begin anew')
    .option('--count <n>', 'Only the first n')
    .option('--id <id>', 'Only the one of this id; can be given more than once')
    .option('--yes', 'Do not ask before')
    .example('  $ redelayed move mails mails:later --count 100')
    .action(move)

  cli
    .command('batch <queue> <name>', 'Count the messages of a batch of a reliable queue by how they have ended')
    .example('  $ redelayed batch mails import-7')
    .action(batch)

  withCodec(
    cli.command('completed <queue>', 'Show the completed messages that a reliable queue keeps, with their results'),
  )
    .option('--limit <n>', `How many, 1 to ${MAX_LIMIT}`, { default: DEFAULT_LIMIT })
    .option('--skip <n>', 'Leave out the latest n, to see the next page')
    .example('  $ redelayed completed mails --limit 100 --skip 100')
    .action(completed)

  withCodec(
    cli.command(
      'message <queue> <id>',
      'Show the message of an id: its state, progress, failures, and the result when it is completed',
    ),
  )
    .example('  $ redelayed message mails welcome:ada')
    .action(message)

  cli
    .command('groups <queue>', 'Count the messages of the groups of a reliable queue by their states')
    .option('--limit <n>', `How many groups, 1 to ${MAX_LIMIT} (default: ${DEFAULT_LIMIT})`)
    .option('--paused', 'Only the paused groups')
    .option('--group <name>', 'Only this group')
    .example('  $ redelayed groups mails --paused')
    .example('  $ redelayed groups mails --group tenant-7')
    .action(groups)

  const configuring = cli.command(
    'config <queue>',
    'Show the configuration of a reliable queue for all processes, and change it; the value default removes a setting',
  )
  for (const [option, help] of CONFIG_OPTIONS) configuring.option(option, help)
  configuring
    .option('--shards <n>', 'Of a sharded queue: how many shards its processes give, former ones too')
    .option('--yes', 'Do not ask before a lower bound removes kept messages')
    .example('  $ redelayed config mails')
    .example('  $ redelayed config mails --concurrency 5 --rate-limit 100/1m')
    .example('  $ redelayed config mails --keep-completed 1000 --keep-completed-for 1h')
    .example('  $ redelayed config mails --concurrency default')
    .action(config)

  withOperation(
    cli.command('pause <queue>', 'Let no consumer of a reliable queue get a message, in any process, until resume'),
  )
    .example('  $ redelayed pause mails')
    .example('  $ redelayed pause mails --operation add')
    .example('  $ redelayed pause mails --group tenant-7')
    .example('  $ redelayed pause mails --task report')
    .example('  $ redelayed pause sharded --shards 12')
    .action(pause)

  withOperation(cli.command('resume <queue>', 'End what pause began; waiting consumers go on at once'))
    .example('  $ redelayed resume mails')
    .action(resume)

  cli
    .command('ui', 'Show a page of the queues of this Redis in the browser; reads only, needs redelayed-server')
    .option('--port <port>', 'Where it listens on 127.0.0.1; 0 for any free port', { default: 8080 })
    .example('  $ redelayed ui --url redis://127.0.0.1:6379')
    .action(ui)

  cli
    .command('doctor [...queues]', 'Examine some or all queues and their Redis; exit code 1 on findings')
    .option(
      '--fix',
      'Repair what can be repaired safely, after printing the plan; deletes no message, delivers named queues only',
    )
    .option('--within <time>', 'Begin with no other queue after this time; without --fix')
    .example('  $ redelayed doctor')
    .example('  $ redelayed doctor orders --fix')
    .action(doctor)
}

async function run(cli: CAC, argv: readonly string[]): Promise<void> {
  cli.parse(['node', 'redelayed', ...protect(argv)], { run: false })
  if (cli.options['help'] === true) {
    if (cli.args.length > 0 && cli.matchedCommand === undefined) throw noSuchCommand(cli, cli.args[0])
    cli.outputHelp()
    return
  }
  if (cli.options['version'] === true) return
  if (cli.matchedCommand === undefined) throw noSuchCommand(cli, cli.args[0])
  cli.args = cli.args.map(unprotect)
  for (const [name, value] of Object.entries(cli.options)) {
    if (typeof value === 'string') cli.options[name] = unprotect(value)
    else if (Array.isArray(value)) cli.options[name] = value.map(unprotect)
  }
  await cli.runMatchedCommand()
}

function noSuchCommand(cli: CAC, name: string | undefined): UsageError {
  const expected = cli.commands.map((command) => command.name).join(', ')
  const got = name === undefined ? 'no command given' : `unknown command ${quoted(unprotect(name))}`
  return new UsageError(`${got}; expected one of ${expected} (see redelayed --help)`)
}

function withCodec(command: Command): Command {
  return command.option('--codec <codec>', `How values are stored: ${CODEC_NAMES.join(', ')}`, { default: 'msgpack' })
}

function withOperation(command: Command): Command {
  return command
    .option('--operation <operation>', 'poll: consumers get nothing; add: adding is refused', { default: 'poll' })
    .option('--group <name>', 'Only the messages of this group')
    .option('--task <name>', 'Only the messages of this task')
    .option('--shards <n>', 'Of a sharded queue: how many shards its processes give, former ones too')
}

/** cac pads every line of its help. */
function withoutTrailingSpaces(sections: { title?: string; body: string }[]): { title?: string; body: string }[] {
  return sections.map((section) => ({ ...section, body: section.body.replace(/[ \t]+$/gm, '') }))
}
