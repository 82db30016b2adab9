// The page of all error codes: the classes from the source, and what to do about each code from here.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from '../ensure-installed.mjs'
import { cell, code, docOf, exportedDeclarations, typeText, type Page } from './source.js'

/** What to do, by code. A code of the source that is not here fails the check, and so does one that the source does not have. */
const ADVICE: Readonly<Record<string, string>> = {
  ERR_ADD_MANY:
    'Look through `failures`: each has the `index` of its item and an error with a code of this table. `results` has the ids of the others; do not add those again',
  ERR_AUTH:
    'Check `username` and `password` (or `sentinelPassword`), and with ACLs the rights of the user: `npx redelayed doctor` lists the commands and keys that it lacks. The client retries, so a corrected password on the server is enough',
  ERR_BATCH_CLOSED:
    'The message was not added. Close a batch after all `add` calls for it have resolved, and give each run its own name: a finished batch keeps its name for a week',
  ERR_CHANGES_BEHIND:
    'A reader of the change stream is stopped or too slow: `changeStatus()` shows which group. Start it, remove the group, or raise `maxLength`. The message was not added; add it again later',
  ERR_CHANGES_LOST:
    'Changes may be missing. Read the queue as it is now (`listAll`), then read changes from the position in the new status',
  ERR_NOT_COMPLETED:
    "`reason` says which: `'timeout'`: wait longer, or look with `get(id)`, for a batch with `counts()`; `'dead'`: `failure` is why, and `redrive` or `deadLetters.move` gives it another chance; `'gone'`: the message was removed, has expired, was moved, or was completed before those that `keepCompleted` keeps",
  ERR_COMMAND:
    'Read `redisCode`. `OOM`: Redis is full, free memory or raise `maxmemory`. `NOREPLICAS`: too few replicas. `BUSY`, `LOADING`, `MASTERDOWN` are temporary: call again. `MISCONF`: Redis cannot write its snapshot; read its log',
  ERR_CONNECTION:
    "Redis could not be reached, or the connection broke. With `outcome: 'not-applied'` call again. With `'unknown'` the command may have been carried out: repeat it only if that does no harm, as with an `id` in a reliable queue. The client reconnects by itself",
  ERR_CONSUMER:
    'A consumer of `subscribeOnElements` threw or rejected. Catch errors in it: the element is gone from the queue. An `error` event',
  ERR_CROSS_SLOT: 'In a cluster, give both queues the same part in braces, such as `{shop}:orders` and `{shop}:late`',
  ERR_DECODE:
    'The bytes are of another codec, another version of a class, or broken. Elements that consumers took are in [the quarantine](quarantine.md); compare the codecs of producer and consumer',
  ERR_DURABILITY:
    'The message **is** in the queue, but fewer replicas or disks have it than you asked for: see `acknowledged`. Keep it, or cancel it by `ticket`. Do not offer it again',
  ERR_ENCODE:
    '`path` leads to the value that the codec cannot represent. Change the value, or choose [a codec that keeps it](codecs.md)',
  ERR_HANDLER_TIMEOUT:
    "The handler took longer than the worker's `timeout`; the attempt has failed. Let the handler end when `signal` is aborted, or raise `timeout`",
  ERR_INTERNAL:
    'Something that should be impossible happened. Please report it with the message, its `[id]`, the stack and `npx redelayed doctor --json`. As an `error` event it can wrap an error of your code: see `cause`',
  ERR_INVALID_ARGUMENT:
    'The message names the argument, what was expected, and what kind of value came. Correct the call',
  ERR_INVALID_TICKET:
    'The ticket belongs to another queue, or was cut or changed on its way. Store tickets as they are, together with the name of the queue',
  ERR_VISIBILITY_LOST:
    'The process did not extend the message in time, because it was suspended or its event loop was blocked; another consumer may have the message. Stop work on it. If it happens often, raise `visibilityTimeout` or move long computations into a thread',
  ERR_LISTENER:
    'A listener that you gave to `on` threw; `cause` is what it threw. Catch errors in the listener. Reported as a process warning',
  ERR_NO_SUCH_ELEMENT: 'The queue is empty. Use `poll()` or `peek()`, which resolve with `null` instead',
  ERR_OFFER_ALL:
    'Look through `failures`: each has the `index` of its item and an error with a code of this table. `tickets` has those of the others; do not offer these again',
  ERR_OPERATION_DISABLED:
    'A process disabled this operation of the queue for all processes (`disableOperation`). `enableOperation` allows it again',
  ERR_PAYLOAD_TOO_LARGE:
    'Send a reference instead of the content, split the message, or raise `maxPayloadBytes` in every client (for a reliable queue also `maxMessageBytes`)',
  ERR_QUEUE_FULL:
    'The queue holds `maxSize` messages. Slow down and add again later; add consumers; or raise `maxSize` with `setConfig`',
  ERR_READ_ONLY:
    'The client reached a replica. With Sentinel, Cluster or `replicated` it finds the master by itself; with `url` or `host` correct the address',
  ERR_SHUTDOWN:
    'The client was shut down or the object destroyed before this call. Shut down last: after consumers and servers have stopped',
  ERR_TEST_KIT: 'A condition of the test kit did not become true within its `timeout`. The message says which one',
  ERR_TICKS_SKIPPED:
    "A repeat with `missed: 'all'` missed more ticks than one queue keeps. Use `'one'` or a longer interval, or keep a consumer running. An `error` event",
  ERR_UNKNOWN_TASK:
    'A message has a task for which this worker has no handler: an older or newer version of the program added it. Deploy handlers before producers, or [type the tasks](workers.md#types-for-tasks)',
  ERR_UNSUPPORTED_OPERATION:
    'The object cannot do this, or an optional package is missing; the message names what to use or to install',
  ERR_UNSUPPORTED_SERVER: 'Upgrade Redis or Valkey to the version in the message, or do without the feature',
  ERR_WRONG_TYPE:
    'Another program uses a key of this name for something else, or a plain queue has the name of a reliable one. Rename one of them; nothing was changed',
}

