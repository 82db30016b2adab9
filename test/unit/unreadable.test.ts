import { expect } from 'chai'
import { DecodeError, PayloadTooLargeError } from '../../src/errors.js'
import { groupUnreadable, type Unreadable } from '../../src/reliable/unreadable.js'

const unreadable = (id: string, attempt: number, error: Unreadable['error']): Unreadable => ({
  record: {
    ...{ id, member: `0${id}`, priority: 0, delivery: `${attempt} token`, record: Buffer.of(0) },
    ...{ visibleAt: 0, polledAt: 0, visibleUntil: 0, heldUntil: 0 },
  },
  error,
})

describe('groupUnreadable', () => {
  it('groups messages that are given back alike, whatever their errors', () => {
    const groups = groupUnreadable(
      [
        unreadable('a', 1, new DecodeError('json', 'at 1')),
        unreadable('b', 1, new DecodeError('json', 'at 2')),
        unreadable('c', 2, new DecodeError('json', 'at 3')),
        unreadable('d', 1, new PayloadTooLargeError(9, 5)),
      ],
      'json',
    )
    expect(groups.map(({ records }) => records.map(({ id }) => id).join(''))).to.deep.equal(['ab', 'c', 'd'])
    expect(groups.map(({ giveBack }) => giveBack.reason)).to.deep.equal([
      '"ERR_DECODE: unreadable with the codec json"',
      '"ERR_DECODE: unreadable with the codec json"',
      '"ERR_PAYLOAD_TOO_LARGE: unreadable with the codec json"',
    ])
    expect(groups[0]?.error.message).to.include('at 1')
  })

  it('waits longer with each delivery, up to five minutes', () => {
    const delays = [1, 2, 3, 7, 8, 1_000_000].map((attempt) => {
      const [group] = groupUnreadable([unreadable('a', attempt, new DecodeError('json', 'no'))], 'json')
      return group?.giveBack
    })
    expect(delays.map((giveBack) => giveBack?.delayMs)).to.deep.equal([
      5_000, 10_000, 20_000, 300_000, 300_000, 300_000,
    ])
    expect(delays.every((giveBack) => giveBack?.how === 'failed')).to.equal(true)
  })
})
