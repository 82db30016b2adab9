import { expect } from 'chai'
import { Lease } from '../../src/scheduler/lease.js'

const NOW = 1_000

/** A client that has the lease until 1,025, and has heard itself say so. */
function leased(): Lease {
  const lease = new Lease()
  lease.onSent()
  expect(lease.onReply(1_025, 1_001, NOW)).to.equal('latest')
  expect(lease.onAnnounced(1_025)).to.equal('no reason to wait')
  return lease
}

describe('Lease', () => {
  it('is none at first, and every announcement is the latest', () => {
    const lease = new Lease()
    expect(lease.until).to.equal(0)
    expect(lease.onAnnounced(5)).to.equal('latest')
  })

  it('is the announced time when the next due time is earlier', () => {
    expect(leased().until).to.equal(1_025)
  })

  it('is none when the script announced the next due time or an empty queue', () => {
    for (const [announcedAt, next] of [
      [1_001, 1_001],
      [3_600_000, null],
    ] as const) {
      const lease = leased()
      lease.onSent()
      expect(lease.onReply(announcedAt, next, NOW)).to.equal('latest')
      expect(lease.until).to.equal(0)
    }
  })

  it('goes on when the script announced nothing', () => {
    const lease = leased()
    lease.onSent()
    expect(lease.onReply(null, 1_002, NOW)).to.equal('latest')
    expect(lease.until).to.equal(1_025)
  })

  it('ends when the others hear something sooner, which does not put off this client', () => {
    const lease = leased()
    expect(lease.onAnnounced(1_010)).to.equal('no reason to wait')
    expect(lease.until).to.equal(0)
  })

  it('is taken over by a client that announces a later time', () => {
    const lease = leased()
    expect(lease.onAnnounced(1_026)).to.equal('taken over')
    expect(lease.until).to.equal(0)
    expect(lease.onAnnounced(1_040)).to.equal('latest')
  })

  it('is not taken over by a client that announces a due time beyond every lease', () => {
    const lease = leased()
    expect(lease.onAnnounced(1_051)).to.equal('latest')
    expect(lease.until).to.equal(0)
    const other = leased()
    expect(other.onAnnounced(1_050)).to.equal('taken over')
  })

  it('is taken over also when the script under way announced nothing', () => {
    const lease = leased()
    lease.onSent()
    lease.onAnnounced(1_026)
    expect(lease.onReply(null, 1_002, NOW)).to.equal('taken over')
    lease.onSent()
    expect(lease.onReply(null, 1_002, NOW)).to.equal('latest')
  })

  it('is newer than all that comes before it is heard', () => {
    const lease = new Lease()
    lease.onSent()
    lease.onReply(1_025, 1_001, NOW)
    expect(lease.onAnnounced(1_026)).to.equal('no reason to wait')
    expect(lease.until).to.equal(1_025)
    expect(lease.onAnnounced(1_025)).to.equal('no reason to wait')
    expect(lease.onAnnounced(1_027)).to.equal('taken over')
  })

  it('is known by its reply also when it was heard before', () => {
    const lease = new Lease()
    lease.onSent()
    lease.onAnnounced(1_025)
    expect(lease.onReply(1_025, 1_001, NOW)).to.equal('latest')
    expect(lease.until).to.equal(1_025)
    expect(lease.onAnnounced(1_026)).to.equal('taken over')
  })

  it('is none where another one followed before the reply', () => {
    for (const [later, news] of [
      [1_026, 'taken over'],
      [1_010, 'no reason to wait'],
    ] as const) {
      const lease = new Lease()
      lease.onSent()
      lease.onAnnounced(1_025)
      lease.onAnnounced(later)
      expect(lease.onReply(1_025, 1_001, NOW)).to.equal(news)
      expect(lease.until).to.equal(0)
    }
  })

  it('is not waited for when it was never heard, and its time is over', () => {
    const lease = new Lease()
    lease.onSent()
    lease.onReply(1_025, 1_001, NOW)
    lease.onSent()
    lease.onReply(null, 1_050, 1_026)
    expect(lease.onAnnounced(1_045)).to.equal('taken over')
  })

  it('is not waited for after a new subscription, or when the clock was set back', () => {
    for (const then of [
      (lease: Lease) => lease.onSubscribed(),
      (lease: Lease) => {
        lease.onSent()
        lease.onReply(null, null, NOW - 3_600_000)
      },
    ]) {
      const lease = new Lease()
      lease.onSent()
      lease.onReply(1_025, 1_001, NOW)
      then(lease)
      expect(lease.onAnnounced(1_026)).to.not.equal('no reason to wait')
    }
  })

  it('gives no reason to wait when others announce due times after its own announcement', () => {
    const lease = new Lease()
    lease.onSent()
    lease.onAnnounced(5_000)
    lease.onAnnounced(5_001)
    expect(lease.onReply(5_000, null, NOW)).to.equal('no reason to wait')
  })

  it('ends with a failure', () => {
    const lease = leased()
    lease.onSent()
    lease.end()
    expect(lease.until).to.equal(0)
  })
})
