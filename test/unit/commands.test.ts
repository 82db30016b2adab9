import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { Commands } from '../../src/redis/commands.js'
import { KeptCommands } from '../../src/redis/kept-commands.js'
import type { Topology } from '../../src/redis/topology/topology.js'
import { ConnectionError } from '../../src/errors.js'
import { resolveSettings } from '../../src/options.js'

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
    const error: unknown = await commands.call('GET', ['key'], { idempotent: true }).catch((thrown: unknown) => thrown)
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
