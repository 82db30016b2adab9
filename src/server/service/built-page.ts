import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** The folder of the built page, beside the compiled service, also when the service runs from its sources. */
export function builtPage(): string {
  return join(dirname(createRequire(import.meta.url).resolve('redelayed-server/package.json')), 'dist', 'ui')
}
