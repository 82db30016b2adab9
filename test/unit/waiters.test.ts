import { expect } from 'chai'
import { Waiters, type Waiter } from '../../src/redis/blocking/waiters.js'
import { ConnectionError, ReadOnlyError } from '../../src/errors.js'

describe('Waiters', () => {
  function setUp() {
    const waiters = new Waiters()
    const settled: string[] = []
    function add(name: string, key: string | string[] = 'k', { max = 1, group = 0 } = {}): Waiter {
      const waiter: Waiter = {
        keys: [key].flat(),
        group,
        max,
        resolve: (elements, from) => {
          const given = elements === null ? 'null' : elements.map(String).join(',')
          settled.push(`${name}=${given}${Array.isArray(key) && from !== undefined ? ` from ${from}` : ''}`)
        },
        reject: (error) => void settled.push(`${name}!${(error as { code?: string }).code ?? error.message}`),
      }
      waiters.add(waiter)
      return waiter
    }
    const deliver = (key: string, ...elements: string[]) => {
      const served = waiters.serve(
        key,
        elements.map((element) => Buffer.from(element)),
      )
      for (const [waiter, share] of served.shares) waiter.resolve(share, served.key)
    }
    return { waiters, settled, add, deliver }
  }

  it('knows its keys, groups and demand', () => {
    const { waiters, add, deliver } = setUp()
    expect([waiters.keyCount, waiters.groupCount, waiters.has('k'), waiters.demand('k', 200)]).to.deep.equal([
      0,
      0,
      false,
      0,
    ])
    add('a', 'k', { max: 2, group: 1 })
    add('b', 'k', { max: 3, group: 1 })
    add('c', 'l', { group: 1 })
    add('d', 'm', { group: 2 })
    expect([waiters.keyCount, waiters.groupCount, waiters.has('k'), waiters.demand('k', 200)]).to.deep.equal([
      3,
      2,
      true,
      5,
    ])
    deliver('m', '1')
    expect([waiters.keyCount, waiters.groupCount, waiters.has('m')]).to.deep.equal([2, 1, false])
  })

  it('asks for all that the first waiter wants, and for those of others only up to 200', () => {
    const { waiters, add } = setUp()
    add('a', 'many', { max: 1_000 })
    add('b', 'many')
    expect(waiters.demand('many', 200)).to.equal(1_000)
    for (let i = 0; i < 300; i++) add(`${i}`, 'singles')
    expect(waiters.demand('singles', 200)).to.equal(200)
  })

  it('delivers first come first served, each as many as it wants', () => {
    const { waiters, settled, add, deliver } = setUp()
    add('a')
    add('b', 'k', { max: 3 })
    add('c')
    deliver('k', '1', '2', '3')
    expect(settled).to.deep.equal(['a=1', 'b=2,3'])
    expect(waiters.demand('k', 200)).to.equal(1)
    deliver('k', '4')
    expect(settled).to.deep.equal(['a=1', 'b=2,3', 'c=4'])
    expect(waiters.has('k')).to.equal(false)
  })

  it('delivers only to the waiters of the key', () => {
    const { settled, add, deliver } = setUp()
    add('a', 'k')
    add('b', 'l')
    deliver('l', '1')
    expect(settled).to.deep.equal(['b=1'])
    deliver('unknown', '2')
    expect(settled).to.have.length(1)
  })

  it('gives elements to one that has ended only if no other wants them', () => {
    const { settled, add, deliver } = setUp()
    add('ended').ended = null
    add('a')
    deliver('k', '1')
    expect(settled).to.deep.equal(['a=1'])
    deliver('k', '2')
    expect(settled).to.deep.equal(['a=1', 'ended=2'])
  })

  it('settles those that have ended, and keeps the others', () => {
    const { waiters, settled, add, deliver } = setUp()
    add('a')
    add('timed out').ended = null
    add('aborted').ended = new Error('stop')
    add('elsewhere', 'l').ended = null
    waiters.settleEnded('k')
    expect(settled).to.deep.equal(['timed out=null', 'aborted!stop'])
    waiters.settleEnded('k')
    waiters.settleEnded('unknown')
    expect(settled).to.have.length(2)
    expect(waiters.demand('k', 200)).to.equal(1)
    waiters.settleAllEnded()
    expect(settled.slice(2)).to.deep.equal(['elsewhere=null'])
    expect([waiters.has('k'), waiters.has('l')]).to.deep.equal([true, false])
    deliver('k', '1')
    expect(settled.at(-1)).to.equal('a=1')
  })

  it('a key that was served goes to the back, so that it does not starve others', () => {
    const { waiters, add, deliver } = setUp()
    add('a', 'busy')
    add('b', 'busy')
    add('c', 'quiet')
    deliver('busy', '1')
    expect(waiters.nextGroup(undefined)).to.deep.equal(['quiet', 'busy'])
  })

  it('forgets a key when all of it have ended', () => {
    const { waiters, add } = setUp()
    add('a').ended = null
    waiters.settleEnded('k')
    expect([waiters.has('k'), waiters.keyCount]).to.deep.equal([false, 0])
  })

  it('fails the waiters of a key, without touching what had ended otherwise', () => {
    const { waiters, settled, add } = setUp()
    add('a')
    add('timed out').ended = null
    add('b', 'l')
    waiters.fail('k', new ReadOnlyError())
    expect(settled).to.deep.equal(['a!ERR_READ_ONLY', 'timed out=null'])
    waiters.failAll(new ConnectionError('gone', 'unknown'))
    expect(settled.at(-1)).to.equal('b!ERR_CONNECTION')
    expect(waiters.keyCount).to.equal(0)
  })

  it('gives each waiter an error of its own', () => {
    const { waiters, add } = setUp()
    const [first, second] = [add('a'), add('b')]
    const error = new ReadOnlyError()
    waiters.endAll(error)
    expect(first.ended).to.be.instanceOf(ReadOnlyError)
    expect(first.ended).to.not.equal(second.ended)
  })

  it('ends all without settling them: an element may be on its way', () => {
    const { waiters, settled, add, deliver } = setUp()
    add('a')
    add('b', 'l')
    add('c', 'l').ended = null
    waiters.endAll(new ReadOnlyError())
    expect(settled).to.deep.equal([])
    deliver('k', '1')
    waiters.settleAllEnded()
    expect(settled).to.deep.equal(['a=1', 'b!ERR_READ_ONLY', 'c=null'])
  })

  it('hands over the waiters of some keys', () => {
    const { waiters, settled, add } = setUp()
    const moved = [add('a', 'k'), add('b', 'k'), add('c', 'l')]
    add('d', 'm')
    expect(waiters.removeAll(['k', 'l', 'unknown'])).to.deep.equal(moved)
    expect([waiters.keyCount, waiters.has('m')]).to.deep.equal([1, true])
    expect(settled).to.deep.equal([])
  })

  describe('on several keys', () => {
    it('takes from the first that has something, once', () => {
      const { waiters, settled, add, deliver } = setUp()
      add('both', ['k', 'l'])
      add('a', 'l')
      expect([waiters.demand('k', 200), waiters.demand('l', 200)]).to.deep.equal([1, 2])
      deliver('l', '1')
      expect(settled).to.deep.equal(['both=1 from l'])
      expect([waiters.has('k'), waiters.demand('l', 200)]).to.deep.equal([false, 1])
      deliver('k', '2')
      deliver('l', '3')
      expect(settled).to.deep.equal(['both=1 from l', 'a=3'])
      expect(waiters.keyCount).to.equal(0)
    })

    it('is settled once when it has ended', () => {
      const { waiters, settled, add } = setUp()
      add('both', ['k', 'l']).ended = null
      add('other', ['k', 'l'])
      waiters.settleAllEnded()
      expect(settled).to.deep.equal(['both=null'])
      expect([waiters.demand('k', 200), waiters.demand('l', 200)]).to.deep.equal([1, 1])
    })

    it('fails with the first of them, and is gone from all', () => {
      const { waiters, settled, add } = setUp()
      add('both', ['k', 'l'])
      waiters.fail('l', new ReadOnlyError())
      expect(settled).to.deep.equal(['both!ERR_READ_ONLY'])
      expect(waiters.keyCount).to.equal(0)
    })

    it('fails once with all', () => {
      const { waiters, settled, add } = setUp()
      const both = add('both', ['k', 'l'])
      waiters.endAll(new ReadOnlyError())
      const first = both.ended
      waiters.failAll(new ConnectionError('gone', 'unknown'))
      expect(both.ended).to.equal(first)
      expect(settled).to.deep.equal(['both!ERR_READ_ONLY'])
    })

    it('is handed over once, with all its keys', () => {
      const { waiters, add } = setUp()
      const both = add('both', ['k', 'l', 'm'])
      expect(waiters.removeAll(['k', 'l'])).to.deep.equal([both])
      expect(waiters.keyCount).to.equal(0)
    })
  })

  describe('gives out groups', () => {
    it('of keys that can share a command', () => {
      const { waiters, add } = setUp()
      add('a', 'k', { group: 1 })
      add('b', 'l', { group: 2 })
      add('c', 'm', { group: 1 })
      expect(waiters.nextGroup(undefined)).to.deep.equal(['k', 'm'])
    })

    it('in turn', () => {
      const { waiters, add } = setUp()
      add('a', 'k', { group: 1 })
      add('b', 'l', { group: 2 })
      add('c', 'm', { group: 3 })
      const turns = Array.from({ length: 6 }, () => waiters.nextGroup(undefined).join())
      expect(turns).to.deep.equal(['k', 'l', 'm', 'k', 'l', 'm'])
    })

    it('beginning with the one that is asked for', () => {
      const { waiters, add } = setUp()
      add('a', 'k', { group: 1 })
      add('b', 'l', { group: 2 })
      expect(waiters.nextGroup('l')).to.deep.equal(['l'])
      expect(waiters.nextGroup('unknown')).to.deep.equal(['k'])
    })

    it('of everything when there is one group, in the order of arrival', () => {
      const { waiters, add } = setUp()
      for (const key of ['k', 'l', 'm']) add(key, key)
      expect(waiters.nextGroup(undefined)).to.deep.equal(['k', 'l', 'm'])
      expect(waiters.nextGroup('m')).to.deep.equal(['k', 'l', 'm'])
    })

    it('of none when no call waits', () => {
      expect(setUp().waiters.nextGroup(undefined)).to.deep.equal([])
      expect(setUp().waiters.nextGroup('k')).to.deep.equal([])
    })
  })
})
