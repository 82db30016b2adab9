// What people build and test with: for each a small project that uses the packed library, as the tool's own guide would
// write it. None of them needs a server.

export interface Tool {
  readonly name: string
  /** What is installed beside the tarball. */
  readonly packages: readonly string[]
  /** The files of the project, besides package.json. */
  readonly files: Readonly<Record<string, string>>
  /** `"type"` of package.json. */
  readonly type?: 'module'
  /** The commands, one after another; each has to end with exit code 0. */
  readonly commands: readonly (readonly [command: string, ...args: string[]])[]
  /** What the last command prints. */
  readonly prints: RegExp
}

/** Sets a schedule, reads YAML and measures. */
export const usesEverything = `
  import { createClient } from 'redelayed'
  import { createClientFromRedissonYaml } from 'redelayed/java'
  import { prometheusMetrics } from 'redelayed/prometheus'
  const client = createClient({ url: 'redis://127.0.0.1:1', connectTimeout: 50 })
  client.on('error', () => undefined)
  let all = 'all of it'
  try {
    prometheusMetrics(client)
  } catch (error) {
    all = 'it needs ' + error.message.split('npm install ')[1]
  }
  createClientFromRedissonYaml('singleServerConfig: { address: redis://127.0.0.1:1 }').shutdown()
  const set = client.getReliableQueue('q').upsertSchedule('r', 1, { cron: '* * * * *' })
  set.catch((error) => error).then(({ message }) => {
    console.log(/npm install/.test(message) ? message : all)
    return client.shutdown()
  })
`

const begin = `const client = createClient({ url: 'redis://127.0.0.1:1', connectTimeout: 50, commandTimeout: 200 })
  client.on('error', () => undefined)`

const jestTest = `
test('a client', async () => {
  ${begin}
  const error = await client.getReliableQueue('q').size().catch((thrown) => thrown)
  expect(error).toBeInstanceOf(ConnectionError)
  // under Jest, errors of Node's own modules are of another realm
  expect(String(error)).toContain('ECONNREFUSED')
  await client.shutdown()
})
`

const mochaTest = `import assert from 'node:assert/strict'
import { createClient, ConnectionError } from 'redelayed'
it('a client', async () => {
  ${begin}
  await assert.rejects(client.getReliableQueue('q').size(), ConnectionError)
  await client.shutdown()
})
`

const nestApp = `import 'reflect-metadata'
import { Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { createClient, type ReliableQueue, type RedelayedClient } from 'redelayed'

const CLIENT = Symbol('redelayed')

@Injectable()
class Mails implements OnApplicationShutdown {
  readonly queue: ReliableQueue<string>
  constructor(@Inject(CLIENT) private readonly client: RedelayedClient) {
    this.queue = client.getReliableQueue<string>('mails')
  }
  async onApplicationShutdown(): Promise<void> {
    await this.client.shutdown()
    console.log('the client is shut down')
  }
}

@Module({
  providers: [
    {
      provide: CLIENT,
      useFactory: () => {
        const client = createClient({ url: 'redis://127.0.0.1:1', connectTimeout: 50 })
        client.on('error', () => undefined)
        return client
      },
    },
    Mails,
  ],
})
class App {}

void NestFactory.createApplicationContext(App, { logger: false }).then((app) => app.close())
`

const tsconfigCommonJs = (more: object = {}): string =>
  JSON.stringify({
    compilerOptions: {
      target: 'es2022',
      lib: ['es2023', 'esnext.disposable'],
      module: 'node16',
      moduleResolution: 'node16',
      strict: true,
      types: ['node'],
      ...more,
    },
  })

const jest = (version: string): Tool => ({
  name: `Jest ${version} runs a test of it without any setting`,
  packages: [`jest@${version}`],
  files: { 'a.test.js': `const { createClient, ConnectionError } = require('redelayed')\n${jestTest}` },
  commands: [['npx', 'jest']],
  prints: /1 passed/,
})

const webpack = (format: 'commonjs' | 'module'): Tool => ({
  name: `a bundle of webpack 5 needs nothing that is optional (${format})`,
  packages: ['webpack@5', 'webpack-cli@7'],
  type: 'module',
  files: {
    'main.js': usesEverything,
    'webpack.config.js': `export default {
  mode: 'production', target: 'node20', entry: './main.js', ignoreWarnings: [/./],
  experiments: { outputModule: ${format === 'module'} },
  output: { filename: 'bundle.${format === 'module' ? 'mjs' : 'cjs'}'${format === 'module' ? ", module: true, chunkFormat: 'module'" : ''} },
}
`,
  },
  commands: [
    ['npx', 'webpack'],
    ['node', `dist/bundle.${format === 'module' ? 'mjs' : 'cjs'}`],
  ],
  prints: /^it needs prom-client$/,
})

export const tools: readonly Tool[] = [
  jest('29'),
  jest('30'),
  {
    name: 'ts-jest compiles a test of it and runs it',
    packages: ['jest@30', 'ts-jest@29', 'typescript@5', '@types/jest@30', '@types/node@20'],
    files: {
      'a.test.ts': `import { createClient, ConnectionError } from 'redelayed'\n${jestTest}`,
      'jest.config.js': "module.exports = { preset: 'ts-jest', testEnvironment: 'node' }\n",
      'tsconfig.json': tsconfigCommonJs({ types: ['node', 'jest'], isolatedModules: true }),
    },
    commands: [['npx', 'jest']],
    prints: /1 passed/,
  },
  {
    name: 'vitest runs a test of it',
    packages: ['vitest@4'],
    type: 'module',
    files: {
      'a.test.js': `import { expect, test } from 'vitest'\nimport { createClient, ConnectionError } from 'redelayed'\n${jestTest}`,
    },
    commands: [['npx', 'vitest', 'run']],
    prints: /1 passed/,
  },
  {
    name: 'mocha runs a test of it',
    packages: ['mocha@11'],
    type: 'module',
    files: { 'test/a.js': mochaTest },
    commands: [['npx', 'mocha']],
    prints: /1 passing/,
  },
  webpack('commonjs'),
  webpack('module'),
  {
    name: 'a module of Nest 11 begins and ends with it',
    packages: ['@nestjs/core@11', '@nestjs/common@11', 'reflect-metadata', 'rxjs@7', 'typescript@5', '@types/node@20'],
    files: {
      'main.ts': nestApp,
      'tsconfig.json': tsconfigCommonJs({
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        skipLibCheck: true,
      }),
    },
    commands: [
      ['npx', 'tsc'],
      ['node', 'main.js'],
    ],
    prints: /^the client is shut down$/,
  },
]
