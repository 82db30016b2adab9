import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** Beside the compiled service, also where the service runs from its sources. */
export function builtPage(): string {
  return join(dirname(createRequire(import.meta.url).resolve('redelayed-server/package.json')), 'dist', 'ui')
}
