import { runMocha, summary } from './mocha.mjs'
console.log(summary(await runMocha({ args: ['test/faults/faults.faults.ts', ...process.argv.slice(2)] })))
