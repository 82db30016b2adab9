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
    let sent = 0
    const client = { callBuffer: () => (++sent, Promise.reject(new Error('Connection is closed.'))) }
    const topology = {
      watch: { watchFor: () => undefined, start: () => undefined },
      commands: () => client as unknown as Redis,
      recover: () => never,
    } as unknown as Topology
    const commands = new Commands(topology, resolveSettings(LIMITS))
    const error: unknown = await commands.call('GET', ['key'], { idempotent: true }).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(ConnectionError)
    expect(sent).to.equal(1)
  })

  it('ends a command by when its call began', async () => {
    const kept = new KeptCommands(2_000)
    const first = await Promise.race([
      kept.keep(never).catch(() => 'one that has just begun'),
      kept.keep(never, performance.now() - 1_900).catch(() => 'one that began before'),
    ])
    expect(first).to.equal('one that began before')
    kept.endAll('the end of the test')
  })
})
