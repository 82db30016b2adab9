import { expect } from 'chai'
import { inspect } from 'node:util'
import { brokenAt, isBrief, isTransient, mayConcernOne, translateError } from '../../src/redis/replies/server-errors.js'
import {
  AuthError,
  CommandError,
  ConnectionError,
  CrossSlotError,
  ReadOnlyError,
  RedelayedError,
  ShutdownError,
  UnsupportedServerError,
  WrongTypeError,
} from '../../src/errors.js'

/** An error of ioredis, with the whole command on it. */
function serverError(message: string): Error {
  const error = new Error(message)
  error.name = 'ReplyError'
  return Object.assign(error, { command: { name: 'evalsha', args: ['sha', 'the payload', 'the password'] } })
}

function connectionError(message: string, name = 'Error'): Error {
  return Object.assign(new Error(message), { name, command: { name: 'auth', args: ['the password'] } })
}

describe('errors of the server', () => {
  const wrongType = 'WRONGTYPE Operation against a key holding the wrong kind of value'
  const cases: [message: string, kind: new (...args: never[]) => RedelayedError, properties?: object][] = [
    [wrongType, WrongTypeError],
    [`${wrongType} script: 54f1, on @user_script:30.`, WrongTypeError],
    [`ERR Error running script (call to f_54f1): @user_script:30: ${wrongType}`, WrongTypeError],
    [`ERR Error running script (call to f_54f1): @user_script:30: @user_script: 30: -${wrongType}`, WrongTypeError],
    ["READONLY You can't write against a read only replica.", ReadOnlyError],
    [
      "ERR Error running script (call to f_54f1): @user_script:30: @user_script: 30: -READONLY You can't write against a read only replica.",
      ReadOnlyError,
    ],
    ["CROSSSLOT Keys in request don't hash to the same slot", CrossSlotError],
    ['NOAUTH Authentication required.', AuthError],
    ['WRONGPASS invalid username-password pair or user is disabled.', AuthError],
    ["NOPERM this user has no permissions to run the 'eval' command", AuthError],
    ['ERR invalid password', AuthError],
    ['ERR invalid username-password pair', AuthError],
    ["ERR unknown command 'BLMPOP', with args beginning with: 'x'", UnsupportedServerError],
    ['ERR unknown command `BLMPOP`', UnsupportedServerError],
    ["OOM command not allowed when used memory > 'maxmemory'.", CommandError, { redisCode: 'OOM' }],
    [
      "ERR Error running script (call to f_54f1): @user_script:30: @user_script: 30: -OOM command not allowed when used memory > 'maxmemory'.",
      CommandError,
      { redisCode: 'OOM' },
    ],
    ['NOSCRIPT No matching script. Please use EVAL.', CommandError, { redisCode: 'NOSCRIPT' }],
    ['LOADING Redis is loading the dataset in memory', CommandError, { redisCode: 'LOADING' }],
    ['UNBLOCKED client unblocked via CLIENT UNBLOCK', CommandError, { redisCode: 'UNBLOCKED' }],
    ['ERR value is not an integer or out of range', CommandError, { redisCode: 'ERR' }],
    ['something without a code', CommandError, { redisCode: 'ERR' }],
    ['', CommandError, { redisCode: 'ERR' }],
  ]
  for (const [message, kind, properties = {}] of cases) {
    it(`become ${kind.name}: ${message.slice(0, 90)}`, () => {
      const thrown = serverError(message)
      const error = translateError(thrown)
      expect(error.constructor).to.equal(kind)
      expect(error).to.include(properties)
      expect(error.cause).to.be.instanceOf(Error).and.not.equal(thrown)
      expect(error.cause).to.include({ name: 'ReplyError', message: message.split(', with args')[0] })
      expect(thrown, 'the original is left alone').to.have.property('command')
    })
  }

  it('give advice when the password is missing or wrong', () => {
    for (const [reply, says] of [
      ['NOAUTH HELLO must be called with the client already authenticated', /got none \(NOAUTH\).*url.*password/],
      ['WRONGPASS invalid username-password pair', /no such user.*\(WRONGPASS\).*url.*username and password/],
    ] as const)
      expect(translateError(serverError(reply)).message).to.match(says)
  })

  it('do not show where in the script they came from', () => {
    const message =
      "ERR Error running script (call to f_54f1): @user_script:30: @user_script: 30: -OOM command not allowed when used memory > 'maxmemory'."
    expect(translateError(serverError(message)).message).to.equal(
      "the server refused the command: OOM command not allowed when used memory > 'maxmemory'.",
    )
  })

  it('do not quote the reply that ioredis has no command for', () => {
    for (const what of ['reply', 'error']) {
      const thrown = new Error(
        `Command queue state error. If you can reproduce this, please report it. Last ${what}: a payload`,
      )
      const { message, cause } = translateError(thrown)
      expect(message).to.match(/Command queue state error\. .*report it\.$/)
      expect((cause as Error).message).not.to.contain('a payload')
    }
  })

  it('carry neither payloads nor passwords', () => {
    for (const thrown of [
      serverError(wrongType),
      serverError('ERR x'),
      serverError('NOAUTH x'),
      connectionError('read ECONNRESET'),
    ]) {
      const text = inspect(translateError(thrown), { depth: 9, showHidden: true })
      expect(text).to.not.include('the payload')
      expect(text).to.not.include('the password')
    }
  })
})

