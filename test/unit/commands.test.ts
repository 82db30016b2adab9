import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { Commands } from '../../src/redis/commands.js'
import { KeptCommands } from '../../src/redis/kept-commands.js'
import { ServerAge } from '../../src/redis/connections/server-version.js'
import type { Topology } from '../../src/redis/topology/topology.js'
import { ConnectionError, ShutdownError, UnsupportedServerError } from '../../src/errors.js'
import { reliableKeys } from '../../src/keys.js'
import { resolveSettings } from '../../src/options.js'
import { run } from '../../src/store/run.js'
import { script } from '../../src/store/script.js'

const YOUNG = new ServerAge(() => Promise.resolve(undefined))

const LIMITS = { connectTimeout: 100, commandTimeout: 100 }
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
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
      age: YOUNG,
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

  describe('for a reliable queue, at a server that seems too old', () => {
    const KEY = reliableKeys('jobs').messages
    const setUp = (ask: () => Promise<string | undefined>) => {
      const sent: string[] = []
      const client = {
        callBuffer: (command: string) => Promise.resolve(sent.push(command)),
        pipeline: () => ({
          callBuffer: (command: string) => sent.push(command),
          exec: () => Promise.resolve([[null, 1]]),
        }),
      }
      const age = new ServerAge(ask)
      age.learn('redis_version:6.0.20')
      const topology = {
        age,
        watch: { watchFor: () => undefined, start: () => undefined },
        commands: () => client as unknown as Redis,
      } as unknown as Topology
      const commands = new Commands(topology, resolveSettings(LIMITS))
      const ways = {
        call: () => commands.call('HLEN', [KEY]),
        pipeline: async () => (await commands.pipeline([['HLEN', [KEY]]]))[0],
      }
      return { sent, commands, ways }
    }
    for (const way of ['call', 'pipeline'] as const) {
      it(`a ${way} is sent where the server proves new enough`, async () => {
        const { sent, ways } = setUp(() => Promise.resolve('redis_version:7.0.15'))
        expect(await ways[way]()).to.equal(1)
        expect(sent).to.deep.equal(['HLEN'])
      })

      it(`a ${way} is refused within its limit, and not sent, where the server does not answer`, async () => {
        const { sent, ways } = setUp(() => never)
        const calledAt = performance.now()
        const result: unknown = await ways[way]().catch((thrown: unknown) => thrown)
        expect(result).to.be.instanceOf(UnsupportedServerError)
        expect(performance.now() - calledAt).to.be.lessThan(900) // it would wait a second without its limit of 0.2
        expect(sent).to.deep.equal([])
      })
    }

    it('other keys are not asked about', async () => {
      const { sent, commands } = setUp(() => Promise.reject(new Error('asked')))
      expect(await commands.call('LLEN', ['orders'])).to.equal(1)
      expect(sent).to.deep.equal(['LLEN'])
    })
  })

  it('asks no longer than a call may last whether its first attempt is over', async () => {
    const topology = {
      age: YOUNG,
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
        age: YOUNG,
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
      age: YOUNG,
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

  describe('where a later attempt of a script reaches a server that does not know it', () => {
    const source = { name: 'get', sha1: 'abc', source: 'return 1'.padEnd(50), keys: ['key'], args: {} } as const
    const broken = new Error('Connection is closed.')
    const unknown = Object.assign(new Error('NOSCRIPT No matching script.'), { name: 'ReplyError' })

    /** Runs the script; each command that is sent is answered by the next of `replies`. */
    async function runOn(replies: readonly unknown[]): Promise<{ result: unknown; sent: string[] }> {
      const sent: string[] = []
      const callBuffer = async (command: string): Promise<unknown> => {
        const reply = replies[sent.push(command) - 1]
        if (reply instanceof Error) throw reply
        return reply
      }
      const topology = {
        age: YOUNG,
        watch: { watchFor: () => undefined, start: () => undefined },
        address: 'redis.example:6379',
        commands: () => ({ callBuffer }) as unknown as Redis,
        recover: async () => undefined,
      } as unknown as Topology
      const commands = new Commands(topology, resolveSettings({ connectTimeout: 5_000, commandTimeout: 5_000 }))
      const ran = run(commands, script(source, String), { key: 'k' }, {}, { resend: 'harmless' })
      const result = await ran.catch((thrown: unknown) => thrown)
      commands.giveUp()
      return { result, sent }
    }

    it('sends the text', async () => {
      expect(await runOn([broken, unknown, 'value'])).to.deep.equal({
        result: 'value',
        sent: ['EVALSHA', 'EVALSHA', 'EVAL'],
      })
    })

    for (const [what, end] of [
      ['is not sent', new ConnectionError('no connection', 'not-applied')],
      ['is refused', Object.assign(new Error('OOM command not allowed.'), { name: 'ReplyError' })],
    ] as const) {
      it(`does not know what became of the first attempt if the text ${what}`, async () => {
        const { result, sent } = await runOn([broken, unknown, end])
        expect(sent).to.deep.equal(['EVALSHA', 'EVALSHA', 'EVAL'])
        expect(result).to.be.instanceOf(ConnectionError).and.to.include({ outcome: 'unknown' })
        expect((result as ConnectionError).message).to.include(end.message)
      })
    }

    it('knows that nothing was done if the first answer was that, and the text is not sent', async () => {
      const { result } = await runOn([unknown, new ConnectionError('no connection', 'not-applied')])
      expect(result).to.be.instanceOf(ConnectionError).and.to.include({ outcome: 'not-applied' })
    })

    it('gives the text more time after a failover', async () => {
      const demoted = Object.assign(new Error('READONLY You cannot write against a read only replica.'), {
        name: 'ReplyError',
      })
      const replies = [unknown, demoted, 'value']
      const topology = {
        age: YOUNG,
        watch: { watchFor: () => undefined, start: () => undefined },
        commands: async () => {
          if (replies.length === 1) await pause(150) // until the new master is found
          return {
            callBuffer: async () => {
              const reply = replies.shift()
              if (reply === demoted) await pause(100) // the old master answers late
              if (reply instanceof Error) throw reply
              return reply
            },
          } as unknown as Redis
        },
        onDemoted: () => true,
      } as unknown as Topology
      const commands = new Commands(topology, resolveSettings(LIMITS)) // 200 ms a call
      expect(await run(commands, script(source, String), { key: 'k' }, {}, { resend: 'harmless' })).to.equal('value')
      commands.giveUp()
    })

    it('says that the time of the call is over', async () => {
      const callBuffer = (): Promise<unknown> => Promise.reject(unknown)
      const topology = {
        age: YOUNG,
        watch: { watchFor: () => undefined, start: () => undefined },
        address: 'redis.example:6379',
        commands: () => ({ callBuffer }) as unknown as Redis,
      } as unknown as Topology
      const commands = new Commands(topology, resolveSettings(LIMITS))
      const ran = run(commands, script(source, String), { key: 'k' }, {}, { startedAt: performance.now() - 5_000 })
      const error: unknown = await ran.catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(ConnectionError).and.to.include({ outcome: 'not-applied' })
      expect((error as ConnectionError).message).to.include('the 0.2 s of the call were over before')
      commands.giveUp()
    })

    it('has one time limit for the hash and the text', async () => {
      const callBuffer = (command: string): Promise<unknown> => (command === 'EVAL' ? never : Promise.reject(unknown))
      const topology = {
        age: YOUNG,
        watch: { watchFor: () => undefined, start: () => undefined },
        commands: () => ({ callBuffer }) as unknown as Redis,
        recover: () => never,
      } as unknown as Topology
      const commands = new Commands(topology, resolveSettings(LIMITS))
      const startedAt = performance.now() - 5_000 // the hash took so long
      const ran = run(commands, script(source, String), { key: 'k' }, {}, { startedAt })
      const error = await ran.catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(ConnectionError)
      expect(performance.now() - startedAt).to.be.lessThan(5_150) // a limit of its own would be 200 ms
      commands.giveUp()
    })
  })

  it('lets an operation finish that a shutdown met, and begins no other one beside it', async () => {
    const topology = {
      age: YOUNG,
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

  describe('during a shutdown', () => {
    /** A client whose first attempt breaks off after a time, and whose later ones are never answered. */
    function setUp(breaksAfterMs: number, error = 'Connection is closed.') {
      const attempts: Promise<unknown>[] = []
      const first = async (): Promise<never> => {
        await pause(breaksAfterMs) // the server is silent
        throw new Error(error)
      }
      const client = {
        callBuffer: () => {
          attempts.push(attempts.length === 0 ? first() : never)
          return attempts.at(-1)
        },
      }
      const topology = {
        age: YOUNG,
        watch: { watchFor: () => undefined, start: () => undefined },
        commands: () => client as unknown as Redis,
        recover: async () => undefined,
      } as unknown as Topology
      const commands = new Commands(topology, resolveSettings({ connectTimeout: 500, commandTimeout: 500 }))
      const call = (): Promise<unknown> =>
        commands.call('GET', ['key'], { resend: 'reads' }).catch((thrown: unknown) => thrown)
      const push = (): Promise<unknown> => commands.call('LPUSH', ['key', 'x']).catch((thrown: unknown) => thrown)
      return { commands, attempts, call, push }
    }

    it('a repetition ends when the time of one call is over', async () => {
      const { commands, attempts, call } = setUp(700)
      const called = call()
      const shutDownAt = performance.now()
      commands.beginShutdown()
      expect(await called).to.be.instanceOf(ConnectionError)
      expect(attempts).to.have.lengthOf(2)
      expect(performance.now() - shutDownAt).to.be.within(950, 1_500) // else 1,700
    })

    it('a call that began later is not repeated after that time', async () => {
      const { commands, attempts, call } = setUp(700)
      commands.beginShutdown()
      await pause(500) // the time of one call
      expect(await call()).to.be.instanceOf(ConnectionError)
      expect(attempts).to.have.lengthOf(1)
    })

    it('an element that is put back is sent again if it was not sent', async () => {
      const { commands, attempts, push } = setUp(700, "Stream isn't writeable and enableOfflineQueue options is false")
      commands.beginShutdown()
      await pause(500) // the time of one call
      expect(await push()).to.be.instanceOf(ConnectionError)
      expect(attempts).to.have.lengthOf(2)
    })
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
