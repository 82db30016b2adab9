import { expect } from 'chai'
import { DecodeError, ReadOnlyError, RedelayedError, WrongTypeError } from '../../src/errors.js'
import { EventHub, type SettledEvent, type TransferredEvent } from '../../src/events.js'
import { expectWarning } from '../support/hooks.js'

const transferred = (queue: string): TransferredEvent => ({ queue, count: 1, maxLatenessMs: 0 })

describe('EventHub', () => {
  it('gives events to all listeners of the client, with the event as the only argument', () => {
    const hub = new EventHub()
    const heard: unknown[][] = []
    hub.client.on('transferred', (...args) => heard.push(args))
    hub.client.on('transferred', (...args) => heard.push(args))
    const event = transferred('a')
    hub.emit('transferred', event)
    expect(heard).to.deep.equal([[event], [event]])
    expect(heard[0]![0]).to.equal(event)
  })

  it('gives a queue only the events of its own', () => {
    const hub = new EventHub()
    const heard: string[] = []
    const note = (who: string) => (event: { queue?: string | undefined }) => void heard.push(`${who} ${event.queue}`)
    const [a1, a2, b] = [hub.forQueue('a'), hub.forQueue('a'), hub.forQueue('b')]
    hub.client.on('transferred', note('client'))
    a1.events.on('transferred', note('a1'))
    a2.events.on('transferred', note('a2'))
    b.events.on('transferred', note('b'))
    a1.events.on('error', note('a1 error'))

    hub.emit('transferred', transferred('a'))
    hub.emit('transferred', transferred('b'))
    hub.emit('transferred', transferred('c'))
    hub.emit('error', new ReadOnlyError({ queue: 'a' }))

    expect(heard).to.deep.equal(['client a', 'a1 a', 'a2 a', 'client b', 'b b', 'client c', 'a1 error a'])
  })

  it('gives events without a queue to the client only', () => {
    const hub = new EventHub()
    const heard: string[] = []
    const { events } = hub.forQueue('a')
    hub.client.on('reconnecting', () => heard.push('client'))
    events.on('reconnecting', () => heard.push('queue'))
    hub.emit('reconnecting', { connection: 'commands', attempt: 1, delayMs: 5 })
    expect(heard).to.deep.equal(['client'])
  })

  it('ends the events of one queue object without those of another', () => {
    const hub = new EventHub()
    const heard: string[] = []
    const [first, second] = [hub.forQueue('a'), hub.forQueue('a')]
    first.events.on('transferred', () => heard.push('first'))
    second.events.on('transferred', () => heard.push('second'))
    first.end()
    first.end()
    hub.emit('transferred', transferred('a'))
    second.end()
    hub.emit('transferred', transferred('a'))
    const third = hub.forQueue('a')
    third.events.on('transferred', () => heard.push('third'))
    first.end()
    hub.emit('transferred', transferred('a'))
    expect(heard).to.deep.equal(['second', 'third'])
  })

  it('calls a once-listener once, and a removed one never', () => {
    const hub = new EventHub()
    const heard: string[] = []
    const listener = () => void heard.push('removed')
    hub.client.once('transferred', () => heard.push('once'))
    hub.client.on('transferred', listener)
    hub.client.off('transferred', listener)
    hub.emit('transferred', transferred('a'))
    hub.emit('transferred', transferred('a'))
    expect(heard).to.deep.equal(['once'])
  })

  it('lets a listener remove itself without skipping the next', () => {
    const hub = new EventHub()
    const heard: string[] = []
    const first = () => {
      heard.push('first')
      hub.client.off('transferred', first)
    }
    hub.client.on('transferred', first)
    hub.client.on('transferred', () => heard.push('second'))
    hub.emit('transferred', transferred('a'))
    expect(heard).to.deep.equal(['first', 'second'])
  })

  it('continues when a listener throws, and warns of it once', async () => {
    const warned = expectWarning(/ERR_LISTENER a listener threw \(broken\); listen to 'error' to see every one/)
    const hub = new EventHub()
    const heard: string[] = []
    const { events } = hub.forQueue('a')
    hub.client.on('transferred', () => {
      throw new Error('broken')
    })
    hub.client.on('transferred', () => heard.push('client'))
    events.on('transferred', () => {
      throw new Error('broken too')
    })
    events.on('transferred', () => heard.push('queue'))
    hub.emit('transferred', transferred('a'))
    hub.emit('transferred', transferred('a'))
    expect(heard).to.deep.equal(['client', 'queue', 'client', 'queue'])
    expect(await warned).to.include({ name: 'RedelayedWarning', code: 'ERR_LISTENER' })
  })

  it('survives an error listener that throws', async () => {
    const warned = expectWarning(/a listener threw/)
    const hub = new EventHub()
    hub.client.on('error', (error) => {
      throw error
    })
    hub.emit('error', new ReadOnlyError())
    expect(await warned).to.have.property('code', 'ERR_LISTENER')
  })

  it('warns of an error without a listener, once per code and queue', async () => {
    const hub = new EventHub()
    const warnings = [
      expectWarning(
        /^RedelayedWarning ERR_READ_ONLY the server is a read-only replica.* \(underneath\); listen to 'error'/,
      ),
      expectWarning(/^RedelayedWarning ERR_READ_ONLY queue "a": /),
      expectWarning(/^RedelayedWarning ERR_READ_ONLY queue "b": /),
      expectWarning(/^RedelayedWarning ERR_WRONG_TYPE queue "a": /),
    ]
    for (let i = 0; i < 3; i++) {
      hub.emit('error', new ReadOnlyError({ cause: new Error('underneath') }))
      hub.emit('error', new ReadOnlyError({ queue: 'a' }))
      hub.emit('error', new ReadOnlyError({ queue: 'b' }))
      hub.emit('error', new WrongTypeError({ queue: 'a' }))
    }
    const arrived = await Promise.all(warnings)
    expect(arrived.map((warning) => (warning as Error & { code?: string }).code)).to.deep.equal([
      'ERR_READ_ONLY',
      'ERR_READ_ONLY',
      'ERR_READ_ONLY',
      'ERR_WRONG_TYPE',
    ])
  })

  /** The process warnings of an action; Node emits them after it. */
  async function warningsOf(action: () => void): Promise<string[]> {
    const seen: string[] = []
    const listener = (warning: Error): void => void seen.push(warning.message)
    process.on('warning', listener)
    action()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', listener)
    return seen
  }

  it('does not warn of an error that has a listener on the client or the queue', async () => {
    const hub = new EventHub()
    const heard: unknown[] = []
    const warnings = await warningsOf(() => {
      hub.forQueue('a').events.on('error', (error) => heard.push(error))
      hub.emit('error', new ReadOnlyError({ queue: 'a' }))
      hub.client.on('error', (error) => heard.push(error))
      hub.emit('error', new ReadOnlyError())
      hub.emit('error', new ReadOnlyError({ queue: 'b' }))
    })
    expect(warnings).to.deep.equal([])
    expect(heard).to.have.length(3)
  })

  it('does not warn of other events without a listener', async () => {
    const hub = new EventHub()
    const warnings = await warningsOf(() => {
      hub.emit('transferred', transferred('a'))
      hub.emit('quarantined', { queue: 'a', reason: 'malformed', count: 1 })
      hub.emit('subscribed', { queue: 'a' })
      hub.emit('reconnecting', { connection: 'commands', attempt: 1, delayMs: 1 })
    })
    expect(warnings).to.deep.equal([])
  })

  const failed: SettledEvent = {
    queue: 'a',
    id: '1',
    task: 'wel\ncome',
    attempt: 2,
    ms: 1,
    lateMs: 0,
    outcome: 'failed',
    error: Object.assign(new TypeError('no mailbox'), { request: { password: 'secret' } }),
  }
  const unreadable = {
    queue: 'a',
    reason: 'undecodable',
    count: 1,
    error: new DecodeError('json', 'not JSON'),
  } as const
  const eviction = { code: 'REDELAYED_EVICTION', message: 'the server deletes' } as const
  const delay = { code: 'REDELAYED_TIMESTAMP_DELAY', message: 'a long delay', queue: 'a' } as const

  it('warns once of each kind of important event, with the stack of a failed handler', async () => {
    const hub = new EventHub()
    const warnings = [
      expectWarning(
        /^RedelayedWarning REDELAYED_HANDLER_FAILED queue "a": the handler of task "wel\\ncome" failed at attempt 2;/,
      ),
      expectWarning(/^RedelayedWarning REDELAYED_UNREADABLE .*json.*docs\/quarantine\.md; .* listen to 'quarantined'/),
      expectWarning(/^RedelayedWarning REDELAYED_EVICTION the server deletes; .* listen to 'warning'/),
      expectWarning(/^RedelayedWarning REDELAYED_TIMESTAMP_DELAY a long delay;/),
    ]
    const codes: unknown[] = []
    const listener = (warning: Error & { code?: string }): void => void codes.push(warning.code)
    process.on('warning', listener)
    for (const queue of ['a', 'b']) {
      hub.emit('settled', { ...failed, queue })
      hub.emit('quarantined', { ...unreadable, queue })
      hub.emit('warning', eviction)
      hub.emit('warning', delay)
    }
    const [failure] = (await Promise.all(warnings)) as [Error & { detail?: string }]
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', listener)
    expect(codes).to.have.length(4)
    expect(failure.detail).to.match(/^TypeError: no mailbox\n {4}at .*events\.test/)
    expect(failure.detail).not.to.include('secret')
  })

  it('does not warn of events with a listener on the client or the queue', async () => {
    for (const sourceOf of [(hub: EventHub) => hub.client, (hub: EventHub) => hub.forQueue('a').events]) {
      const hub = new EventHub()
      const heard: unknown[] = []
      for (const name of ['settled', 'quarantined', 'warning'] as const) {
        sourceOf(hub).on(name, (event: unknown) => heard.push(event))
      }
      const warnings = await warningsOf(() => {
        hub.emit('settled', failed)
        hub.emit('quarantined', unreadable)
        hub.emit('warning', delay)
      })
      expect(warnings).to.deep.equal([])
      expect(heard).to.have.length(3)
    }
  })

  it('does not warn of other outcomes, and of nothing when it is switched off', async () => {
    const outcomes = ['completed', 'deferred', 'rejected', 'released', 'lost'] as const
    const silent = new EventHub(false)
    const hub = new EventHub()
    const warnings = await warningsOf(() => {
      for (const outcome of outcomes) hub.emit('settled', { ...failed, outcome })
      silent.emit('settled', failed)
      silent.emit('quarantined', unreadable)
      silent.emit('warning', eviction)
      silent.emit('error', new ReadOnlyError())
    })
    expect(warnings).to.deep.equal([])
  })

  it('warns of a bounded number of different errors', async () => {
    const hub = new EventHub()
    const warnings = Array.from({ length: 100 }, () => expectWarning(/ERR_MANY queue "\d+"/))
    for (let i = 0; i < 150; i++) hub.emit('error', new RedelayedError('ERR_MANY', 'text', { queue: String(i) }))
    const arrived = await Promise.all(warnings)
    expect(arrived.at(-1)!.message).to.include('queue "99"')
  })

  it('takes any number of listeners without a warning of Node', () => {
    const hub = new EventHub()
    let heard = 0
    for (let i = 0; i < 50; i++) hub.client.on('transferred', () => heard++)
    hub.emit('transferred', transferred('a'))
    expect(heard).to.equal(50)
  })

  it('gives each change of a queue once, also when one of two sources ends and the other one is behind', () => {
    const hub = new EventHub()
    const heard: string[] = []
    hub.client.on('added', ({ ids }) => heard.push(...ids))
    const [first, second] = [hub.fromAll('q'), hub.fromAll('q')]
    const give = (source: typeof first, id: string, epoch = 'e') => source.emit({ epoch, id }, [['added', [id]]])
    for (const id of ['9-0', '10-9', '10-10']) give(first, id)
    give(second, '9-0')
    first.end()
    for (const id of ['10-9', '10-10', '10-11']) give(second, id)
    give(second, '1-0', 'another')
    expect(heard).to.deep.equal(['9-0', '10-9', '10-10', '10-11', '1-0'])
    second.end()
    hub.messages('added', 'q', ['own'])
    expect(heard.at(-1)).to.equal('own')
  })
})
