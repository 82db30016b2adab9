import fc from 'fast-check'
import type { QueueKeys } from '../../../src/keys.js'
import {
  commandArgs,
  type ArgsOf,
  type CommandArg,
  type KeysOf,
  type Script,
  type ScriptSource,
} from '../../../src/store/script.js'
import { readable } from '../support.js'
import type { Keyspace } from './keyspace.js'

/** The state from which a random test makes up a call. */
export interface World {
  /** The model, in the state in which the call will find Redis. */
  readonly redis: Keyspace
  readonly queue: QueueKeys
  /** A second queue, to move, rename and copy things to. */
  readonly other: QueueKeys
  readonly layout: 'redisson' | 'compact' | 'mixed'
  now: number
}

export type Command = readonly [command: string, args: readonly CommandArg[]]

/** One call of a script, or what another program writes: the commands for Redis, and the same for the model. */
export interface Step {
  readonly name: string
  readonly commands: readonly Command[]
  /** The reply to the last of the commands, without what the model cannot know. */
  decode(reply: unknown): unknown
  /** Returns what `decode` should. `reply` is what that returned, if Redis was asked first. */
  apply(redis: Keyspace, reply?: unknown): unknown
}

/** A step before it is known in which state it will be taken. `null`: it makes no sense there. */
export type Draft = (world: World) => Step | null

/** One script: how a random test calls it, and what it should do. */
interface Definition<S extends ScriptSource, R, D> {
  /** How often it is drawn, 1 when left out. */
  readonly weight?: number
  /** The random parts of a call. */
  readonly draw: fc.Arbitrary<D>
  /** Makes a call of it for the real script, one that means something in this world where possible. */
  run(world: World, drawn: D): { keys: KeysOf<S>; args: ArgsOf<S> } | null
  /** Does to the model what the script should do to Redis, and returns the reply it should give. For `reply` see `Step`. */
  apply(redis: Keyspace, keys: KeysOf<S>, args: ArgsOf<S>, reply: unknown): unknown
  /** The part of the reply to compare; everything when left out. */
  compare?(reply: R): unknown
}

export interface Operation<S extends ScriptSource> {
  readonly weight: number
  readonly drafts: fc.Arbitrary<Draft>
  step(keys: KeysOf<S>, args: ArgsOf<S>): Step
}

export function operation<S extends ScriptSource, R, D>(
  script: Script<S, R>,
  definition: Definition<S, R, D>,
): Operation<S> {
  const { source } = script
  const compare = definition.compare?.bind(definition) ?? ((reply: R) => reply)
  const step = (keys: KeysOf<S>, args: ArgsOf<S>): Step => ({
    name: source.name,
    commands: [['EVALSHA', [source.sha1, ...commandArgs(source, keys, args)]]],
    decode: (reply) => plain(compare(script.decode(reply))),
    apply(redis, reply) {
      const expected = definition.apply(redis, keys, args, reply)
      redis.forgetEmptyKeys()
      return plain(expected)
    },
  })
  return {
    weight: definition.weight ?? 1,
    step,
    drafts: drafts(source.name, definition.draw, (world, drawn) => {
      const call = definition.run(world, drawn)
      return call && step(call.keys, call.args)
    }),
  }
}

/** Drafts that a failed test prints as the name and what was drawn. */
export function drafts<D>(
  name: string,
  draw: fc.Arbitrary<D>,
  make: (world: World, drawn: D) => Step | null,
): fc.Arbitrary<Draft> {
  return draw.map((drawn) =>
    Object.assign((world: World) => make(world, drawn), {
      [fc.toStringMethod]: () => `${name} ${fc.stringify(drawn)}`,
    }),
  )
}

/** Bytes as text, so that a difference can be read. */
function plain(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return readable(reply)
  if (Array.isArray(reply)) return reply.map(plain)
  if (typeof reply !== 'object' || reply === null) return reply
  return Object.fromEntries(Object.entries(reply).map(([name, value]) => [name, plain(value)]))
}
