import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Fault } from '../../simulation/plant.js'
import { bundleOf } from '../journal/program.js'

const SERVER = fileURLToPath(new URL('../../../src/server', import.meta.url))

/** The service and the command that looks after its journal, each in one file: a process that comes back does so in a moment. */
export interface HttpProgram {
  readonly serve: string
  readonly journal: string
  remove(): void
}

/** @param fault is put into the journal, and the bench must find it */
export async function buildHttpProgram(fault?: Fault): Promise<HttpProgram> {
  const entries = { serve: join(SERVER, 'cli/serve.ts'), journal: join(SERVER, 'cli/journal.ts') }
  const bundle = await bundleOf(entries, fault)
  return { ...bundle.paths, remove: () => bundle.remove() }
}
