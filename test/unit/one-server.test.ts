import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { EventEmitter } from 'node:events'
import { ConnectionError } from '../../src/index.js'
import { OneServer } from '../../src/redis/connections/one-server.js'
import { runIdOf } from '../../src/redis/connections/predecessors.js'

const connection = (): Redis => new EventEmitter() as unknown as Redis

describe('the one server of all connections', () => {
  let time: number
  let moved: number
  let warnings: string[]
  let server: OneServer

  beforeEach(() => {
    time = 1_000_000
    moved = 0
    warnings = []
    server = new OneServer({
      address: 'redis.example:6379',
      now: () => time,
      onMoved: () => moved++,
      onMixed: (message) => warnings.push(message),
    })
  })

  it('all connections follow the newest one', () => {
    server.lead(connection(), 'old')
    server.join(connection(), 'old')
    expect(moved).to.equal(0)
    const newest = connection()
    server.join(newest, 'next')
    expect(runIdOf(newest)).to.equal('next')
    server.lead(connection(), 'next')
    expect({ runId: server.runId, moved, warnings }).to.deep.equal({ runId: 'next', moved: 1, warnings: [] })
  })

  it('soon after that, one that leads elsewhere is refused, with one warning; that for commands never is', () => {
    server.lead(connection(), 'one')
    server.join(connection(), 'two')
    time += 4_999
    for (let count = 0; count < 3; count++)
      expect(() => server.join(connection(), 'one')).to.throw(
        ConnectionError,
        /redis\.example:6379 leads to another server/,
      )
    expect(warnings).to.have.lengthOf(1)
    expect(warnings[0]).to.match(/^connections to redis\.example:6379 reach different servers in turns/)
    expect({ runId: server.runId, moved }).to.deep.equal({ runId: 'two', moved: 1 })
    server.lead(connection(), 'one')
    expect({ runId: server.runId, moved }).to.deep.equal({ runId: 'one', moved: 2 })
    expect(() => server.join(connection(), 'two')).to.throw(ConnectionError)
    time += 5_000
    server.join(connection(), 'two')
    expect({ runId: server.runId, moved, count: warnings.length }).to.deep.equal({ runId: 'two', moved: 3, count: 1 })
  })

  it('a server that restarts again and again is followed each time', () => {
    for (const runId of ['first', 'second', 'third']) {
      const [one, other] = [connection(), connection()]
      server.join(one, runId)
      server.lead(other, runId)
      expect(server.runId).to.equal(runId)
      for (const each of [one, other]) each.emit('end')
    }
    expect(warnings).to.deep.equal([])
  })

  it('servers that name another process on each connection are used without comparing them, after one more warning', () => {
    server.lead(connection(), 'the first')
    let refused = 0
    for (let count = 0; count < 100; count++) {
      try {
        server.join(connection(), `process ${count}`)
      } catch {
        refused++
      }
      time += 1_000
    }
    expect(refused).to.be.within(10, 20)
    expect(moved).to.be.at.most(5)
    expect(warnings.at(-1)).to.match(/for an hour/)
    expect(warnings).to.have.lengthOf(2)
  })

  it('a server that does not say which process it is changes nothing', () => {
    server.lead(connection(), 'known')
    server.join(connection(), undefined)
    server.lead(connection(), undefined)
    expect({ runId: server.runId, moved }).to.deep.equal({ runId: 'known', moved: 0 })
  })
})
