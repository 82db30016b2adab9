import { runScript, type ScriptRunner } from '../run-script.js'
import { hashValues } from './scripts/generated.js'

/** The most fields that are read: more than the instances, and the remembered restores. */
const MOST = 2_000
/** The most bytes of a record. */
const BYTES = 65_536

/** The values of a hash that all instances write to, or of some of its fields. Removes fields that no instance can have written. */
export async function valuesOf(redis: ScriptRunner, key: string, ...fields: readonly string[]): Promise<string[]> {
  return (await runScript(redis, hashValues, key, MOST, BYTES, ...fields)) as string[]
}
