import { expect } from 'chai'
import { cleanError } from '../../src/clean-error.js'
import { decodeTicket, dueOf } from '../../src/codecs/ticket.js'
import { splitTicket, withoutShard } from '../../src/codecs/sharded-ticket.js'
import { resolveTarget } from '../../src/redis/options.js'
import { translateError } from '../../src/redis/replies/server-errors.js'
import { assertVersion, roleIn } from '../../src/redis/connections/server-version.js'
import * as errors from '../../src/errors.js'
import { RedelayedError } from '../../src/errors.js'
import { EventHub } from '../../src/events.js'
import { prefixName, nameOfKey, queueKeys, reliableKeys, twinOf } from '../../src/keys.js'
import { logEvents } from '../../src/observability/log-events.js'
import { nonEmptyString, onlyKnown, oneOf } from '../../src/options.js'
import { parseAddress } from '../../src/java/redisson-yaml/address.js'
import { natMapOf } from '../../src/java/redisson-yaml/nat-map.js'
import { readRedissonYaml } from '../../src/java/redisson-yaml/redisson-yaml.js'
import { Section } from '../../src/java/redisson-yaml/section.js'
import { substitute } from '../../src/java/redisson-yaml/variables.js'
import { readTree } from '../../src/java/redisson-yaml/yaml-tree.js'
import { reasonOf } from '../../src/reliable/acknowledger.js'
import { readFailures } from '../../src/reliable/failures.js'
import { assertId, assertKnownId } from '../../src/reliable/message-id.js'
import { checkHeaders } from '../../src/reliable/record.js'
import { protect, unprotect } from '../../src/cli/arguments.js'
import { failureLine } from '../../src/cli/failure.js'
import { parseCodec, parseDelay, parseLimit, parseLayout, parseValue } from '../../src/cli/input.js'
import { jsonText, preview, table } from '../../src/cli/output.js'
import { aboutQueue } from '../../src/doctor/finding.js'
import { allowedBy } from '../../src/doctor/inspect-acl.js'
import { inspectServer } from '../../src/doctor/inspect-server.js'
import * as texts from '../../src/text.js'
import { durationMs } from '../../src/duration.js'
import { announcedTime } from '../../src/scheduler/due-scheduler.js'
import type { RedelayedClient } from '../../src/index.js'
import { leastCpuMs } from '../support/cpu.js'
import { isLongForm } from '../support/long-form.js'
import { pathological } from './pathological.js'

const MAX_CPU_MS = 200

const withName = (name: string, message: string): Error => Object.assign(new Error(message), { name })
const withStack = (text: string): Error => Object.assign(new Error('x'), { stack: `Error: x\n    at ${text}` })
const yamlWith = (address: string): string => JSON.stringify({ singleServerConfig: { address } })
/** Every seventy characters one. */
const lines = (text: string): string => (below(text, 16_000).match(/.{1,70}/gs) ?? []).join('\n')
const below = (text: string, length: number): string => text.slice(0, length)

