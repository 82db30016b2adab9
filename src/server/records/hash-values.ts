import { runScript, type ScriptRunner } from '../run-script.js'
import { hashValues } from './scripts/generated.js'

/** So many fields are read: more than there are instances, or restores that are remembered. */
const MOST = 2_000
/** Of a record. */
const BYTES = 65_536

/** The values of a hash in which each instance writes fields, or of some of its fields; what none of them can have written is removed. */
export async function valuesOf(redis: ScriptRunner, key: string, ...fields: readonly string[]): Promise<string[]> {
  return (await runScript(redis, hashValues, key, MOST, BYTES, ...fields)) as string[]
}
