import { DurabilityError, InvalidArgumentError, type Acknowledgement } from '../../errors.js'
import { integer, onlyKnown } from '../../options.js'
import { durationMs, type Duration } from '../../duration.js'
import type { WaitedFor } from '../../store/durable-scripts.js'

/** Waits until replicas have received an offer (`WAIT`). They have it in memory then, not necessarily on disk. */
export interface ReplicaDurability {
  /** How many replicas must have received the message. 1 to 1,000. */
  readonly replicas: number
  /** How long the server waits for them, in milliseconds. 1 to 600,000. */
  readonly timeoutMs: Duration
  /** Does not wait for the append-only file. Default false. */
  readonly aof?: false | undefined
}

/** Waits until an offer is synced to disk in the append-only file (`WAITAOF`; Redis or Valkey 7.2 or later, `appendonly yes`). */
export interface AofDurability {
  /** Waits for the server's own append-only file. */
  readonly aof: true
  /** How many replicas must have synced the message as well. 0 to 1,000; default 0. */
  readonly replicas?: number | undefined
  /** How long the server waits, in milliseconds. 1 to 600,000; default 5,000, as `everysec` may take two seconds. */
  readonly timeoutMs?: Duration | undefined
}

/** Where a message must be stored before a call resolves. */
export type Durability = ReplicaDurability | AofDurability

/** The waiting command, to be sent after the writes. */
export interface Wait {
  readonly command: 'WAIT' | 'WAITAOF' | undefined
  readonly args: readonly string[]
  /** The arguments that do not wait, to check that the server has the command and this user may call it. */
  readonly probe: readonly string[]
  readonly asked: Acknowledgement
  readonly timeoutMs: number
}

const MAX_REPLICAS = 1_000
const MAX_TIMEOUT_MS = 600_000
const AOF_TIMEOUT_MS = 5_000

/** Checks and copies the option. */
export function resolveDurability(durability: Durability): Wait {
  onlyKnown('durability', durability, ['replicas', 'timeoutMs', 'aof'])
  const { aof = false, replicas, timeoutMs } = durability
  if (typeof aof !== 'boolean') throw new InvalidArgumentError('durability.aof', 'true or false', aof)
  const count = integer('durability.replicas', aof ? (replicas ?? 0) : replicas, aof ? 0 : 1, MAX_REPLICAS)
  const ms = durationMs('durability.timeoutMs', aof ? (timeoutMs ?? AOF_TIMEOUT_MS) : timeoutMs, 1, MAX_TIMEOUT_MS)
  const asked = { replicas: count, aof }
  return aof
    ? { command: 'WAITAOF', args: ['1', String(count), String(ms)], probe: ['1', '0', '1'], asked, timeoutMs: ms }
    : { command: 'WAIT', args: [String(count), String(ms)], probe: ['0', '1'], asked, timeoutMs: ms }
}

/** No wait: the write only uses a connection that never sends a command twice. */
export const NO_WAIT: Wait = Object.freeze({
  command: undefined,
  args: [],
  probe: [],
  asked: Object.freeze({ replicas: 0, aof: false }),
  timeoutMs: 0,
})

/** Whether one command can wait for both. */
export function isSameWait(one: Wait, other: Wait): boolean {
  return one.command === other.command && one.args.join() === other.args.join()
}

/** The error of an accepted write that did not reach its durability; `undefined` if it did. */
export function shortfall(
  accepted: ConstructorParameters<typeof DurabilityError>[0],
  { asked, timeoutMs }: Wait,
  { by, error: cause }: Omit<WaitedFor, 'reply'>,
): DurabilityError | undefined {
  const reached = cause === undefined && by.replicas >= asked.replicas && (by.aof || !asked.aof)
  return reached ? undefined : new DurabilityError(accepted, asked, by, timeoutMs, { cause })
}
