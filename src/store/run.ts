import type { CallOptions, CommandArg, Sender } from './sender.js'
import { CommandError, ConnectionError, toError } from '../errors.js'
import { commandArgs, type ArgsOf, type KeysOf, type Script, type ScriptSource } from './script.js'

export type { Sender } from './sender.js'

/** The scripts that a server has run for each sender, and knows, unless it was flushed or replaced. */
const known = new WeakMap<object, Set<string>>()

/**
 * The only function that sends scripts: by hash, and by text if the server does not know the hash (new, flushed, failed over). The first
 * time it sends the text at once if the arguments are larger, so that these are not sent twice.
 */
export async function run<S extends ScriptSource, R>(
  sender: Sender,
  script: Script<S, R>,
  keys: KeysOf<S>,
  args: ArgsOf<S>,
  options?: CallOptions,
): Promise<R> {
  const { source } = script
  const list = commandArgs(source, keys, args)
  const scripts = scriptsOf(sender)
  const whole = { ...options, startedAt: options?.startedAt ?? performance.now() } // one time limit for both commands
  const byText = (continues: boolean): Promise<unknown> =>
    sender.call('EVAL', [source.source, ...list], continues ? { ...whole, continues } : whole)
  let reply: unknown
  if (scripts.has(source.sha1) || bytesOf(list) <= source.source.length) {
    try {
      reply = await sender.call('EVALSHA', [source.sha1, ...list], whole)
    } catch (error) {
      if (isUnknownScript(error)) reply = await byText(true)
      else if (wasRepeatedAsUnknown(error))
        reply = await byText(true).catch((thrown: unknown) => rethrowUnknown(thrown))
      else throw error
    }
  } else {
    reply = await byText(false)
  }
  scripts.add(source.sha1)
  return script.decode(reply)
}

/** The most rounds of a pipeline: another client can flush the scripts between two commands; in the last round each call has the text. */
const MOST_ROUNDS = 3

/**
 * Many runs of one script in one pipeline. A pipeline cannot react to an unknown hash, so the calls that met
 * one are sent again, the first of them with the text.
 */
export async function runMany<S extends ScriptSource, R>(
  sender: Pick<Sender, 'pipeline'>,
  script: Script<S, R>,
  keys: KeysOf<S>,
  argsOfEach: readonly ArgsOf<S>[],
): Promise<(R | Error)[]> {
  const lists = argsOfEach.map((args) => commandArgs(script.source, keys, args))
  const rest = { startedAt: performance.now(), continues: true }
  const replies = await sender.pipeline(lists.map((list) => ['EVALSHA', [script.source.sha1, ...list]] as const))
  for (let round = 1; round <= MOST_ROUNDS; round++) {
    const unknown = replies.flatMap((reply, index) => (isUnknownScript(reply) ? [index] : []))
    if (unknown.length === 0) break
    const isLast = round === MOST_ROUNDS
    const again = await sender.pipeline(
      unknown.map((index, position) => {
        const list = lists[index] ?? []
        if (position === 0 || isLast) return ['EVAL', [script.source.source, ...list]] as const
        return ['EVALSHA', [script.source.sha1, ...list]] as const
      }),
      rest,
    )
    unknown.forEach((index, position) => (replies[index] = again[position]))
  }
  return replies.map((reply) => (reply instanceof Error ? reply : decoded(script, reply)))
}

/** Decodes a reply; an invalid one becomes an error, so that it does not affect the others. */
function decoded<S extends ScriptSource, R>(script: Script<S, R>, reply: unknown): R | Error {
  try {
    return script.decode(reply)
  } catch (thrown) {
    return toError(thrown)
  }
}

function scriptsOf(sender: object): Set<string> {
  const scripts = known.get(sender) ?? new Set()
  if (scripts.size === 0) known.set(sender, scripts)
  return scripts
}

/** The approximate bytes of arguments. */
function bytesOf(list: readonly CommandArg[]): number {
  return list.reduce((sum, { length }) => sum + length, 0)
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof CommandError && error.redisCode === 'NOSCRIPT'
}

/**
 * Whether the connection broke, and the server that got the repetition does not know the script: the first attempt may have been carried
 * out.
 */
function wasRepeatedAsUnknown(error: unknown): boolean {
  return error instanceof ConnectionError && error.outcome === 'unknown' && isUnknownScript(error.cause)
}

/**
 * Throws with the outcome `unknown`: the attempt before the connection broke may have been carried out, even if the repetition was not sent
 * or was refused.
 */
function rethrowUnknown(thrown: unknown): never {
  const error = toError(thrown)
  if (error instanceof ConnectionError && error.outcome === 'unknown') throw error
  throw new ConnectionError(`the connection broke, and a repetition failed: ${error.message}`, 'unknown', {
    cause: error,
  })
}
