import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandFailed, LibraryCommand } from '../console/library-command.js'
import { Queues } from '../console/queues.js'

describe('queues that libraries use', () => {
  let dir = ''
  before(() => (dir = mkdtempSync(join(tmpdir(), 'redelayed-queues-'))))
  after(() => rmSync(dir, { recursive: true, force: true }))

  /** A command line that runs `source`. */
  function commandThat(source: string): LibraryCommand {
    const program = join(dir, `${Math.random()}.mjs`)
    writeFileSync(program, source)
    return new LibraryCommand(async () => ({ url: 'redis://127.0.0.1:1', isCluster: false }), program)
  }

  const failure = async (running: Promise<unknown>): Promise<CommandFailed> => {
    const thrown = await running.then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(thrown).to.be.instanceOf(CommandFailed)
    return thrown as CommandFailed
  }

  it('survive a command that is killed while it prints', async () => {
    const killed = commandThat(`process.stdout.write('[{"queue":', () => process.kill(process.pid, 'SIGKILL'))`)
    expect((await failure(killed.run('stats'))).message).to.equal('the command could not examine this Redis')
    await killed.stop()
  })

  it('refuse arguments that no command can have, and report the refusal of a command', async () => {
    const refusing = commandThat(
      `console.error(JSON.stringify({ error: { message: 'got "' + '\\\\x'.repeat(300) + '"' } })); process.exitCode = 2`,
    )
    const { message, isUsage } = await failure(refusing.run('peek'))
    expect([isUsage, message.length, message.slice(0, 9)]).to.deep.equal([true, 500, 'got "\\x\\x'])
    expect((await failure(refusing.run('peek', [], ['a\0b']))).isUsage).to.equal(true)
    await refusing.stop()
  })

  it('keep only the shown part of a printed document', async () => {
    const payload = 'x'.repeat(1_000_000)
    const run = (): Promise<unknown> =>
      Promise.resolve({
        ...{ queue: 'mails', now: 1, pending: 1, delivered: 1, undecodable: [], reliable: null },
        scheduled: [{ value: payload, due: 1, ticket: null }],
        ready: [payload],
        quarantined: [{ reason: payload, at: '2026-01-01T00:00:00.000Z', hex: 'ff', size: 1 }],
      })
    const queues = new Queues({ run }, { time: () => Promise.resolve([0, 0]), pipeline: () => expect.fail() })
    const look = await queues.look('mails', { limit: 20, codec: 'json' })
    expect(JSON.stringify(look).length).to.be.below(10_000)
    expect(look.delayed?.scheduled[0]?.payload).to.include({ text: `"${'x'.repeat(4_095)}`, isCut: true })
  })

  it('count the agenda of as many shards as a request may', async () => {
    const shards = Array.from({ length: 2_000 }, (_, n) => ({ queue: `parts:${n}` }))
    const run = (): Promise<unknown> => Promise.resolve([{ queue: 'parts', kind: 'reliable', shards }])
    let sent = 0
    const pipeline = (commands: string[][]) => ({
      exec: () => {
        sent += commands.length
        return Promise.resolve(commands.map((): [null, number] => [null, 1]))
      },
    })
    const queues = new Queues({ run }, { time: () => Promise.resolve([0, 0]), pipeline })
    const { exact, buckets } = await queues.agenda('parts', 0, 1_000, 10)
    expect(exact).to.equal(false)
    expect(sent).to.be.within(20_000, 25_100)
    expect(buckets[0]?.count).to.be.above(0)
  })
})
