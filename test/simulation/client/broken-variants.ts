import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { BrokenVariant } from '../broken-variants.js'
import { loadClientCode, type ClientCode } from './code.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

interface BrokenClient extends BrokenVariant {
  readonly also?: Pick<BrokenVariant, 'from' | 'to'>
}

/** Faults that could be put into the connections, the offers, the waits and the worker; the simulation has to find each. */
export const BROKEN_CLIENTS: readonly BrokenClient[] = [
  {
    what: 'the silence of a server that owes replies has no limit (no commandTimeout)',
    file: 'redis/topology/single-topology.ts',
    from: 'socketTimeout: settings.commandTimeout })),\n      prepare: async (redis) => {\n        dropWhenStuck(this.#link, redis, settings.commandTimeout)\n',
    to: 'socketTimeout: undefined })),\n      prepare: async (redis) => {\n',
  },
  {
    what: 'opening a connection has no time limit',
    file: 'redis/connections/opening.ts',
    from: '    }, this.#limitMs)',
    to: '    }, 3_600_000)',
  },
  {
    what: 'a repetition is overtaken by its first attempt (a broken connection is not ended at the server)',
    file: 'redis/connections/predecessors.ts',
    from: '        ...here.map((each) => kill(each.id)),\n',
    to: '',
  },
  {
    what: 'an offer whose outcome is unknown is sent again under another id',
    file: 'queues/offers.ts',
    from: '    attempt.unknown = error\n    return undefined',
    to: '    attempt.unknown = error\n    attempt.id = this.#newId()\n    attempt.entry = encodeEntry(attempt.id, attempt.payload)\n    return undefined',
  },
  {
    what: 'an offer is repeated when it may have been delivered',
    file: 'queues/offers.ts',
    from: 'serverStartedAt + due.delayMs)',
    to: 'serverStartedAt + due.delayMs + 3_600_000)',
    // either check alone is nearly enough
    also: { from: 'if (remaining <= 0 || attempt', to: 'if (attempt' },
  },
  {
    what: 'an element that comes for a take that was aborted is dropped',
    file: 'redis/blocking/waiters.ts',
    from: '      ...list.filter((waiter) => waiter.ended !== undefined),\n',
    to: '',
  },
  {
    what: 'a take that ends is not unblocked at the server',
    file: 'redis/blocking/blocking-connection.ts',
    from: '    call.interrupted = true\n',
    to: '    call.interrupted = true\n    if (call.redis.status !== "end") return\n',
  },
  {
    what: 'no transfer when the subscription is acknowledged',
    file: 'redis/subscriber.ts',
    from: 'for (const channel of chunk) this.#listeners.get(channel)?.onSubscribed()',
    to: '',
  },
  { what: 'no sweep', file: 'scheduler/sweeper.ts', from: 'this.#sweep(member)', to: 'void member' },
  {
    what: 'a half-open subscriber is not noticed (no ping)',
    file: 'redis/replies/keep-pinging.ts',
    from: '    stopWatching = dropWhenOverdue(link, redis, { dueMs: 0, graceMs, mostMs: MOST_TIMEOUTS * graceMs })\n    redis.ping().then(schedule,',
    to: '    schedule()\n    void Promise.resolve().then(undefined,',
  },
  {
    what: 'a failed transfer or poll is not tried again',
    file: 'scheduler/transfer-task.ts',
    from: '        this.#onFailure(toError(thrown))\n        return',
    to: '        this.#onFailure(toError(thrown))\n        await new Promise(() => undefined)',
  },
  {
    what: 'a message is acknowledged before its handler ends',
    file: 'workers/worker.ts',
    from: 'void outcome.then((later) => this.#settled(assignment, later)).then(() => this.#fill())',
    to: 'this.#settled(assignment, { is: "completed" } as Outcome)',
  },
  {
    what: 'the worker extends nothing (no heartbeat)',
    file: 'workers/heartbeat.ts',
    from: 'this.#timer = setInterval(() => this.#beat(), visibilityTimeout / BEATS)',
    to: 'this.#timer = setInterval(() => undefined, visibilityTimeout / BEATS)',
  },
  {
    what: 'a shutdown does not end the waiting takes',
    file: 'redis/blocking/blocking-connection.ts',
    from: "    this.#waiters.endAll(new ShutdownError('the client was shut down'))\n",
    to: '',
  },
  {
    what: 'a repeated add does not say that it is one',
    file: 'reliable/additions.ts',
    from: 'resent: unknown !== undefined,',
    to: 'resent: false,',
  },
  {
    what: 'a connection whose reply is overdue is not given up',
    file: 'redis/replies/reply-watchdog.ts',
    from: "link.drop(redis, new ConnectionError(why, 'unknown'))",
    to: 'undefined',
  },
  {
    what: 'a connection that was lost is not opened again',
    file: 'redis/connections/reconnecting-connection.ts',
    from: '      if (this.#closed) return\n      attempt++',
    to: '      if (this.#closed || redis !== undefined) return\n      attempt++',
  },
]

/** A copy of the package with one fault in it. */
export async function loadBrokenClient({ what, file, also, ...first }: BrokenClient): Promise<ClientCode> {
  const base = join(ROOT, '.cache/broken-variants')
  mkdirSync(base, { recursive: true })
  const folder = mkdtempSync(join(base, 'c-'))
  const copy = join(folder, 'src')
  cpSync(join(ROOT, 'src'), copy, { recursive: true })
  let text = readFileSync(join(copy, file), 'utf8')
  for (const { from, to } of also === undefined ? [first] : [first, also]) {
    if (text.split(from).length !== 2) throw new Error(`${what}: the text to break is not once in ${file}`)
    text = text.replace(from, () => to)
  }
  writeFileSync(join(copy, file), text)
  try {
    return await loadClientCode(pathToFileURL(`${copy}/`))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
