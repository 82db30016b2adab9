import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { plant, sources, type Fault } from '../../simulation/plant.js'
import { bundle, type Bundle } from '../bench/program.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** The programs of the bench's processes, with the library and the journal in them: a process that comes back does so in a moment. */
export interface Program {
  readonly member: string
  readonly consumer: string
  remove(): void
}

/** @param fault is put into the journal, and the bench must find it */
export async function buildProgram(fault?: Fault): Promise<Program> {
  const entries = {
    member: join(ROOT, 'test/faults/journal/member.ts'),
    consumer: join(ROOT, 'test/faults/journal/consumer.ts'),
  }
  const made = await bundleOf(entries, fault)
  return { ...made.paths, remove: () => made.remove() }
}

/** Files with the library and the journal in them, by the names of their entries, with a fault in the journal. */
export function bundleOf<K extends string>(
  entries: Readonly<Record<K, string>>,
  fault?: Fault,
): Promise<Bundle<K | 'sqlite-worker'>> {
  const broken = fault === undefined ? new Map<string, string>() : plant(fault, journalSources())
  const all = { ...entries, 'sqlite-worker': join(ROOT, 'src/server/database/sqlite-worker.ts') }
  return bundle('journal-faults', all, broken)
}

/** The places in the source where a fault can be planted: in the journal, and in the delivery of webhooks. */
export function journalSources(): ReturnType<typeof sources> {
  return sources().filter(({ fileName }) => /^server\/(journal|database|delivery)\//.test(fileName))
}
