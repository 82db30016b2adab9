// `npm run lint`: everything that is wrong without running the code. Builds if needed, because the benchmarks import what was built;
// then all steps run, and one that fails makes the exit code 1.
import { availableParallelism } from 'node:os'
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { runSteps } from './run-steps.js'

ensureInstalled(root, { workspaces: true })
ensureInstalled(`${root}benchmarks`) // the types of what they compare with
ensureBuilt()

const tsc = (project: string) => ({
  name: `types of ${project}`,
  script: 'node_modules/typescript/bin/tsc',
  args: ['--noEmit', '-p', project],
})
/** The longest one first, so that the others are done beside it. */
const steps = [
  { name: 'eslint', script: 'node_modules/eslint/bin/eslint.js', args: ['.'] },
  { name: 'generated Lua module is up to date', script: 'scripts/run.mjs', args: ['generate-lua', '--check'] },
  {
    name: 'layers',
    script: 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs',
    args: ['--config', '.dependency-cruiser.cjs', 'src'],
  },
  {
    name: 'layers of the service',
    script: 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs',
    args: ['--config', 'src/server/.dependency-cruiser.cjs', 'src/server'],
  },
  tsc('tsconfig.json'),
  tsc('src/server/tsconfig.json'),
  tsc('src/server/ui/tsconfig.json'),
  tsc('src/server/test/browser/tsconfig.json'),
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
  { name: 'parity with Redisson', script: 'scripts/run.mjs', args: ['parity', '--check'] },
  { name: 'licences', script: 'scripts/run.mjs', args: ['licences'] },
  { name: 'tables of options and errors', script: 'scripts/run.mjs', args: ['reference', '--check'] },
  { name: 'code blocks and links in the docs', script: 'scripts/run.mjs', args: ['check-docs'] },
  { name: 'prettier', script: 'node_modules/prettier/bin/prettier.cjs', args: ['--check', '--log-level=warn', '.'] },
]
process.exitCode = (await runSteps(steps, Math.min(2, availableParallelism()))) ? 0 : 1
