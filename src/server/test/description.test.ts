import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { newSecret, readSecret } from '../delivery/webhook-secret.js'
import { Type } from 'typebox'
import { named, withComponents } from '../api/components.js'
import { described } from '../api/described.js'
import { PROBLEMS } from '../api/problem.js'
import * as schemas from '../api/schemas.js'
import {
  AcknowledgeInput,
  EndpointInput,
  MessageInput,
  MessageOutput,
  MessagePage,
  TopicInput,
} from '../api/schemas.js'
import { isBase64 } from '../topics/body.js'
import { leaseText } from '../topics/lease.js'
import { startTestService } from './support/service.js'

/** The fields of a described body that the tests read. */
interface Described {
  readonly allOf?: readonly object[]
  readonly properties: Readonly<
    Record<string, { readonly pattern?: string; readonly items?: { readonly pattern: string } }>
  >
}

describe('the OpenAPI description', () => {
  it('has a component for each schema with a name, also if it is optional or inside of another one', () => {
    const response = named({ 200: MessagePage, 201: Type.Object({ message: Type.Optional(MessageOutput) }) })
    const document = { paths: { '/x': { responses: response } }, components: { securitySchemes: {} } }
    const { paths, components } = withComponents(document) as unknown as {
      readonly paths: object
      readonly components: { readonly schemas: Readonly<Record<string, object>> }
    }
    expect(paths).to.deep.equal({
      '/x': {
        responses: {
          200: { $ref: '#/components/schemas/MessagePage' },
          201: { type: 'object', properties: { message: { $ref: '#/components/schemas/MessageOutput' } } },
        },
      },
    })
    expect(components).to.have.property('securitySchemes')
    expect(Object.keys(components.schemas)).to.deep.equal(['Failure', 'MessageOutput', 'MessagePage'])
    expect(components.schemas['MessagePage']).to.have.deep.nested.property('properties.messages.items', {
      $ref: '#/components/schemas/MessageOutput',
    })
    expect(components.schemas['Failure']).to.have.deep.nested.property('properties.attempt', {
      type: 'integer',
      format: 'int64',
    })
  })

  it('refuses two schemas of one name', () => {
    const paths = [1, 2].map((minimum) => ({ title: 'Outcome', minimum }))
    expect(() => withComponents({ paths })).to.throw('two schemas have the name Outcome')
  })

  it('has a flag as a boolean that can stand without a value, and texts as texts', () => {
    const flag = {
      in: 'query',
      name: 'force',
      schema: { anyOf: [{ type: 'boolean' }, { type: 'string', enum: [''] }] },
    }
    const { paths } = withComponents({ paths: { parameters: [flag], schema: { enum: ['a', 'b'] } } })
    expect(paths).to.deep.equal({
      parameters: [{ in: 'query', name: 'force', schema: { type: 'boolean' }, allowEmptyValue: true }],
      schema: { type: 'string', enum: ['a', 'b'] },
    })
  })

  it('has only alternatives with types: generators would make types of the same name of others', () => {
    const alternativesOf = (schema: unknown): object[] => {
      if (typeof schema !== 'object' || schema === null) return []
      const { anyOf = [], oneOf = [] } = schema as { anyOf?: object[]; oneOf?: object[] }
      return [...anyOf, ...oneOf, ...Object.values(schema).flatMap(alternativesOf)]
    }
    const all = Object.values(schemas).flatMap((schema) => alternativesOf(described(schema as object)))
    expect(all.length).to.be.above(10)
    expect(all.filter((each) => !('type' in each || '$ref' in each || 'enum' in each))).to.deep.equal([])
  })

  it('includes the rules that an operation checks beside its schema', () => {
    const message = described(MessageInput) as unknown as Described
    expect(message.allOf).to.deep.equal([
      { not: { required: ['delay', 'dueAt'] } },
      { not: { required: ['body', 'bodyBase64'] } },
      { not: { allOf: [{ required: ['group', 'priority'] }, { properties: { priority: { minimum: 1 } } }] } },
    ])
    const base64 = new RegExp(message.properties['bodyBase64']?.pattern ?? '$^')
    for (const text of ['', 'AA==', 'AAA=', 'AAAA', 'A', 'AAA', 'A===', 'A-_A', 'AAAA='])
      expect(base64.test(text), text).to.equal(isBase64(text) && !text.endsWith('==='))
    const leases = described(AcknowledgeInput) as unknown as Described
    const lease = leaseText({ topic: 'a.b:c-1', attempt: 12, receipt: 'xY_-0' })
    expect(lease).to.match(new RegExp(leases.properties['leases']?.items?.pattern ?? '$^'))
    const endpoint = described(EndpointInput) as unknown as Described
    const secret = new RegExp(endpoint.properties['secret']?.pattern ?? '$^')
    const isSecret = (text: string): boolean => {
      try {
        return readSecret(text) !== undefined
      } catch {
        return false
      }
    }
    const sizes = Array.from({ length: 70 }, (_, bytes) => Buffer.alloc(bytes, 0xa7).toString('base64'))
    for (const text of [newSecret('v1'), newSecret('v1a'), 'whsk_', 'x', ...sizes.map((each) => `whsec_${each}`)])
      expect(secret.test(text), text).to.equal(isSecret(text))
    expect(described(TopicInput)).to.not.have.property('allOf')
  })

  it('is of problems whose codes and statuses are those of docs/http-api.md', () => {
    const page = readFileSync(new URL('../../../docs/http-api.md', import.meta.url), 'utf8')
    const rows = Array.from((page.split('\n## Problems\n')[1] ?? '').matchAll(/^\| (`[^|]+`) \| (\d{3}) \|/gm))
    const named = rows.flatMap(([, codes = '', status]) =>
      Array.from(codes.matchAll(/`([^`]+)`/g), ([, code = '']) => [code, Number(status)] as const),
    )
    const own = Object.entries(PROBLEMS).map(([code, [status]]) => [code, status])
    expect(named).to.have.deep.members(own)
  })

  it('is checked by schemathesis, except for the paths that docs/testing.md names', async () => {
    const root = new URL('../../../', import.meta.url)
    const read = (path: string): string => readFileSync(new URL(path, root), 'utf8')
    const test = await startTestService({ legacyRoutes: true })
    const { paths } = (await test.ask('GET', '/openapi.json')).body
    await test.stop()
    const operations = read('test/schema/schemathesis.toml').split('[[operations]]').slice(1)
    const excepted = operations.map((text) => /^include-path = "([^"]+)"$/m.exec(text)?.[1] ?? text)
    expect(paths).to.include.keys(excepted)
    const off = excepted.filter((_, at) => /^enabled = false$/m.test(operations[at] ?? ''))
    const endless = Object.keys(paths).filter((path) => JSON.stringify(paths[path]).includes('server-sent events'))
    expect(off, 'streams').to.have.members(endless)
    const [, section = ''] = read('docs/testing.md').split('### The description of the HTTP API')
    const named = Array.from(section.split(/\n##+ /, 1)[0]?.matchAll(/^\| ([^|]+) \| (`[^|]+`) \|/gm) ?? [])
      .flatMap(([, , cell = '']) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, path = '']) => path))
      .map((path) => path.replace('…', '/v1/topics/{topic}'))
    expect([...new Set(named)]).to.have.members([...new Set(excepted)])
  })
})
