import type { ReliableKeys } from '../keys.js'
import { asArray, asBytes, asFlag, asInteger, asText } from '../store/replies.js'
import type { Sender } from '../store/sender.js'
import { Pace } from './pace.js'

/** Records of a reliable queue whose message or place another program, or an eviction, has deleted. */
export interface LeftRecords {
  /** Messages that batches count and the queue does not have: their batches cannot finish. */
  readonly messages: number
  /** Finished batches without a place: they are not forgotten. */
  readonly batches: number
  /** Completed messages without a place: they are not removed. */
  readonly completed: number
}

const FIELDS_PER_SCAN = '10'
/** The most fields of the batches to read. */
const MOST_FIELDS = 10_000
/** Another client can end messages between two commands, so the least of some readings counts. */
const READINGS = 3
/** As in reliable-poll.lua: it looks at no longer ids, batches and counts, and into no longer setting. */
const [ID_BYTES, BATCH_BYTES, COUNTS_BYTES, SETTING_BYTES] = [576, 255, 160, 16]
const COUNTS_OF_FINISHED = /^f(,\d{1,16}){5},\d*,\d*,\d*$/

export async function leftRecordsOf(sender: Sender, keys: ReliableKeys): Promise<LeftRecords> {
  return { ...(await leftOfBatches(sender, keys)), completed: await leftOfCompleted(sender, keys) }
}

async function leftOfBatches(sender: Sender, keys: ReliableKeys): Promise<Omit<LeftRecords, 'completed'>> {
  const pace = new Pace()
  const seen = new Set<string>() // HSCAN can return a field twice
  let [messages, batches, cursor] = [0, 0, '0']
  do {
    const scan = () => sender.call('HSCAN', [keys.batches, cursor, 'COUNT', FIELDS_PER_SCAN], { resend: 'reads' })
    const [next, page] = asArray(await pace.run(scan))
    const items = asArray(page).map(asBytes)
    const fresh = items.flatMap((field, at) => {
      const name = field.toString('latin1')
      if (at % 2 === 1 || seen.has(name)) return []
      seen.add(name)
      return [[field, asBytes(items[at + 1])] as const]
    })
    const kinds = await pace.run(() => Promise.all(fresh.map(([field, value]) => leftOf(sender, keys, field, value))))
    messages += kinds.filter((kind) => kind === 'message').length
    batches += kinds.filter((kind) => kind === 'batch').length
    cursor = asText(next)
  } while (cursor !== '0' && seen.size < MOST_FIELDS)
  return { messages, batches }
}

/** What a field of the batches is the rest of; `null` if it is none. */
async function leftOf(
  sender: Sender,
  { messages, batches, batchesAt }: ReliableKeys,
  field: Buffer,
  value: Buffer,
): Promise<'message' | 'batch' | null> {
  const [kind, name] = [field.subarray(0, 1).toString(), field.subarray(1)]
  const isThere = async (key: string, one: Buffer): Promise<boolean> =>
    asFlag(await sender.call('HEXISTS', [key, one], { resend: 'reads' }))
  // the field last: a script that ends the message, or forgets the batch, removes both
  if (kind === 'm' && (name.length > ID_BYTES || value.length > BATCH_BYTES)) return null
  if (kind === 'm') return !(await isThere(messages, name)) && (await isThere(batches, field)) ? 'message' : null
  if (kind !== 'b' || name.length > BATCH_BYTES || value.length > COUNTS_BYTES) return null
  if (!COUNTS_OF_FINISHED.test(value.toString('latin1'))) return null
  if ((await sender.call('ZSCORE', [batchesAt, name], { resend: 'reads' })) !== null) return null
  return (await isThere(batches, field)) ? 'batch' : null
}

/** Without the setting no script looks at the records. */
async function leftOfCompleted(sender: Sender, { config, completed, completedAt }: ReliableKeys): Promise<number> {
  const sizeOf = async (command: string, ...args: string[]): Promise<number> =>
    asInteger(await sender.call(command, args, { resend: 'reads' }))
  const setting = await sizeOf('HSTRLEN', config, 'keepCompleted')
  if (setting === 0 || setting > SETTING_BYTES) return 0
  let least = Infinity
  for (let n = 0; n < READINGS && least > 0; n++) {
    const before = await sizeOf('ZCARD', completedAt)
    const records = await sizeOf('HLEN', completed)
    const after = await sizeOf('ZCARD', completedAt)
    least = Math.min(least, Math.max(0, records - Math.max(before, after)))
  }
  return least
}
