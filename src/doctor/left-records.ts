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

export async function leftRecordsOf(sender: Sender, keys: ReliableKeys): Promise<LeftRecords> {
  return { ...(await leftOfBatches(sender, keys)), completed: await leftOfCompleted(sender, keys) }
}

async function leftOfBatches(sender: Sender, keys: ReliableKeys): Promise<Omit<LeftRecords, 'completed'>> {
  const pace = new Pace()
  let [messages, batches, read, cursor] = [0, 0, 0, '0']
  do {
    const scan = () => sender.call('HSCAN', [keys.batches, cursor, 'COUNT', FIELDS_PER_SCAN], { resend: 'reads' })
    const [next, page] = asArray(await pace.run(scan))
    const fields = asArray(page).map(asBytes)
    const kinds = await pace.run(() =>
      Promise.all(
        fields.map((field, at) => (at % 2 === 0 ? leftOf(sender, keys, field, fields[at + 1]) : Promise.resolve(null))),
      ),
    )
    messages += kinds.filter((kind) => kind === 'message').length
    batches += kinds.filter((kind) => kind === 'batch').length
    read += fields.length / 2
    cursor = asText(next)
  } while (cursor !== '0' && read < MOST_FIELDS)
  return { messages, batches }
}

/** What a field of the batches is the rest of; `null` if it is none. */
async function leftOf(
  sender: Sender,
  { messages, batches, batchesAt }: ReliableKeys,
  field: Buffer,
  value: Buffer | undefined,
): Promise<'message' | 'batch' | null> {
  const [kind, name] = [field.subarray(0, 1).toString(), field.subarray(1)]
  const isThere = async (key: string, one: Buffer): Promise<boolean> =>
    asFlag(await sender.call('HEXISTS', [key, one], { resend: 'reads' }))
  // the field last: a script that ends the message, or forgets the batch, removes both
  if (kind === 'm') return !(await isThere(messages, name)) && (await isThere(batches, field)) ? 'message' : null
  if (kind !== 'b' || value?.subarray(0, 2).toString() !== 'f,') return null
  if ((await sender.call('ZSCORE', [batchesAt, name], { resend: 'reads' })) !== null) return null
  return (await isThere(batches, field)) ? 'batch' : null
}

async function leftOfCompleted(sender: Sender, { completed, completedAt }: ReliableKeys): Promise<number> {
  let least = Infinity
  for (let n = 0; n < READINGS && least > 0; n++) {
    const records = asInteger(await sender.call('HLEN', [completed], { resend: 'reads' }))
    const places = asInteger(await sender.call('ZCARD', [completedAt], { resend: 'reads' }))
    least = Math.min(least, Math.max(0, records - places))
  }
  return least
}
