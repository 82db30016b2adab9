import { expect } from 'chai'
import { identityMapper, prefixName, queueKeys } from '../../src/keys.js'

describe('keys', () => {
  it('are the names that Redisson uses', () => {
    expect(queueKeys('orders')).to.deep.equal({
      destination: 'orders',
      timeouts: 'redisson_delay_queue_timeout:{orders}',
      order: 'redisson_delay_queue:{orders}',
      channel: 'redisson_delay_queue_channel:{orders}',
      quarantine: 'redelayed:quarantine:{orders}',
    })
  })

  // what RedissonObject.prefixName gives, also where it is of no use in a cluster
  const names: [rawName: string, prefixed: string][] = [
    ['orders', 'p:{orders}'],
    ['', 'p:{}'],
    ['app:orders', 'p:{app:orders}'],
    ['a{b}c', 'p:a{b}c'],
    ['{orders}', 'p:{orders}'],
    ['x{y', 'p:x{y'],
    ['a{}b', 'p:a{}b'],
    ['{', 'p:{'],
    ['}x', 'p:{}x}'],
    ['x}y{z', 'p:x}y{z'],
    ['два слова', 'p:{два слова}'],
    ['with "quotes" and\nlines', 'p:{with "quotes" and\nlines}'],
  ]
  for (const [rawName, prefixed] of names) {
    it(`prefixes ${JSON.stringify(rawName)} as Redisson does`, () => {
      expect(prefixName('p', rawName)).to.equal(prefixed)
    })
  }

  it('are mapped to themselves without a mapper', () => {
    expect(identityMapper.map('a{b}')).to.equal('a{b}')
    expect(identityMapper.unmap('a{b}')).to.equal('a{b}')
  })
})
