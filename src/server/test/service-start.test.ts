import { expect } from 'chai'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))

interface Received {
  readonly id: string
  readonly lease: string
  readonly body: unknown
}

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

  /** Resolves with what it prints when it is ready. */
  async function start(more: NodeJS.ProcessEnv = {}): Promise<string> {
    const env = { ...process.env, REDIS_URL: undefined, ...more }
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
    return out
  }

  async function stop(): Promise<void> {
    const code = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    expect(await code).to.equal(0)
  }

  const commandsIn = (out: string): string[] =>
    out.split('\n').flatMap((line) => /^ {2}(curl .*)$/.exec(line)?.[1] ?? [])
  const run = (command = ''): unknown => JSON.parse(execFileSync('sh', ['-c', command], { encoding: 'utf8' }))
  const received = (command = ''): Received[] => (run(command) as { messages: Received[] }).messages

  it('prints three commands that work as they are printed, and ends with 0', async () => {
    const commands = commandsIn(await start())
    expect(commands).to.have.length(3)
    const [push, receive, acknowledge = ''] = commands
    expect(run(push)).to.have.property('outcome', 'added')
    const messages = received(receive)
    expect(messages.map(({ body }) => body)).to.deep.equal([{ order: 7 }])
    expect(run(acknowledge.replace('<lease>', messages[0]?.lease ?? ''))).to.deep.equal({ results: ['ok'] })
    await stop()
  })

  it('uses an emulator where there is no server, says so loudly, and its journal puts back what that forgets', async () => {
    const nowhere = { PATH: dataDir }
    const first = await start(nowhere)
    expect(first)
      .to.include('Redis: js-redis-server, an emulator in this process.')
      .and.include('*** This emulator is slow')
    const [key = ''] = /rdk_\S+/.exec(first) ?? []
    const [push, receive, acknowledge = ''] = commandsIn(first)
    for (const id of ['a', 'b'])
      expect(run(push?.replace('{"delay"', `{"id":"${id}","delay"`))).to.have.property('outcome', 'added')
    const [message] = received(receive)
    expect(run(acknowledge.replace('<lease>', message?.lease ?? ''))).to.deep.equal({ results: ['ok'] })
    await stop()

    const second = commandsIn(await start(nowhere))[1]?.replace('<your key>', key)
    const left = received(second)
    expect(left.map(({ id, body }) => [id, body])).to.deep.equal([[message?.id === 'a' ? 'b' : 'a', { order: 7 }]])
    expect(received(second?.replace('10000', '100'))).to.deep.equal([])
    await stop()
  })
})
