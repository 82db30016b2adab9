import { expect } from 'chai'
import { ConnectionError } from '../../src/index.js'
import { FirstConnection } from '../../src/sharding/first-connection.js'

describe('FirstConnection', () => {
  let nowMs: number
  let isConnected: boolean
  let connection: FirstConnection
  const ends = () => connection.assertMade()

  beforeEach(() => {
    nowMs = 1_000
    isConnected = false
    const noConnectionYet = (triedForMs: number) =>
      isConnected || triedForMs < 500 ? undefined : new ConnectionError('nowhere', 'not-applied')
    connection = new FirstConnection({ noConnectionYet }, { now: () => nowMs })
    connection.tried()
  })

  it('rejects a wait that ends with nothing before there was a connection', () => {
    nowMs += 500
    expect(ends).to.throw(ConnectionError)
  })

  it('counts the time from the first of several short waits', () => {
    nowMs += 499
    expect(ends).not.to.throw()
    connection.tried()
    nowMs += 1
    expect(ends).to.throw(ConnectionError)
  })

  it('no longer rejects after a call was answered', () => {
    connection.made()
    nowMs += 500
    expect(ends).not.to.throw()
  })

  it('no longer rejects after a wait that ended with nothing while there was a connection', () => {
    isConnected = true
    expect(ends).not.to.throw()
    isConnected = false
    nowMs += 500
    expect(ends).not.to.throw()
  })
})
