import { expect } from 'chai'
import { EventEmitter } from 'node:events'
import type { Redis } from 'ioredis'
import { Readiness } from '../../src/redis/readiness.js'
import { ShutdownError } from '../../src/errors.js'
import { rejection } from '../integration/fixtures.js'

function client(status: string): Redis {
  return Object.assign(new EventEmitter(), { status, connect: () => Promise.resolve() }) as unknown as Redis
}

describe('Readiness', () => {
  it('examines the server once, however many calls wait', async () => {
    let checks = 0
    const readiness = new Readiness(client('ready'), 1_000, () => Promise.resolve(void checks++))
    expect(readiness.now).to.equal(false)
    await Promise.all([readiness.wait(), readiness.wait()])
    await readiness.wait()
    expect([checks, readiness.now]).to.deep.equal([1, true])
  })

  it('ends at its close the calls that wait for a connection, and those that wait for a reply', async () => {
    for (const status of ['reconnecting', 'ready']) {
      const readiness = new Readiness(client(status), 60_000, () => new Promise(() => {}))
      const waiting = [rejection(readiness.wait()), rejection(readiness.wait())]
      await Promise.resolve() // they are under way
      readiness.close()
      for (const error of await Promise.all(waiting)) expect(error, status).to.be.an.instanceOf(ShutdownError)
      expect(await rejection(readiness.wait())).to.be.an.instanceOf(ShutdownError)
    }
  })
})
