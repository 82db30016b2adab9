import {
  createClient,
  type ClientOptions,
  type DelayedQueue,
  type RedelayedClient,
  type RedelayedError,
  type ReliableQueue,
  type ShardedReliableQueue,
} from '../index.js'
import { openAccess, type Access } from '../doctor/access.js'
import { failureLine } from './failure.js'
import { codecOf, globalOptions, parseCodec, parseLayout, type GlobalOptions, type RawOptions } from './input.js'
import { jsonText } from './output.js'
import { orUndecodable } from './undecodable.js'

/** Short limits, because a person waits at the terminal. */
const CONNECT_TIMEOUT_MS = 3_000
const COMMAND_TIMEOUT_MS = 5_000

/** The tools of a command: queues that do not deliver, and the output. */
export interface Session {
  readonly json: boolean
  readonly delayed: (queue: string) => DelayedQueue
  readonly reliable: (queue: string) => ReliableQueue
  readonly sharded: (queue: string, shards: number) => ShardedReliableQueue
  /** Opens access to servers and keys, on a connection of its own. */
  readonly access: () => Promise<Access>
  /** Prints one JSON document with --json, and otherwise the lines. */
  readonly print: (document: unknown, lines: () => readonly string[]) => void
}

/** Runs an action on a connection of its own and closes it, however the action ends. */
export async function withSession(options: RawOptions, action: (session: Session) => Promise<void>): Promise<void> {
  const global = globalOptions(options)
  const codec = orUndecodable(await codecOf(parseCodec(options)))
  const layout = parseLayout(options)
  const client = connect(global)
  let access: Promise<Access> | undefined
  try {
    await action({
      json: global.json,
      delayed: (queue) => client.getDelayedQueue(client.getQueue(queue, { codec }), { layout, deliver: false }),
      reliable: (queue) => client.getReliableQueue(queue, { codec }),
      sharded: (queue, shards) => client.getShardedReliableQueue(queue, { codec, shards }),
      access: () => (access ??= openAccess(connectOptions(global))),
      print: (document, lines) => console.log(global.json ? jsonText(document) : lines().join('\n')),
    })
  } finally {
    await Promise.all([client.shutdown(), access?.then((opened) => opened.close()).catch(() => undefined)])
  }
}

function connect(global: GlobalOptions): RedelayedClient {
  return createClient(connectOptions(global))
    .on('error', warnOnce())
    .on('warning', ({ code }) => {
      if (code === 'REDELAYED_TIMESTAMP_DELAY')
        console.error('The delay looks like a point in time: give the time from now, such as 90s.')
    })
}

export function connectOptions({ url, cluster }: GlobalOptions): ClientOptions {
  return {
    ...(cluster ? { cluster: [url] } : { url }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    warnings: false, // `redelayed doctor` reports the same problems
    // every server speaks RESP2, and no command needs RESP3
    ioredis: { protocol: 2, connectionName: 'redelayed-cli' },
  }
}

/** A listing skips entries that it cannot read: it warns once per kind of error. */
function warnOnce(): (error: RedelayedError) => void {
  const reported = new Set<string>()
  return (error) => {
    if (reported.has(error.code)) return
    reported.add(error.code)
    const hint = error.code === 'ERR_DECODE' ? '; what cannot be read is left out (see --codec)' : ''
    console.error(failureLine(error) + hint)
  }
}
