// `node --import ./scripts/use-dist.mjs`: what imports src/x.ts gets dist/x.js, in this process and in those it starts.
import { register } from 'node:module'

register('./use-dist-hooks.mjs', import.meta.url)