describe('errors of the connection', () => {
  it('leave open whether the command was carried out', () => {
    for (const message of [
      'read ECONNRESET',
      'Connection is closed.',
      'Command timed out',
      'connect ECONNREFUSED 127.0.0.1:1',
    ]) {
      const error = translateError(connectionError(message))
      expect(error).to.be.instanceOf(ConnectionError)
      expect(error).to.include({ outcome: 'unknown', message: `the connection to Redis broke: ${message}` })
    }
  })

  it('name the address, and why the connection ended where ioredis says only that it did', () => {
    const silent = connectionError("Socket timeout. Expecting data, but didn't receive any in 2500ms.")
    const closed = translateError(connectionError('Connection is closed.'))
    const at = 'the connection to Redis at a:1 broke: '
    const why = 'the server owed a reply and was silent for 2.5 s'
    expect(brokenAt('a:1', translateError(silent)).message).to.equal(at + why)
    expect(brokenAt('a:1', closed, translateError(silent).message)).to.include({
      outcome: 'unknown',
      message: at + why,
    })
    expect(brokenAt('a:1', closed, 'it was slow').message).to.equal(`${at}it was slow`)
    expect(brokenAt('a:1', closed).message).to.equal(`${at}Connection is closed.`)
    const reset = translateError(connectionError('read ECONNRESET'))
    expect(brokenAt('a:1', reset, 'it was slow').message).to.equal(`${at}read ECONNRESET`)
    const refused = translateError(serverError('OOM'))
    expect(brokenAt('a:1', refused)).to.equal(refused)
  })

  it('say that nothing was sent where ioredis refused to', () => {
    const error = translateError(connectionError("Stream isn't writeable and enableOfflineQueue options is false"))
    expect(error).to.be.instanceOf(ConnectionError).with.property('outcome', 'not-applied')
  })

  it('say what happened with each address of a name', () => {
    const each = [new Error('connect ECONNREFUSED ::1:1'), new Error('connect ECONNREFUSED 127.0.0.1:1')]
    expect(translateError(new AggregateError(each, '')).message).to.equal(
      'the connection to Redis broke: connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1',
    )
  })

  it('may be anything that is thrown', () => {
    expect(translateError('text')).to.be.instanceOf(ConnectionError).with.property('outcome', 'unknown')
    expect(translateError(undefined)).to.be.instanceOf(ConnectionError)
  })

  it('that are translated already stay as they are', () => {
    const error = new ShutdownError('the client was shut down')
    expect(translateError(error)).to.equal(error)
  })
})

describe('errors that one of several messages in a script may be to blame for', () => {
  const sha = 'script: f5c3, on @user_script:48.'
  for (const [message, may] of [
    [`WRONGTYPE Operation against a key holding the wrong kind of value ${sha}`, true],
    ['NOPERM this user has no permissions to access one of the keys used as arguments', true],
    [`ERR The user executing the script can't publish to the channel mentioned in the script ${sha}`, true],
    [`ERR ACL failure in script: User app has no permissions to access the 'c' channel ${sha}`, true],
    ["ERR Error running script (call to f_5c3): @user_script:48: The user executing the script can't publish", true],
    ['ERR upstream failure', false],
    ['ERR Connection timed out', false],
    ['OOM command not allowed when used memory > maxmemory', false],
    ['BUSY Redis is busy running a script.', false],
  ] as const) {
    it(`${may ? 'are' : 'are not'}: ${message}`, () => {
      expect(mayConcernOne(translateError(serverError(message)))).to.equal(may)
    })
  }
})

describe('errors that pass', () => {
  const passing = [
    'LOADING',
    'MASTERDOWN',
    'CLUSTERDOWN',
    'BUSY',
    'TRYAGAIN',
    'MOVED',
    'ASK',
    'UNBLOCKED',
    'NOREPLICAS',
  ]
  it('are those of a server that is starting, moving or gone', () => {
    for (const code of passing) expect(isTransient(translateError(serverError(`${code} text`))), code).to.equal(true)
    expect(isTransient(translateError(serverError('READONLY text')))).to.equal(true)
    expect(isTransient(translateError(connectionError('read ECONNRESET')))).to.equal(true)
  })

  it('can pass at any moment when the server itself refused', () => {
    for (const code of ['BUSY', 'LOADING', 'CLUSTERDOWN'])
      expect(isBrief(translateError(serverError(`${code} not now`))), code).to.equal(true)
    expect(isBrief(translateError(connectionError('read ECONNRESET')))).to.equal(false)
    expect(isBrief(translateError(serverError('ERR wrong')))).to.equal(false)
  })

  it('are not those of a wrong call', () => {
    for (const message of [
      'ERR syntax error',
      'OOM text',
      'NOSCRIPT text',
      'WRONGTYPE text',
      'NOAUTH text',
      'CROSSSLOT text',
      'BUSYGROUP text',
      'ERR unknown command',
    ]) {
      expect(isTransient(translateError(serverError(message))), message).to.equal(false)
    }
    expect(isTransient(new RedelayedError('ERR_X', 'text'))).to.equal(false)
  })
})
