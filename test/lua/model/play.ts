/** Takes steps on a real Redis, many in one pipeline, and reads what is there afterwards. */
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../../../src/keys.js'
import * as generated from '../../../src/store/scripts/generated.js'
import { asArray, asBytes, asInteger, asText } from '../../../src/store/replies.js'
import { HOUR, shown, type Content, type Keyspace } from './keyspace.js'
import type { Command, Step } from './operation.js'
import { exportsOf } from '../../support/exports.js'

const PARTS = ['timeouts', 'order', 'destination', 'quarantine'] as const

/** The contents of one queue. */
export type QueueContent = Record<(typeof PARTS)[number], Content>

export interface Scene {
  readonly steps: readonly Step[]
  /** The checks after the last step. */
  readonly queues: readonly QueueKeys[]
  /** The calls after these checks. */
  readonly epilogue?: readonly Command[]
}

export interface Outcome {
  readonly replies: readonly unknown[]
  readonly contents: readonly QueueContent[]
}

/** A pipeline cannot react to an unknown script, so they are all made known before the first one. */
export async function loadScripts(redis: Redis): Promise<void> {
  for (const { source } of Object.values(exportsOf(generated))) await redis.script('LOAD', source)
}

export async function play(redis: Redis, scenes: readonly Scene[]): Promise<Outcome[]> {
  const pipeline = redis.pipeline()
  const send = ([command, args]: Command) => pipeline.callBuffer(command, ...args)
  for (const { steps, queues, epilogue = [] } of scenes) {
    for (const { commands } of steps) commands.forEach(send)
    send(look(queues))
    epilogue.forEach(send)
  }
  const results = (await pipeline.exec()) ?? []

  let at = 0
  const take = (count: number): unknown[] =>
    results.slice(at, (at += count)).map(([error, reply]) => {
      if (error !== null) throw error
      return reply
    })
  return scenes.map(({ steps, queues, epilogue = [] }) => {
    const replies = steps.map((step) => step.decode(take(step.commands.length).at(-1)))
    const contents = contentsFrom(take(1)[0], queues.length)
    take(epilogue.length)
    return { replies, contents }
  })
}

/** The contents of the model, to be compared with `contents`. */
export function contentsOf(redis: Keyspace, queues: readonly QueueKeys[]): QueueContent[] {
  return queues.map((queue) => inParts((part) => redis.content(queue[part])))
}

/** Fails with what differs only, written out in full: fast-check prints no diff. */
export function agree<T extends object>(when: string, real: T, model: T): void {
  if (isDeepStrictEqual(real, model)) return
  const full = (value: unknown) => inspect(value, { depth: null, breakLength: 120, maxArrayLength: null })
  const parts = Object.keys(model).filter((part) => !isDeepStrictEqual(real[part as keyof T], model[part as keyof T]))
  const lines = parts.map((part) => {
    const [is, should] = [real[part as keyof T], model[part as keyof T]]
    return `${part}: ${full(is)}\n  the model: ${full(should)}`
  })
  throw new Error(`${when}: ${lines.join('\n')}`)
}

export function keysOf(queues: readonly QueueKeys[]): string[] {
  return queues.flatMap((queue) => [...PARTS, 'leader' as const].map((part) => queue[part]))
}

// All keys in one command, whose reply is cheap to read: the exhaustive tests look ten thousands of times.
const LOOK = `
local contents = {}
for i, key in ipairs(KEYS) do
  local type = redis.call('TYPE', key).ok
  local holds = {}
  if type == 'zset' then holds = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  if type == 'list' then holds = redis.call('LRANGE', key, 0, -1) end
  contents[i] = {type, holds, redis.call('PTTL', key)}
end
return contents`

function look(queues: readonly QueueKeys[]): Command {
  const keys = queues.flatMap((queue) => PARTS.map((part) => queue[part]))
  return ['EVAL', [LOOK, String(keys.length), ...keys]]
}

function contentsFrom(reply: unknown, queues: number): QueueContent[] {
  const contents = asArray(reply).map(contentFrom)
  return Array.from({ length: queues }, () => inParts(() => contents.shift()!))
}

function contentFrom(reply: unknown): Content {
  const [type, holds, ttl] = asArray(reply)
  const bytes = asArray(holds).map(asBytes)
  const expiresIn = asInteger(ttl) < 0 ? null : Math.round(asInteger(ttl) / HOUR)
  if (asText(type) !== 'zset') return { holds: bytes.map(shown), expiresIn }
  const pairs = bytes.flatMap((entry, i) => (i % 2 === 0 ? [`${shown(entry)} at ${bytes[i + 1]!.toString()}`] : []))
  return { holds: pairs, expiresIn }
}

function inParts(content: (part: (typeof PARTS)[number]) => Content): QueueContent {
  return {
    timeouts: content('timeouts'),
    order: content('order'),
    destination: content('destination'),
    quarantine: content('quarantine'),
  }
}
