// The built package, with the types of its source, so that checking these files needs no build. The tests of the demo
// let it run on the source instead.

/** @type {typeof import('../../src/index.js')} */
const library = await import(process.env.REDELAYED_DEMO_LIBRARY ?? '../../dist/index.js')

export const { createClient, dueOf } = library
