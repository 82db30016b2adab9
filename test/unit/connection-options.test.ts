import { expect } from 'chai'
import fc from 'fast-check'
import { inspect } from 'node:util'
import { resolveTarget, type ConnectOptions } from '../../src/redis/options.js'
import { InvalidArgumentError } from '../../src/errors.js'

function failure(options: unknown): Error {
  try {
    resolveTarget(options as ConnectOptions)
  } catch (error) {
    expect(error).to.be.instanceOf(InvalidArgumentError)
    return error as Error
  }
  return expect.fail(`expected ${inspect(options)} to be refused`)
}

describe('connection options', () => {
  it('with Sentinel, TLS is for the master and for the sentinels, unless they are excepted', () => {
    const sentinels = { sentinels: [{ host: 's' }], name: 'm' }
    const tls = { ca: 'x' }
    expect(resolveTarget({ ...sentinels, tls })).to.deep.nested.include({
      'redis.tls': tls,
      'redis.sentinelTLS': tls,
      'redis.enableTLSForSentinelMode': true,
    })
    expect(resolveTarget({ ...sentinels, tls, ioredis: { sentinelTLS: undefined } })).to.deep.nested.include({
      'redis.tls': tls,
      'redis.sentinelTLS': undefined,
    })
    expect(resolveTarget(sentinels)).not.to.have.nested.property('redis.enableTLSForSentinelMode')
  })

  describe('of a single server', () => {
    const cases: [what: string, options: ConnectOptions, redis: object][] = [
      ['nothing at all', {}, { host: '127.0.0.1', port: 6379 }],
      ['a host', { host: 'redis.local' }, { host: 'redis.local', port: 6379 }],
      ['a port', { port: 6380 }, { host: '127.0.0.1', port: 6380 }],
      [
        'credentials',
        { host: 'h', username: 'u', password: 'p', db: 3 },
        { host: 'h', port: 6379, username: 'u', password: 'p', db: 3 },
      ],
      ['an empty password', { password: '' }, { host: '127.0.0.1', port: 6379, password: '' }],
      ['TLS', { host: 'h', tls: true }, { host: 'h', port: 6379, tls: {} }],
      ['no TLS', { host: 'h', tls: false }, { host: 'h', port: 6379 }],
      [
        'TLS with options',
        { host: 'h', tls: { servername: 's' } },
        { host: 'h', port: 6379, tls: { servername: 's' } },
      ],
      ['a url', { url: 'redis://h:1234' }, { host: 'h', port: 1234 }],
      ['a url without a port', { url: 'redis://h' }, { host: 'h', port: 6379 }],
      ['a url without a host', { url: 'redis://' }, { host: '127.0.0.1', port: 6379 }],
      ['a URL object', { url: new URL('redis://h:1234/2') }, { host: 'h', port: 1234, db: 2 }],
      ['a url with a slash', { url: 'redis://h/' }, { host: 'h', port: 6379 }],
      ['an IPv6 url', { url: 'redis://[::1]:7000' }, { host: '::1', port: 7000 }],
      [
        'a url with everything',
        { url: 'redis://u:p@h:1/15' },
        { host: 'h', port: 1, username: 'u', password: 'p', db: 15 },
      ],
      ['a url with a password only', { url: 'redis://:p@h' }, { host: 'h', port: 6379, password: 'p' }],
      [
        'escapes in a url',
        { url: 'redis://us%40er:p%2F%3A%40%25@h' },
        { host: 'h', port: 6379, username: 'us@er', password: 'p/:@%' },
      ],
      ['a TLS url', { url: 'rediss://h' }, { host: 'h', port: 6379, tls: {} }],
      [
        'a TLS url with options',
        { url: 'rediss://h', tls: { servername: 's' } },
        { host: 'h', port: 6379, tls: { servername: 's' } },
      ],
      [
        'a url and credentials beside it',
        { url: 'redis://h', username: 'u', password: 'p', db: 1 },
        { host: 'h', port: 6379, username: 'u', password: 'p', db: 1 },
      ],
      ['further ioredis options', { host: 'h', ioredis: { family: 6 } }, { host: 'h', port: 6379, family: 6 }],
      [
        'own options before those of ioredis',
        { host: 'h', ioredis: { host: 'other', port: 1 } },
        { host: 'h', port: 6379 },
      ],
    ]
    for (const [what, options, redis] of cases) {
      it(`may be ${what}`, () => {
        expect(resolveTarget(options)).to.deep.equal({ kind: 'single', redis })
      })
    }

    it('are copied', () => {
      const tls = { servername: 's' }
      const target = resolveTarget({ host: 'h', tls })
      tls.servername = 'changed'
      expect(target).to.deep.equal({ kind: 'single', redis: { host: 'h', port: 6379, tls: { servername: 's' } } })
    })
  })

  it('of sentinels are passed on', () => {
    const options = {
      sentinels: [{ host: 'a' }, { host: 'b', port: 1 }],
      name: 'main',
      sentinelUsername: 'su',
      sentinelPassword: 'sp',
      password: 'p',
    }
    expect(resolveTarget(options)).to.deep.equal({
      kind: 'single',
      redis: {
        sentinels: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 1 },
        ],
        name: 'main',
        sentinelUsername: 'su',
        sentinelPassword: 'sp',
        password: 'p',
      },
    })
  })

  it('of a cluster are nodes in any form', () => {
    const cluster = [{ host: 'a' }, 'redis://b:7001', new URL('redis://c'), { host: 'd', port: 5 }]
    expect(resolveTarget({ cluster, password: 'p' })).to.deep.equal({
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 7001 },
        { host: 'c', port: 6379 },
        { host: 'd', port: 5 },
      ],
      redis: { password: 'p' },
    })
  })

  it('of a cluster take credentials and TLS from a url', () => {
    expect(resolveTarget({ cluster: ['rediss://u:p@a:1'] })).to.deep.equal({
      kind: 'cluster',
      nodes: [{ host: 'a', port: 1 }],
      redis: { username: 'u', password: 'p', tls: {} },
    })
  })

  it('may be a client of the user', () => {
    const redis = { status: 'ready', isCluster: false, options: {}, duplicate: () => ({}), on: () => ({}) }
    expect(resolveTarget({ redis })).to.deep.equal({ kind: 'borrowed', client: redis })
  })

  describe('are refused', () => {
    const client = { status: 'ready', isCluster: false, options: {}, duplicate: () => ({}), on: () => ({}) }
    const cases: [what: string, options: unknown, message: RegExp][] = [
      [
        'two ways at once',
        { url: 'redis://h', host: 'h' },
        /one of url, host, sentinels, cluster, replicated, redis, got url and host/,
      ],
      ['a url and a client', { url: 'redis://h', redis: client }, /got url and redis/],
      [
        'sentinels and a cluster',
        { sentinels: [{ host: 'a' }], cluster: [{ host: 'a' }], name: 'n' },
        /got sentinels and cluster/,
      ],
      ['a url that is none', { url: 'redis.local' }, /^url: expected redis:\/\//],
      [
        'a url of another scheme',
        { url: 'http://h' },
        /^url: expected the scheme redis:\/\/ or rediss:\/\/, got another/,
      ],
      ['a url with a query', { url: 'redis://h?tls=true' }, /^url: expected no query; use the options instead/],
      [
        'a url with a database that is not a number',
        { url: 'redis://h/main' },
        /^database in url: expected a number, got something else/,
      ],
      ['a url with two databases', { url: 'redis://h/1/2' }, /^database in url: expected a number/],
      [
        'a user in two places',
        { url: 'redis://u@h', username: 'u' },
        /^username: expected it either in the url or in the options/,
      ],
      ['a database in two places', { url: 'redis://h/1', db: 1 }, /^db: expected it either/],
      ['an empty host', { host: '' }, /^options\.host: expected a non-empty string, got an empty string/],
      ['a host that is no text', { host: 5 }, /^options\.host: expected a non-empty string, got 5/],
      ['a port of 0', { port: 0 }, /^options\.port: expected a whole number from 1 to 65535, got 0/],
      ['a port that is too large', { host: 'h', port: 65_536 }, /^options\.port: expected a whole number/],
      [
        'a port that is text',
        { host: 'h', port: '6379' },
        /^options\.port: expected a whole number from 1 to 65535, got a string of 4 characters/,
      ],
      ['a database that is negative', { db: -1 }, /^db: expected a whole number/],
      ['a database with a cluster', { cluster: [{ host: 'a' }], db: 1 }, /^db: expected 0 with a cluster, got 1/],
      ['a database with a cluster url', { cluster: ['redis://a/1'] }, /^db: expected 0 with a cluster, got 1/],
      ['TLS that is text', { tls: 'yes' }, /^tls: expected true or false, got a string of 3 characters/],
      ['TLS that is null', { host: 'h', tls: null }, /^tls: expected true or false, got null/],
      [
        'a TLS url and no TLS',
        { url: 'rediss://h', tls: false },
        /^tls: expected true or options with a rediss:\/\/ URL, got false/,
      ],
      ['a TLS url of a cluster and no TLS', { cluster: ['rediss://h'], tls: false }, /^tls: expected true or options/],
      ['no sentinels', { sentinels: [], name: 'n' }, /^sentinels: expected a non-empty array, got an array of 0/],
      ['sentinels without a name', { sentinels: [{ host: 'a' }] }, /^name: expected a non-empty string, got undefined/],
      [
        'a sentinel without a host',
        { sentinels: [{}], name: 'n' },
        /^sentinels\.host: expected a non-empty string, got undefined/,
      ],
      ['no cluster nodes', { cluster: [] }, /^cluster: expected a non-empty array, got an array of 0/],
      [
        'a cluster that is no array',
        { cluster: 'redis://a' },
        /^cluster: expected a non-empty array, got a string of 9 characters/,
      ],
      ['a client that is none', { redis: {} }, /^redis: expected an ioredis client, got an object \(Object\)/],
      [
        'a client without options',
        { redis: { status: 'ready', duplicate: () => ({}) } },
        /^redis: expected an ioredis client, got an object/,
      ],
      ['a client that is null', { redis: null }, /^redis: expected an ioredis client, got null/],
      [
        'a keyPrefix',
        { ioredis: { keyPrefix: 'app:' } },
        /^keyPrefix: expected none on the ioredis client; use the nameMapper option instead, got a string of 4 characters/,
      ],
      [
        'a client with a keyPrefix',
        { redis: { ...client, options: { keyPrefix: 'app:' } } },
        /^keyPrefix: .*nameMapper/,
      ],
      [
        'a cluster client with a keyPrefix',
        { redis: { ...client, options: { redisOptions: { keyPrefix: 'app:' } } } },
        /^keyPrefix: .*nameMapper/,
      ],
    ]
    for (const [what, options, message] of cases) {
      it(`when they have ${what}`, () => {
        expect(failure(options).message).to.match(message)
      })
    }

    it('when the URLs of a cluster do not agree, and not when they do', () => {
      const urls = ['redis://u:p@a:1', 'redis://u:p@b:2']
      for (const way of ['cluster', 'replicated'] as const) {
        expect(resolveTarget({ [way]: urls })).to.deep.include({ redis: { username: 'u', password: 'p' } })
        expect(resolveTarget({ [way]: [urls[0], 'redis://u:p@b:2/0'] })).to.deep.include({
          redis: { username: 'u', password: 'p' },
        })
        for (const other of ['redis://u:other@b:2', 'redis://b:2', 'rediss://u:p@b:2', 'redis://u:p@b:2/1']) {
          expect(failure({ [way]: [urls[0], other] }).message).to.match(/the same .* in all URLs/)
        }
      }
    })

    it('without a word about passwords', () => {
      const secret = 'pw5ecret'
      for (const options of [
        { url: `redis://u:${secret}@h:notaport` },
        { url: `http://u:${secret}@h` },
        { url: `redis://u:${secret}@h/db` },
        { url: `redis://u:${secret}@h?x=1` },
        { url: `redis://u:${secret}@h`, password: secret },
        { url: `redis://:${secret}@h`, host: 'h' },
        { host: '', password: secret },
        { password: [secret] },
        { username: '', password: secret },
        { sentinels: [], sentinelPassword: secret },
        { cluster: [`redis://u:${secret}@h/db`] },
        { cluster: [`nonsense ${secret}`] },
        { cluster: [], password: secret },
      ]) {
        const error = failure(options)
        expect(inspect(error), inspect(options)).to.not.include(secret)
        expect(error.stack).to.not.include(secret)
      }
    })
  })

  it('do not show a password of the wrong type', () => {
    expect(failure({ password: 5318008 }).message).to.equal('password: expected a string, got a number')
  })

  it('read every password from a url as it was', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 1 }),
        fc.string({ unit: 'grapheme', minLength: 1 }),
        (username, password) => {
          const url = `redis://${encodeURIComponent(username)}:${encodeURIComponent(password)}@h`
          expect(resolveTarget({ url })).to.deep.include({ redis: { host: 'h', port: 6379, username, password } })
        },
      ),
    )
  })

  it('with an unescaped percent sign are refused as any other, without the password', () => {
    expect(failure({ url: 'redis://u:100%zz@h' }).message).to.equal(
      'password in url: expected every percent sign escaped as %25, got one that is not',
    )
    expect(failure({ url: 'redis://100%zz@h' }).message).to.match(/^user in url: /)
  })
})
