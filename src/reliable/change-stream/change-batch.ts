import { DecodeError, toRedelayed, type RedelayedError } from '../../errors.js'
import type { StreamEntry } from '../../store/reliable-change-store.js'
import { readEntry } from './change-entry.js'
import type { ChangeBatch } from './change.js'

/** What an entry says; or why it cannot be read. */
export function batchOf({ id, value }: StreamEntry): ChangeBatch | { readonly error: RedelayedError } {
  try {
    if (value === null) throw new DecodeError('changes', 'it is no entry of this package')
    const { epoch, client, changes } = readEntry(value)
    return { position: { epoch, id }, at: Number.parseInt(id, 10), client, changes }
  } catch (thrown) {
    return { error: toRedelayed(thrown) }
  }
}
