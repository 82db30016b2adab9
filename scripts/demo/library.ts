// The built package, with the types of its source, so that checking these files needs no build. The tests of the demo
// let it run on the source instead.
import type * as Library from '../../src/index.js'

const built = process.env.REDELAYED_DEMO_LIBRARY ?? '../../dist/index.js'
export const { createClient, dueOf } = (await import(built)) as typeof Library
