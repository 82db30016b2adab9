import { expect } from 'chai'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))

describe('npm run serve', function () {
  this.timeout(240_000)
  let dataDir: string
  let child: ChildProcess

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'redelayed-serve-'))
  })
  afterEach(async () => {
    if (child.exitCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
    }
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('prints three commands that work as they are printed, and ends with 0', async () => {
    const env = { ...process.env, REDIS_URL: undefined }
    const args = ['scripts/run.mjs', 'serve', '--port', '0', '--data-dir', dataDir]
    child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    await new Promise<void>((resolve, reject) => {
      const read = (bytes: Buffer): void => {
        out += bytes.toString()
        if (out.includes('/openapi.json')) resolve()
      }
      child.stdout?.on('data', read)
      child.stderr?.on('data', read)
      child.once('exit', () => reject(new Error(out)))
    })
    const commands = out.split('\n').flatMap((line) => /^ {2}(curl .*)$/.exec(line)?.[1] ?? [])
    expect(commands).to.have.length(3)
    const run = (command = ''): unknown => JSON.parse(execFileSync('sh', ['-c', command], { encoding: 'utf8' }))
    const [push, receive, acknowledge = ''] = commands
    expect(run(push)).to.have.property('outcome', 'added')
    const { messages } = run(receive) as { messages: { body: unknown; lease: string }[] }
    expect(messages.map(({ body }) => body)).to.deep.equal([{ order: 7 }])
    expect(run(acknowledge.replace('<lease>', messages[0]?.lease ?? ''))).to.deep.equal({ results: ['ok'] })

    const code = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    expect(await code).to.equal(0)
  })
})