interface ErrorClass {
  name: string
  code: string
  doc: string
  fields: string[]
  entry: string
}

export function errorsPage(): Page {
  const problems: string[] = []
  const classes = errorClasses()
  const codes = codesOfSource()
  for (const each of codes) if (!(each in ADVICE)) problems.push(`${each}: no advice in scripts/reference/errors.ts`)
  for (const each of Object.keys(ADVICE)) if (!codes.has(each)) problems.push(`${each}: advice, but not in src`)
  const lines = [
    '# All errors',
    '',
    '<!-- Written by scripts/reference.ts from the classes of src and scripts/reference/errors.ts. Do not edit: run `npm run reference`. -->',
    '',
    'Every error that the package throws or emits is a `RedelayedError`. Compare its `code`, which stays the same between versions; the message is for people.',
    '`queue` is the queue as you named it, `operation` the method that you called, such as `offer`, or `batch.close` of a batch, and `cause` a clean copy of the error underneath.',
    'An `error` event reports a failure that no call waits for. Most of them have no `operation`; the event of a worker has the operation of the worker, such as `poll` or `acknowledge`. Messages contain no payload, no password and no URL with credentials.',
    'The problems of the delay service are [on the page of its API](http-api.md).',
    '',
    '```ts',
    "import { ConnectionError, RedelayedError, createClient } from 'redelayed'",
    '',
    "const client = createClient({ url: 'redis://127.0.0.1:6379' })",
    "client.on('error', (error) => console.error(error.code, error.queue, error.message)) // of work that no call waits for",
    "const mails = client.getReliableQueue<string>('mails')",
    'try {',
    "  await mails.add('welcome', { id: 'welcome:ada' })",
    '} catch (error) {',
    "  if (error instanceof ConnectionError && error.outcome === 'not-applied') console.error('try again later')",
    "  else if (error instanceof RedelayedError && error.code === 'ERR_QUEUE_FULL') console.error('slow down')",
    '  else throw error',
    '}',
    'await client.shutdown()',
    '```',
    '',
    '| code | class | when | also has | what to do |',
    '|---|---|---|---|---|',
    ...[...codes].sort().flatMap((each) => {
      const of = classes.filter((candidate) => candidate.code === each)
      const rows =
        of.length > 0 ? of : [{ name: 'RedelayedError', code: each, doc: '', fields: [], entry: 'redelayed' }]
      return rows.map(({ name, doc, fields, entry }) => {
        const from = entry === 'redelayed' ? code(name) : `${code(name)} of ${code(entry)}`
        return `| ${code(each)} | ${from} | ${cell(doc)} | ${fields.map(code).join(', ')} | ${cell(ADVICE[each] ?? '')} |`
      })
    }),
  ]
  return { text: `${lines.join('\n')}\n`, count: codes.size, problems }
}

/** The classes that call `super('ERR_…', …)`. */
function errorClasses(): ErrorClass[] {
  return [...exportedDeclarations().values()].flatMap(({ entry, node }) => {
    if (!ts.isClassDeclaration(node)) return []
    const given = /super\(\s*'(ERR_\w+)'/.exec(node.getText())?.[1]
    if (given === undefined || node.name === undefined) return []
    const fields = node.members.flatMap((member) =>
      ts.isPropertyDeclaration(member) && member.type !== undefined && !ts.isPrivateIdentifier(member.name)
        ? [`${member.name.getText()}: ${typeText(member.type)}`]
        : [],
    )
    return [{ name: node.name.text, code: given, doc: docOf(node), fields, entry }]
  })
}

/** Every code that the library can give an error, by the literals of its source. The service has problems of its own; ERR_SSL_ and ERR_TLS_ are Node's. */
function codesOfSource(): Set<string> {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const sources = files.filter((file) => file.endsWith('.ts') && !/^server\b|^cli\b|generated\.ts$/.test(file))
  const texts = sources.map((file) => readFileSync(join(root, 'src', file), 'utf8'))
  return new Set(
    texts.flatMap((text) => Array.from(text.matchAll(/'(ERR_(?!SSL_|TLS_)[A-Z_]+)'/g), ([, found = '']) => found)),
  )
}
