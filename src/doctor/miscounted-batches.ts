import type { ReliableKeys } from '../keys.js'
import { asArray, asBytes, asInteger, asText } from '../store/replies.js'
import type { Sender } from '../store/sender.js'
import { Pace } from './pace.js'

/** A batch that counts more pending messages than it has: it does not finish when these have ended. */
export interface MiscountedBatch {
  readonly name: string
  /** The pending messages by its count. */
  readonly pending: number
  /** The messages that name the batch. */
  readonly held: number
}

/** What Redis has of batches. */
interface BatchFields {
  /** The counts of unfinished batches with pending messages, as they are stored. */
  readonly counts: ReadonlyMap<string, string>
  /** How many messages name a batch. */
  readonly held: ReadonlyMap<string, number>
}

const FIELDS_PER_SCAN = '10'
/** With more fields the counts are not compared, because one missing field would make a count seem too high. */
const MOST_FIELDS = 10_000
/** The most batches to report. */
const MOST_BATCHES = 100
/** As in shared/batches.lua. */
const [BATCH_BYTES, COUNTS_BYTES] = [255, 160]
const COUNTS_OF_UNFINISHED = /^[oc],(\d{1,16})(,\d{1,16}){4},\d*,\d*,\d*$/

export async function miscountedBatches(sender: Sender, keys: ReliableKeys): Promise<readonly MiscountedBatch[]> {
  if (asInteger(await sender.call('HLEN', [keys.batches], { resend: 'reads' })) > MOST_FIELDS) return []
  const first = await fieldsOf(sender, keys)
  if (first === null || miscountedIn(first).length === 0) return []
  // Another client can add or end messages between two commands. Each of these changes the counts, and none changes them back. So the
  // messages of the second reading are all of a batch whose counts are the same before and after it.
  const second = await fieldsOf(sender, keys)
  if (second === null) return []
  const found: MiscountedBatch[] = []
  for (const batch of miscountedIn({ counts: first.counts, held: second.held }).slice(0, MOST_BATCHES)) {
    const field = Buffer.from(`b${batch.name}`, 'latin1')
    const counts = await sender.call('HGET', [keys.batches, field], { resend: 'reads' })
    if (counts === null || asBytes(counts).toString('latin1') !== first.counts.get(batch.name)) continue
    found.push({ ...batch, name: field.subarray(1).toString() })
  }
  return found
}

/** The batches of these that count more messages than they have, by their names in latin1. */
function miscountedIn({ counts, held }: BatchFields): MiscountedBatch[] {
  return [...counts].flatMap(([name, text]) => {
    const batch = { name, pending: pendingIn(text), held: held.get(name) ?? 0 }
    return batch.pending > batch.held ? [batch] : []
  })
}

function pendingIn(counts: string): number {
  return Number(COUNTS_OF_UNFINISHED.exec(counts)?.[1] ?? 0)
}

/** `null` if there are too many fields. */
async function fieldsOf(sender: Sender, { batches }: ReliableKeys): Promise<BatchFields | null> {
  const pace = new Pace()
  const seen = new Set<string>() // HSCAN can return a field twice
  const [counts, held] = [new Map<string, string>(), new Map<string, number>()]
  let cursor = '0'
  do {
    const scan = () => sender.call('HSCAN', [batches, cursor, 'COUNT', FIELDS_PER_SCAN], { resend: 'reads' })
    const [next, page] = asArray(await pace.run(scan))
    const items = asArray(page).map(asBytes)
    for (let at = 0; at + 1 < items.length; at += 2) {
      const [field, value] = [asBytes(items[at]).toString('latin1'), asBytes(items[at + 1])]
      if (seen.has(field)) continue
      seen.add(field)
      const [kind, name] = [field.slice(0, 1), field.slice(1)]
      if (kind === 'm' && value.length <= BATCH_BYTES) {
        const batch = value.toString('latin1')
        held.set(batch, (held.get(batch) ?? 0) + 1)
      } else if (kind === 'b' && name.length <= BATCH_BYTES && value.length <= COUNTS_BYTES) {
        const text = value.toString('latin1')
        if (pendingIn(text) > 0) counts.set(name, text)
      }
    }
    cursor = asText(next)
  } while (cursor !== '0' && seen.size <= MOST_FIELDS)
  return cursor === '0' ? { counts, held } : null
}
