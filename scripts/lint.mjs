// `npm run lint`: everything that is wrong without running the code. All steps run; one that fails makes the exit code 1.
import { availableParallelism } from 'node:os'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { runSteps } from './run-steps.mjs'

ensureInstalled()
ensureInstalled(`${root}benchmarks`) // the types of what they compare with

const tsc = (/** @type {string} */ project) => ({
  name: `types of ${project}`,
  script: 'node_modules/typescript/bin/tsc',
  args: ['--noEmit', '-p', project],
})
/** The longest one first, so that the others are done beside it. */
const steps = [
  { name: 'eslint', script: 'node_modules/eslint/bin/eslint.js', args: ['.'] },
  { name: 'generated Lua module is up to date', script: 'scripts/generate-lua.mjs', args: ['--check'] },
  {
    name: 'layers',
    script: 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs',
    args: ['--config', '.dependency-cruiser.cjs', 'src'],
  },
  tsc('tsconfig.json'),
  tsc('test/tsconfig.json'),
  tsc('scripts/tsconfig.json'),
  tsc('benchmarks/tsconfig.json'),
  {
    name: 'API reference',
    script: 'node_modules/typedoc/bin/typedoc',
    args: [
      '--emit',
      'none',
      '--logLevel',
      'Warn',
      '--treatWarningsAsErrors',
      '--disableGit',
      '--sourceLinkTemplate',
      'src/{path}#L{line}',
      '--gitRevision',
      'main',
    ],
  },
  { name: 'parity with Redisson', script: 'scripts/parity.mjs', args: ['--check'] },
  { name: 'code blocks and links in the docs', script: 'scripts/check-docs.mjs' },
  { name: 'prettier', script: 'node_modules/prettier/bin/prettier.cjs', args: ['--check', '--log-level=warn', '.'] },
]
// the benchmarks import what was built
const isBuilt = await runSteps([{ name: 'build', script: 'scripts/build.mjs' }])
const isClean = await runSteps(steps, Math.min(2, availableParallelism()))
process.exitCode = isBuilt && isClean ? 0 : 1
