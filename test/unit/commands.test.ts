import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { Commands } from '../../src/redis/commands.js'
import { KeptCommands } from '../../src/redis/kept-commands.js'
import type { Topology } from '../../src/redis/topology/topology.js'
import { ConnectionError, ShutdownError } from '../../src/errors.js'
import { resolveSettings } from '../../src/options.js'
import { run } from '../../src/store/run.js'
import { script } from '../../src/store/script.js'

const LIMITS = { connectTimeout: 100, commandTimeout: 100 }
const never = new Promise<never>(() => undefined)

describe('Commands where ioredis may keep a command', () => {
  it('ends by its limit and begins no repetition after it, however long it takes to recover', async () => {
    const begunAt: number[] = []
    const client = {
      callBuffer: () => {
        begunAt.push(performance.now())
        return Promise.reject(new Error('Connection is closed.'))
      },
    }
    const topology = {
      watch: { watchFor: () => undefined, start: () => undefined },
      commands: () => client as unknown as Redis,
      recover: () => never,
    } as unknown as Topology
    const commands = new Commands(topology, resolveSettings(LIMITS))
    const calledAt = performance.now()
    const error: unknown = await commands.call('GET', ['key'], { resend: 'reads' }).catch((thrown: unknown) => thrown)
    const endedAt = performance.now()
    expect(error).to.be.instanceOf(ConnectionError)
    expect(endedAt - calledAt).to.be.at.least(200)
    // a timer counts from when the turn of the event loop began, so a wait may end early: what begins then is in time
    for (const at of begunAt)
      expect(at)
        .to.be.lessThan(endedAt)
        .and.to.be.lessThan(calledAt + 201)
    expect(begunAt).to.have.lengthOf.at.least(1)
  })

  it('asks no longer than a call may last whether its first attempt is over', async () => {
    const topology = {
      watch: { watchFor: () => undefined, start: () => undefined },
      commands: () => ({}) as unknown as Redis,
      isOver: () => never,
    } as unknown as Topology
    const commands = new Commands(topology, resolveSettings({ connectTimeout: 5_000, commandTimeout: 5_000 }))
    const askedAt = performance.now()
    expect(await commands.maySendAgain('key', askedAt - 9_900)).to.equal(false)
    expect(performance.now() - askedAt).to.be.lessThan(5_000) // of the ten seconds a tenth of one was left
    commands.giveUp()
  })

  for (const [resend, outcome] of [
    ['harmless', 'unknown'],
    ['reads', 'not-applied'],
  ] as const) {
    it(`says that the outcome is ${outcome} where a later attempt of a call is not sent, if it is '${resend}'`, async () => {
      let isBroken = false
      const client = {
        callBuffer: () => {
          isBroken = true
          return Promise.reject(new Error('Connection is closed.'))
        },
      }
      const topology = {
        watch: { watchFor: () => undefined, start: () => undefined },
        commands: () => {
          if (isBroken) throw new ConnectionError('no connection', 'not-applied')
          return client as unknown as Redis
        },
        recover: async () => undefined,
      } as unknown as Topology
      const commands = new Commands(topology, resolveSettings({ connectTimeout: 5_000, commandTimeout: 5_000 }))
      const error: unknown = await commands.call('EVAL', [], { resend }).catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(ConnectionError).and.to.include({ message: 'no connection', outcome })
      commands.giveUp()
    })
  }

  it('says that the outcome is unknown where a later attempt is refused, and why that was', async () => {
    let calls = 0
    const replies = [
      new Error('Connection is closed.'),
      Object.assign(new Error('NOPERM this user has no permissions'), { name: 'ReplyError' }),
    ]
    const topology = {
      watch: { watchFor: () => undefined, start: () => undefined },
      address: 'redis.example:6379',
      commands: () => ({ callBuffer: () => Promise.reject(replies[Math.min(calls++, 1)]!) }) as unknown as Redis,
      recover: async () => undefined,
    } as unknown as Topology
    const commands = new Commands(topology, resolveSettings({ connectTimeout: 5_000, commandTimeout: 5_000 }))
    const error: unknown = await commands.call('EVAL', [], { resend: 'harmless' }).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(ConnectionError).and.to.include({ outcome: 'unknown' })
    expect((error as ConnectionError).message).to.match(/redis\.example:6379 broke, and a repetition failed: /)
    commands.giveUp()
  })

  it('sends the text of a script where a later attempt reaches a server that does not know it', async () => {
    const sent: string[] = []
    const replies: Record<string, Error> = {
      '1 EVALSHA': new Error('Connection is closed.'),
      '2 EVALSHA': Object.assign(new Error('NOSCRIPT No matching script.'), { name: 'ReplyError' }),
    }
    const callBuffer = async (command: string) => {
      const error = replies[`${sent.push(command)} ${command}`]
      if (error !== undefined) throw error
      return Buffer.from('value')
    }
    const topology = {
      watch: { watchFor: () => undefined, start: () => undefined },
      address: 'redis.example:6379',
      commands: () => ({ callBuffer }) as unknown as Redis,
      recover: async () => undefined,
    } as unknown as Topology
    const commands = new Commands(topology, resolveSettings({ connectTimeout: 5_000, commandTimeout: 5_000 }))
    const source = {
      name: 'get',
      sha1: 'abc',
      source: 'return redis.call("GET", KEYS[1])',
      keys: ['key'],
      args: {},
    } as const
    expect(await run(commands, script(source, String), { key: 'k' }, {}, { resend: 'harmless' })).to.equal('value')
    expect(sent).to.deep.equal(['EVALSHA', 'EVALSHA', 'EVAL'])
    commands.giveUp()
  })

  it('lets an operation finish that a shutdown met, and begins no other one beside it', async () => {
    const topology = {
      commands: () => ({ callBuffer: async () => 'value' }) as unknown as Redis,
    } as unknown as Topology
    const commands = new Commands(topology, resolveSettings(LIMITS))
    let finish = (): void => undefined
    const first = commands.trackOperation(() => new Promise<void>((resolve) => (finish = resolve)))
    const drained = commands.drain()
    const late = commands.trackOperation(async () => expect.fail('it began')).catch((thrown: unknown) => thrown)
    expect(await late).to.be.instanceOf(ShutdownError)
    expect(await commands.call('GET', ['key']), 'a command of the first one').to.equal('value')
    finish()
    await Promise.all([first, drained])
  })

  it('ends a command by when its call began', async () => {
    const kept = new KeptCommands(2_000, () => 'a server')
    const first = await Promise.race([
      kept.keep(never).catch(() => 'one that has just begun'),
      kept.keep(never, performance.now() - 1_900).catch(() => 'one that began before'),
    ])
    expect(first).to.equal('one that began before')
    kept.endAll('the end of the test')
  })
})
