import type { createClient } from '../../../src/client.js'
import type { codecs } from '../../../src/codecs/index.js'
import { load, type Fault } from '../plant.js'

/** The simulated code: the package as users get it, or with a fault. */
export interface ClientCode {
  readonly createClient: typeof createClient
  readonly codecs: typeof codecs
}

export async function loadClientCode(fault?: Fault): Promise<ClientCode> {
  return (await load(['index.ts'], fault)) as ClientCode
}
