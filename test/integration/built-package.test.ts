import { expect } from 'chai'
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** `npm test -- --code src` and single files run against src; whole folders, as in CI, against dist. */
const isBuilt = process.env['REDELAYED_TEST_DIST'] !== undefined

describe('The code under test', () => {
  const load = async (path: string): Promise<object> => (await import(new URL(path, import.meta.url).href)) as object

  it('is the built one, also where a test imports src', async function () {
    if (!isBuilt) this.skip()
    for (const file of ['index', 'java/index', 'testing/index', 'keys', 'store/run', 'scheduler/sweeper']) {
      expect(await load(`../../src/${file}.js`)).to.equal(await load(`../../dist/${file}.js`))
    }
  })

  it('is the built one in the processes that a test starts', async function () {
    if (!isBuilt) this.skip()
    const program = `Promise.all([import('./src/index.ts'), import('./dist/index.js')]).then(([a, b]) => console.log(a === b))`
    const root = fileURLToPath(new URL('../..', import.meta.url))
    const out = execFileSync(process.execPath, ['--import', 'tsx', '--eval', program], { cwd: root, encoding: 'utf8' })
    expect(out).to.equal('true\n')
  })
})
