// `node --import ./scripts/use-dist.mjs`: what imports src/x.ts gets dist/x.js, in this process and in those it starts.
// It stays plain JavaScript, with its hooks, because it also runs in processes that have no tsx, such as the command line.
import { register } from 'node:module'

register('./use-dist-hooks.mjs', import.meta.url)
