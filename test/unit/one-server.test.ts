import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { EventEmitter } from 'node:events'
import { ConnectionError } from '../../src/index.js'
import { OneServer } from '../../src/redis/connections/one-server.js'
import { runIdOf } from '../../src/redis/connections/predecessors.js'
import { FakeClock } from '../support/fake-clock.js'

const connection = (): Redis => new EventEmitter() as unknown as Redis

describe('the one server of all connections', () => {
  let clock: FakeClock
  let moved: number
  let warnings: string[]
  let server: OneServer
  /** The connections of `play` and the servers to which they lead. */
  let open: Map<Redis, string>

  /** As the topology does when the server has changed. */
  function endOthers(): void {
    for (const [other, at] of open)
      if (at !== server.runId) {
        open.delete(other)
        other.emit('end')
      }
  }

  function setUp(): OneServer {
    open = new Map()
    server = new OneServer({
      address: 'redis.example:6379',
      onMoved: () => {
        moved++
        endOthers()
      },
      onMixed: (message) => warnings.push(message),
      clock,
    })
    return server
  }

  beforeEach(() => {
    clock = new FakeClock(1_000_000)
    moved = 0
    warnings = []
    setUp()
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

  /**
   * Connections as they open, each with the server to which it leads: `!A` is that for commands, `A` any other one. After a change of the server the connections to the other
   * ones end, and `+6000` lets time pass.
   */
  function play(steps: string): string {
    let outcomes = ''
    for (const step of steps.split(' ')) {
      if (step.startsWith('+')) {
        clock.jump(Number(step))
        continue
      }
      const redis = connection()
      const runId = step.replace('!', '')
      const before = moved
      try {
        if (step.startsWith('!')) server.lead(redis, runId)
        else server.join(redis, runId)
        open.set(redis, runId)
        outcomes += moved > before ? 'f' : '.'
      } catch (error) {
        expect(error)
          .to.be.instanceOf(ConnectionError)
          .with.property('message')
          .that.matches(/^redis\.example:6379 leads to another server/)
        outcomes += 'r'
      }
    }
    return outcomes
  }

  const many = (step: string, count: number): string => Array.from({ length: count }, () => step).join(' ')
  /** `.` stays or opens at the same server, `f` is followed by all others, `r` is refused; then the server and how many warnings. */
  for (const [what, steps, outcomes, runId, warned] of [
    ['one server', '!A A A', '...', 'A', 0],
    ['a failover, first seen by commands', '!A A A !B B B', '...f..', 'B', 0],
    ['a failover, first seen by a wait', '!A A A B !B B', '...f..', 'B', 0],
    [
      'a failover with many connections',
      `!A ${many('A', 50)} !B ${many('B', 50)}`,
      `${'.'.repeat(51)}f${'.'.repeat(50)}`,
      'B',
      0,
    ],
    [
      'a failover with many that still lead to the old one',
      `!A A !B ${many('A', 50)} B`,
      `..f${'r'.repeat(50)}.`,
      'B',
      0,
    ],
    ['the same, while all time for settling passes', `!A A !B ${many('A +90', 50)} B`, `..f${'r'.repeat(50)}.`, 'B', 0],
    ['a failover and back in a minute', '!A A !B B +6000 !A A', '..f.f.', 'A', 0],
    [
      'a failover and back after a quiet minute, three times',
      '!A A !B B +61000 !A A +61000 !B B +61000 !A A',
      '..f.f.f.f.',
      'A',
      0,
    ],
    ['one that returns, soon after a change', '!A A B A', '..fr', 'B', 0],
    ['one that returns later', '!A A B +5000 A', '..ff', 'A', 0],
    ['two that take turns', '!A B !A B A A', '.ffr..', 'A', 1],
    ['two that take turns, for minutes', `!A B !A ${many('+6000 B A', 7)}`, `.ff${'r.'.repeat(7)}`, 'A', 1],
    ['three that take turns', '!A B !C A B C A B C', '.ffrr.rr.', 'C', 1],
    ['three that take turns, seen by commands alone', '!A A !B B !C C !A A !B B', '..f.f.f.f.', 'B', 1],
    ['a third server alone', '!A A !B B +6000 !C C', '..f.f.', 'C', 0],
    ['two in turns that the client has come to know, and forgets', '!A B !A B +61000 B', '.ffrf', 'B', 1],
  ] as const)
    it(`${what}: ${steps.length > 60 ? `${steps.slice(0, 60)} …` : steps}`, () => {
      expect(play(steps)).to.equal(outcomes)
      expect({ runId: server.runId, warned: warnings.length }).to.deep.equal({ runId, warned })
      for (const each of warnings)
        expect(each).to.match(
          /^connections to redis\.example:6379 reach different servers in turns.* keeps its connections at one/,
        )
    })

  describe('where servers take turns', () => {
    const MIXED = '!A B !A B'
    const FOR_AN_HOUR = /uses all of them for up to an hour/

    it('stops comparing them after 15 refused connections in a row that lead to several, with one more warning', () => {
      play(MIXED) // one is refused already
      expect(play(`C ${many('B', 13)}`)).to.equal('r'.repeat(14))
      expect(warnings).to.have.lengthOf(1)
      expect(play('B A !B A C')).to.equal('.....')
      expect(warnings).to.have.lengthOf(2)
      expect(warnings[1]).to.match(FOR_AN_HOUR)
    })

    it('follows the one server to which 15 refused connections in a row lead', () => {
      play(MIXED)
      expect(play(many('B', 14))).to.equal('r'.repeat(14))
      expect(play('+6000 B !B B +6000 A')).to.equal('f..f')
      expect(warnings).to.have.lengthOf(1)
    })

    it('stops comparing them where new connections lead to the other one each time', () => {
      play(`${MIXED} ${many('B', 14)}`)
      expect(play('+6000 B !A B +6000 B !A')).to.equal('ffrff')
      expect(warnings).to.have.lengthOf(1)
      expect(play(many('B', 16))).to.equal('r'.repeat(15) + '.')
      expect(warnings).to.have.lengthOf(2)
      expect(warnings[1]).to.match(FOR_AN_HOUR)
    })

    it('keeps comparing as long as connections reach the server in between', () => {
      play(MIXED)
      expect(play(many('B B B A', 20))).to.equal('rrr.'.repeat(20))
      expect(warnings).to.have.lengthOf(1)
    })

    it('stops comparing them when the connection for commands has moved more than five times', () => {
      play(MIXED)
      expect(play('!B !A !B !A !B !A A B')).to.equal('fffff...')
      expect(warnings.at(-1)).to.match(FOR_AN_HOUR)
      expect(warnings).to.have.lengthOf(2)
    })

    /** Whether a new connection to another server makes the others follow, which then lead there. */
    const follows = (step: string): boolean => play(step) === 'f'

    it('compares them again when no connection has led elsewhere for a minute; the others then follow the newest one', async () => {
      play(`${MIXED} C ${many('B', 14)} !A`)
      expect(new Set(open.values())).to.deep.equal(new Set(['A', 'B']))
      await clock.advance(59_999)
      expect({ moved, follows: follows('B') }).to.deep.equal({ moved: 2, follows: false })
      await clock.advance(59_999)
      expect(moved).to.equal(2)
      await clock.advance(1)
      expect({ moved, servers: [...new Set(open.values())] }).to.deep.equal({ moved: 3, servers: ['B'] })
      expect(follows('!next')).to.equal(true)
    })

    it('follows another server a minute after an attacker has changed the names of processes', async () => {
      play(`!A A ${Array.from({ length: 20 }, (_, n) => `process${n} +700`).join(' ')}`)
      expect(warnings.at(-1)).to.match(FOR_AN_HOUR)
      await clock.advance(60_000)
      play('!A A A')
      expect([...new Set(open.values())]).to.deep.equal(['A'])
      expect(follows('!next')).to.equal(true)
      expect(play('next next')).to.equal('..')
    })

    it('replaces no connection afterwards where all lead to one server', async () => {
      play(`${MIXED} C ${many('B', 14)}`)
      endOthers()
      const before = moved
      await clock.advance(60_000)
      expect(moved).to.equal(before)
      expect(follows('!next')).to.equal(true)
    })

    it('compares them again after an hour, if connections lead elsewhere all the time', async () => {
      play(`${MIXED} C ${many('B', 14)}`)
      const before = moved
      for (let minute = 0; minute < 60; minute++) {
        expect(moved).to.equal(before)
        play('B A')
        await clock.advance(60_000 - 1)
        clock.jump(1)
      }
      await clock.advance(1)
      expect(moved).to.equal(before + 1)
    })

    it('waits twice as long each time that it stops comparing them again within an hour, and a minute later on', async () => {
      const stopComparing = (): void => {
        for (let n = 0; !FOR_AN_HOUR.test(warnings.at(-1) ?? ''); n++) play(`process${n} +500`)
        warnings.length = 0
      }
      const quietFor = async (): Promise<number> => {
        play('!other !one') // each is elsewhere
        const [before, from] = [moved, clock.now()]
        while (moved === before) await clock.advance(1_000)
        return Math.round((clock.now() - from) / 60_000)
      }
      for (const minutes of [1, 2, 4, 8, 16, 32, 60, 60]) {
        stopComparing()
        expect(await quietFor()).to.equal(minutes)
      }
      await clock.advance(3_600_000)
      stopComparing()
      expect(await quietFor()).to.equal(1)
    }).timeout(20_000)

    it('replaces no connection for a server to which none leads any more', async () => {
      play(`${MIXED} C ${many('B', 14)}`)
      endOthers()
      const before = moved
      play('B B')
      const brief = connection()
      server.join(brief, 'brief')
      brief.emit('end')
      await clock.advance(60_000)
      expect({ moved, runId: server.runId }).to.deep.equal({ moved: before, runId: 'B' })
    })

    it('compares no more after it was closed, also for connections that open meanwhile', async () => {
      play(`${MIXED} C ${many('B', 14)}`)
      server.close()
      expect(clock.pending).to.deep.equal([])
      const other = setUp()
      other.close()
      play(`${MIXED} C ${many('B', 14)}`)
      expect(clock.pending).to.deep.equal([])
    })

    it('does not end for servers that name another process on each connection', () => {
      const outcomes = play(`!first ${Array.from({ length: 100 }, (_, n) => `process${n} +1000`).join(' ')}`)
      expect(outcomes).to.match(/^\.fr{1,20}\.+$/)
      expect(moved).to.equal(1)
      expect(warnings).to.have.lengthOf(2)
    })
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

  it('a server that does not say which process it is changes nothing', () => {
    server.lead(connection(), 'known')
    server.join(connection(), undefined)
    server.lead(connection(), undefined)
    expect({ runId: server.runId, moved }).to.deep.equal({ runId: 'known', moved: 0 })
  })
})
