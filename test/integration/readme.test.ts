import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { redisUrl, uniqueName } from '../support/redis.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('README', () => {
  it('opens with a program that runs, prints the right order and ends by itself', async function () {
    this.timeout(20_000)
    const [, program] = /^```ts\n(.*?)^```/ms.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []
    expect(program).to.be.a('string')
    const source = String(program)
      .replace("'redelayed'", "'../../src/index.js'")
      .replace('redis://127.0.0.1:6379', redisUrl())
      .replace("'orders'", `'${uniqueName('readme')}'`)
    expect(source).to.include(redisUrl())
    const dir = join(root, '.cache/readme')
    mkdirSync(dir, { recursive: true })
    const file = join(dir, `${process.pid}.ts`)
    writeFileSync(file, source)
    try {
      const child = spawn(process.execPath, ['--import', 'tsx', file], {
        cwd: root,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let output = ''
      child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()))
      const [code] = (await once(child, 'close')) as [number | null]
      expect(output.trim()).to.equal('{ id: 2 }')
      expect(code).to.equal(0)
    } finally {
      rmSync(file)
    }
  })
})
