// `npm run lint`: everything that is wrong without running the code. All steps run; one that fails makes the exit code 1.
import { ensureInstalled, root } from './ensure-installed.mjs'
import { runSteps } from './run-steps.mjs'

ensureInstalled()
ensureInstalled(`${root}benchmarks`) // the types of what they compare with

const tsc = (/** @type {string} */ project) => ({
  name: `types of ${project}`,
  script: 'node_modules/typescript/bin/tsc',
  args: ['--noEmit', '-p', project],
})
const passed = await runSteps([
  { name: 'build', script: 'scripts/build.mjs' }, // the benchmarks import what was built
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
  { name: 'eslint', script: 'node_modules/eslint/bin/eslint.js', args: ['.'] },
  { name: 'prettier', script: 'node_modules/prettier/bin/prettier.cjs', args: ['--check', '--log-level=warn', '.'] },
])
process.exitCode = passed ? 0 : 1
