import type { createClient } from '../../../src/client.js'
import type { codecs } from '../../../src/codecs/index.js'

/** What is simulated: the package as users get it, or a broken copy of it. */
export interface ClientCode {
  readonly createClient: typeof createClient
  readonly codecs: typeof codecs
}

export async function loadClientCode(src: URL): Promise<ClientCode> {
  return (await import(new URL('index.ts', src).href)) as ClientCode
}