/** Everything that takes text from outside; a path may throw an error of ours, and nothing else. */
const paths: Readonly<Record<string, (text: string) => unknown>> = {
  clean: texts.clean,
  printable: texts.printable,
  quoted: texts.quoted,
  cut: (text) => texts.cut(text, 100),
  escapedInJson: texts.escapedInJson,
  describe: errors.describe,
  inQuotes: errors.inQuotes,
  toError: errors.toError,
  RedelayedError: (text) => new RedelayedError('ERR_X', text, { queue: text, cause: text }),
  InvalidArgumentError: (text) => new errors.InvalidArgumentError(text, text, text),
  EncodeError: (text) => new errors.EncodeError(text, text, text),
  CommandError: (text) => new errors.CommandError(text, text),
  'an error of an error': (text) => new errors.DecodeError('json', new RedelayedError('ERR_X', text).message),
  cleanError: (text) => cleanError(withName(text, text)),
  'cleanError of a stack': (text) => cleanError(withStack(text)),
  'cleanError of stack lines': (text) => cleanError(withStack(text.replaceAll(' ', '\n    at '))),
  'an error of the server': (text) => translateError(withName('ReplyError', text)),
  'an error of the server in capitals': (text) => translateError(withName('ReplyError', `WRONG${text}`)),
  'an error of a script': (text) => translateError(withName('ReplyError', `ERR @user_script: 1: ${text}`)),
  'an error about rights': (text) => translateError(withName('ReplyError', `NOPERM User ${text}`)),
  'an error of the socket': (text) => translateError(new Error(text)),
  'errors of sockets': (text) => translateError(new AggregateError([new Error(text), new Error(text)], '')),
  'an event': (text) => new EventHub().client.emit('error', new RedelayedError('ERR_X', text), () => {}),
  'a log line': logged,
  'the reason of a failure': (text) => reasonOf(withName(text, text)),
  'the history of a message': (text) => readFailures(`1 2 ${JSON.stringify(text)}\n1 3 ${text}\n${text}`),
  'a history of lines without an end': (text) => readFailures(`1 2 ${text.slice(0, 1)}\n`.repeat(text.length / 5)),
  'a failure of the command line': (text) => failureLine(new Error(text)),
  'a preview': (text) => preview(text),
  'a preview of an object': (text) => preview({ [text]: [text] }),
  'JSON text': (text) => jsonText({ text }),
  'a table': (text) => table([[texts.printable(text), 'x']]),
  'a finding': (text) => aboutQueue(text, 'wrong-type', 'error', text),
  'words of the command line': (text) => protect([text, `-${text}`]).map(unprotect),
  '--limit': (text) => ours(() => parseLimit(text, 1, 10)),
  'a delay': (text) => ours(() => parseDelay(text)),
  '--codec': (text) => ours(() => parseCodec({ codec: text })),
  '--layout': (text) => ours(() => parseLayout({ layout: text })),
  'a value': (text) => ours(() => parseValue(text, 'json')),
  oneOf: (text) => ours(() => oneOf(text, text, ['a'])),
  onlyKnown: (text) => ours(() => onlyKnown(text, { [text]: 1 }, ['a'])),
  'a name': (text) => nonEmptyString('name', text),
  'a duration': (text) => ours(() => durationMs('x', text)),
  'a url': (text) => ours(() => resolveTarget({ url: text })),
  'a redis url': (text) => ours(() => resolveTarget({ url: `redis://${text}` })),
  'a host': (text) => ours(() => resolveTarget({ host: text })),
  'a node of a cluster': (text) => ours(() => resolveTarget({ cluster: [`redis://${text}`] })),
  'names of keys': (text) => [queueKeys(text), reliableKeys(text), twinOf(text), prefixName('x', text)],
  'a key': (text) => [
    nameOfKey(text),
    nameOfKey(`redisson_delay_queue:{${text}`),
    nameOfKey(`redelayed:quarantine:${text}`),
  ],
  'a ticket': (text) => ours(() => decodeTicket('raw', 'queue', text)),
  'the due time of a ticket': (text) => ours(() => dueOf(text)),
  'a ticket of a sharded queue': (text) => [ours(() => splitTicket(text)), ours(() => withoutShard(text))],
  'the id of a message': (text) => [ours(() => assertId('id', text)), ours(() => assertKnownId('id', text))],
  headers: (text) => ours(() => checkHeaders({ [text]: text })),
  'an announcement': announcedTime,
  'the role in INFO': (text) => roleIn(text),
  'ACL rules': (text) => allowedBy({ rules: text, categories: {} }, ['GET', 'x']),
  'a variable': (text) => ours(() => substitute(text, 'path', { a: 'b' })),
  'an address of Redisson': (text) => ours(() => parseAddress('address', text)),
  'an address of Redisson after its scheme': (text) => ours(() => parseAddress('address', `redis://${text}`)),
  'an address to translate': translated,
  YAML: (text) => ours(() => readTree(text, (value) => value)),
  'YAML that is just not too long': (text) => ours(() => readTree(below(text, 16_384), (value) => value)),
  'lines of YAML that are just not too many': (text) => ours(() => readTree(lines(text), (value) => value)),
  'a file of Redisson': (text) => ours(() => readRedissonYaml(text, {}, [])),
  'an address in a file of Redisson': (text) => ours(() => readRedissonYaml(yamlWith(below(text, 16_384)), {}, [])),
}

