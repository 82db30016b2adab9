/** Runs scripts that count the large values they read, and names of other programs for them. */
import * as groupScripts from '../../src/store/reliable-group-scripts.js'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import type { Sender } from '../../src/store/sender.js'
import { uniqueName } from '../support/redis.js'
import { groupKeysOf, NOW, type ReliableRig, type ScriptKeys, type State } from './reliable-support.js'

export const FUTURE = 8_000_000_000_000
/** The first score of messages that are set aside for a paused task, see shared/aside.lua. */
export const ASIDE = 2 ** 53
export const LARGE = 20_000

/** What the scripts of an action did: for each count that of the script with the most. */
export interface Counts {
  /** The large values in the reply of one command. */
  readonly inCommand: number
  /** The large values in the replies of all commands of one script. */
  readonly inScript: number
  /** And their bytes. */
  readonly bytes: number
  /** The commands of one script. */
  readonly commands: number
  /** The commands with a large argument, each with its key. */
  readonly withLarge: readonly string[]
}

/** The script, with commands that count, and a last one that keeps the counts. */
function counting(source: string, key: string): string {
  return `do
    local inCommand, inScript, bytes, commands, withLarge = 0, 0, 0, 0, {}
    local function isLarge(value) return type(value) == 'string' and #value >= ${LARGE} end
    local function note(command, key, ...)
      commands = commands + 1
      for _, argument in ipairs({...}) do
        if isLarge(argument) then withLarge[command .. ' ' .. key] = true end
      end
    end
    local function count(reply)
      local large = 0
      local function add(value)
        if isLarge(value) then large, bytes = large + 1, bytes + #value end
      end
      add(reply)
      for _, value in ipairs(type(reply) == 'table' and reply or {}) do
        add(value)
        for _, field in ipairs(type(value) == 'table' and value or {}) do add(field) end
      end
      inCommand, inScript = math.max(inCommand, large), inScript + large
      return reply
    end
    KEYS.call = function(...)
      note(...)
      return count(redis.call(...))
    end
    KEYS.pcall = function(...)
      note(...)
      return count(redis.pcall(...))
    end
    KEYS.keep = function()
      local names = {}
      for name in pairs(withLarge) do names[#names + 1] = name end
      redis.call('SET', '${key}', cjson.encode({inCommand, inScript, bytes, commands, unpack(names)}))
    end
  end
  local function script()
    ${source.replaceAll('redis.call(', 'KEYS.call(').replaceAll('redis.pcall(', 'KEYS.pcall(')}
  end
  local reply = script()
  KEYS.keep()
  return reply`
}

const sources = new Map(
  [...Object.values(scripts), ...Object.values(groupScripts)].flatMap(({ source }) => [
    [source.sha1 as string, source.source],
  ]),
)

/** A function that runs an action whose scripts count. */
export function useCounts(rig: ReliableRig) {
  const key = uniqueName('counts')
  return async (action: (of: Sender) => Promise<unknown>): Promise<Counts> => {
    let all: Counts = { inCommand: 0, inScript: 0, bytes: 0, commands: 0, withLarge: [] }
    const sender: Sender = {
      async call(command, [script, ...args], options) {
        const source = command === 'EVALSHA' ? sources.get(String(script)) : String(script)
        if (source === undefined) throw new Error(`an unknown script: ${String(script)}`)
        const reply = await rig.sender.call('EVAL', [counting(source, key), ...args], options)
        const counts = JSON.parse((await rig.redis.getdel(key)) ?? '') as [number, number, number, number, ...string[]]
        const [inCommand, inScript, bytes, commands, ...withLarge] = counts
        all = {
          inCommand: Math.max(all.inCommand, inCommand),
          inScript: Math.max(all.inScript, inScript),
          bytes: Math.max(all.bytes, bytes),
          commands: Math.max(all.commands, commands),
          withLarge: [...new Set([...all.withLarge, ...withLarge])].sort(),
        }
        return reply
      },
      pipeline: (commands) => rig.sender.pipeline(commands),
    }
    await action(sender)
    return all
  }
}

/** Names that begin with `start` and a number, in the order of their bytes. */
export function named(start: string, many: number, size: number): string[] {
  return Array.from({ length: many }, (_, n) => `${start}${String(n).padStart(3, '0')}${'x'.repeat(size)}`)
}

/** The place of a message in the order of a group. */
export function place(group: string, at: number, id: string): string {
  return `${String.fromCharCode(group.length)}${group}${String(at).padStart(16, '0')}${id}`
}

/** The states together. */
export function merged(...states: State[]): State {
  const all: Record<string, unknown[]> = {}
  const due: Record<string, unknown[]> = {}
  for (const { due: schedules = {}, dead, ...rest } of states) {
    if (dead !== undefined) all.dead = dead as unknown[]
    for (const [name, pairs] of Object.entries(rest)) all[name] = [...(all[name] ?? []), ...(pairs as unknown[])]
    for (const [priority, pairs] of Object.entries(schedules)) due[priority] = [...(due[priority] ?? []), ...pairs]
  }
  return { ...all, due } as State
}

/** Moves up to a hundred messages from one queue to another. */
export function move(of: Sender, own: ScriptKeys, target: ScriptKeys, targetChannel: string, isRedriven = false) {
  const { messages: targetMessages, due0: targetDue, config: targetConfig, changes: targetChanges } = target
  const targets = { targetMessages, targetDue, targetConfig, targetChanges }
  const keys = { ...own, due: own.due0, ...targets, ...groupKeysOf(own, target) }
  const args = { targetChannel, nowMs: NOW, count: 100, client: 'me', targetName: '"q"', priority: 0, isRedriven }
  return run(of, scripts.move, keys, { ...args, ids: [] })
}
