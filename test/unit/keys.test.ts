import { expect } from 'chai'
import {
  bucketOfKey,
  deadLettersOf,
  identityMapper,
  nameOfKey,
  prefixName,
  QUEUE_KEY_PATTERN,
  queueKeys,
  queueOfDeadLetters,
  twinOf,
} from '../../src/keys.js'

describe('keys', () => {
  it('are the names that Redisson uses', () => {
    expect(queueKeys('orders')).to.deep.equal({
      destination: 'orders',
      timeouts: 'redisson_delay_queue_timeout:{orders}',
      order: 'redisson_delay_queue:{orders}',
      channel: 'redisson_delay_queue_channel:{orders}',
      quarantine: 'redelayed:quarantine:{orders}',
      leader: 'redelayed:leader:{orders}',
      wheel: 'redelayed:wheel:{orders}',
      horizon: 'redelayed:horizon:{orders}',
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

  for (const [rawName] of names) {
    if (rawName === '' || rawName === '{orders}') continue
    it(`give the name ${JSON.stringify(rawName)} back`, () => {
      const { timeouts, order, quarantine, destination, channel } = queueKeys(rawName)
      expect([timeouts, order, quarantine].map(nameOfKey)).to.deep.equal([rawName, rawName, rawName])
      expect([destination, channel].map(nameOfKey)).to.deep.equal([null, null])
      const minuteOf = (part: string) => bucketOfKey(prefixName(`redelayed:${part}`, rawName))
      expect(minuteOf('wheel-29411000')).to.deep.equal({ name: rawName, minute: 29_411_000 })
      for (const part of ['wheel-x', 'wheel-', 'wheel-029411000', 'wheel-1e9', 'wheel-1234567890123'])
        expect(minuteOf(part), part).to.deep.equal({ name: rawName, minute: null })
      for (const part of ['wheel', 'gone-29411000']) expect(minuteOf(part), part).to.equal(null)
    })
  }

  it('are the same for {orders} and orders', () => {
    expect(queueKeys('{orders}').timeouts).to.equal(queueKeys('orders').timeouts)
    expect(nameOfKey(queueKeys('{orders}').timeouts)).to.equal('orders')
  })

  it('know the twin of a name, with the same schedule and another destination, and of no other name', () => {
    const twins = names.map(([rawName]) => [rawName, twinOf(rawName)] as const)
    for (const [name, twin] of twins) {
      if (twin === null) continue
      expect(twin).not.to.equal(name)
      expect(queueKeys(twin).timeouts).to.equal(queueKeys(name).timeouts)
      expect(twinOf(twin)).to.equal(name)
    }
    expect(Object.fromEntries(twins)).to.include({
      orders: '{orders}',
      '{orders}': 'orders',
      'a{b}c': null,
      'x{y': null,
      '}x': '{}x}',
      '': null,
    })
  })

  it('give no name for a key of no queue', () => {
    const others = [
      'orders',
      'redisson_delay_queue_timeout',
      'redisson_delay_queue:',
      'redisson_delay_queue:x',
      'p:{a}',
    ]
    expect([...others, 'redisson_delay_queue:{}'].map(nameOfKey)).to.deep.equal(Array(6).fill(null))
  })

  it('are all matched by the pattern for SCAN', () => {
    const pattern = new RegExp(`^${QUEUE_KEY_PATTERN.replace('*', '.*')}$`, 's')
    for (const [rawName] of names) {
      const { timeouts, order, quarantine } = queueKeys(rawName)
      for (const key of [timeouts, order, quarantine]) expect(key).to.match(pattern)
    }
  })

  it('are mapped to themselves without a mapper', () => {
    expect(identityMapper.map('a{b}')).to.equal('a{b}')
    expect(identityMapper.unmap('a{b}')).to.equal('a{b}')
  })
})

describe('the queue that dead letters are of', () => {
  it('is the one whose dead letters have this name', () => {
    for (const name of ['mails', 'a{b}c', '{x}:dead', 'x:dead'])
      expect(queueOfDeadLetters(deadLettersOf(name))).to.equal(name)
    for (const name of ['mails', 'mails:dead', ':dead', '']) expect(queueOfDeadLetters(name), name).to.equal(null)
  })
})