describe('text from outside', function () {
  this.timeout(60_000)

  for (const [path, run] of Object.entries(paths)) {
    it(`costs less than ${MAX_CPU_MS} ms for a million characters of any kind: ${path}`, async () => {
      for (const [kind, make] of pathological) {
        if (!isLongForm && Math.random() > 0.25) continue
        const text = make()
        expect(await leastCpuMs(MAX_CPU_MS, () => run(text)), kind).to.be.below(MAX_CPU_MS)
      }
    })
  }

  it('costs so little in replies to INFO, too', async () => {
    for (const [kind, make] of pathological) {
      const info = `a:1\r\n${make()}\r\nredis_version:7.0.0`
      const ask = (name: string) => answer(name === 'INFO' ? info : null)
      const server = { address: 'x:1', ask, askBytes: ask }
      const least = await leastCpuMs(MAX_CPU_MS, async () => {
        await assertVersion({ info: () => answer(info) } as never)
        await inspectServer(server, false).catch(() => undefined)
      })
      expect(least, kind).to.be.below(MAX_CPU_MS)
    }
  })

  it('is covered: each function that cleans text is in the table', () => {
    for (const name of Object.keys(texts).filter((key) => typeof texts[key as keyof typeof texts] === 'function'))
      expect(paths).to.have.property(name)
  })
})

describe('text from outside, in errors and in output', () => {
  // eslint-disable-next-line no-control-regex
  const UNWANTED = /[\0-\x1f\x7f-\x9f\u061c\u115f\u1160\u3164\uffa0\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/

  for (const [kind, make] of pathological) {
    it(`is one short line that steers no terminal: ${kind}`, () => {
      const text = make()
      const error = translateError(withName('ReplyError', `ERR ${text}`))
      const argument = errors.attributeTo(new errors.InvalidArgumentError(text, text, text), text)
      const cause = error.cause as Error
      const shown = [error.message, argument.message, cause.message, failureLine(withName('x', text)), preview(text)]
      for (const line of [...shown, ...(cause.stack ?? '').split('\n')]) {
        expect(line.length).to.be.at.most(2_500)
        expect(line).to.not.match(UNWANTED)
        expect(line.isWellFormed(), 'half of a surrogate pair').to.equal(true)
      }
      const json = jsonText({ text })
      expect(json.replaceAll('\n', '')).to.not.match(UNWANTED)
      expect(JSON.parse(json)).to.deep.equal({ text })
    })
  }
})

/** Refused with an error of ours, or taken. */
function ours(action: () => unknown): unknown {
  try {
    return action()
  } catch (error) {
    if (error instanceof RedelayedError || (error as Error).name === 'UsageError') return (error as Error).message
    throw error
  }
}

function translated(text: string): unknown {
  const hosts = new Section(
    readTree('natMapper: !<org.redisson.api.HostNatMapper> { hostsMap: { a: b } }', (value) => value),
  )
  return natMapOf('clusterServersConfig', hosts).natMap?.(text)
}

function logged(text: string): unknown {
  const lines: unknown[] = []
  const note = (fields: object): void => void lines.push(fields)
  const hub = new EventHub()
  logEvents(hub.client as unknown as RedelayedClient, { debug: note, info: note, warn: note, error: note })
  const common = { attempt: 1, ms: 1, lateMs: 1, outcome: 'failed' } as const
  hub.emit('settled', { queue: text, id: text, task: text, ...common, error: withName(text, text) })
  hub.emit('added', { queue: text, count: 1, ids: [text] })
  hub.emit('quarantined', { queue: text, reason: 'undecodable', count: 1, error: withName(text, text) })
  expect(lines).to.have.length(3)
  return lines
}

function answer<T>(value: T): Promise<T> {
  return Promise.resolve(value)
}
