import { expect } from 'chai'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { ApiKeys } from '../api/api-keys.js'
import { Metrics } from '../api/metrics.js'
import { loadSettings, unknownVariables } from '../config/load-settings.js'
import type { ServerSettings } from '../config/server-settings.js'
import { faultsOf, hasNginx, renderedConfig } from './support/nginx.js'
import { startTestService } from './support/service.js'

const dir = fileURLToPath(new URL('../deploy/', import.meta.url))
const root = fileURLToPath(new URL('../../../', import.meta.url))
const read = (name: string): string => readFileSync(join(dir, name), 'utf8')
const has = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0
/**
 * The loader that `docker compose` reads its files with, and the schemas of Kubernetes; `.ci/run` installs them, docs/testing.md says how.
 */
const COMPOSE = join(root, '.cache/compose-go/cmd')
const KUBERNETES = join(root, '.cache/kubernetes-validate/bin/kubernetes-validate')
/** The oldest release with schemas that are tried; the other one is the newest. */
const OLD_KUBERNETES = '1.29'

// The fields that the tests read from YAML; a wrong guess fails the test.
/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-member-access */
type Tree = Readonly<Record<string, any>>

/** The settings that variables give, with the files of secrets replaced by existing ones. */
function settingsOf(variables: Readonly<Record<string, string>>): ServerSettings {
  const at = mkdtempSync(join(tmpdir(), 'redelayed-deploy-'))
  try {
    const contents: Record<string, string> = { redis: 'redis://:p@redis:6379\n', journal: 'postgres://u:p@db/d\n' }
    const env = Object.entries(variables).map(([name, value]) => {
      const [, secret = ''] = /^REDELAYED_(\w+)_FILE$/.exec(name) ?? []
      if (secret === '') return [name, value]
      const path = join(at, secret)
      writeFileSync(path, contents[secret.toLowerCase()] ?? '')
      return [name, path]
    })
    const given = Object.fromEntries(env) as Record<string, string>
    expect(unknownVariables(given)).to.deep.equal([])
    return loadSettings({ env: given })
  } finally {
    rmSync(at, { recursive: true, force: true })
  }
}

const secondsOf = (text: string): number => Number(/^(\d+)s?$/.exec(text)?.[1])

/** An instance that stops waits for `shutdownDelay`, for its requests, and for its webhooks. */
function expectGrace(seconds: number, { shutdownDelay, shutdownTimeout }: ServerSettings): void {
  expect(seconds * 1_000).to.be.greaterThan(shutdownDelay + 2 * shutdownTimeout)
}

describe('the files of the deployment', function () {
  this.timeout(60_000)

  it('compose.yaml refers to existing files, and gives settings that the service takes', () => {
    const { services, secrets, volumes } = parse(read('compose.yaml'), { merge: true }) as Tree
    expect(services).to.have.all.keys('redelayed-1', 'redelayed-2', 'nginx', 'redis', 'postgres')
    for (const [name, service] of Object.entries(services as Record<string, Tree>)) {
      for (const secret of (service['secrets'] ?? []) as string[]) expect(secrets, name).to.have.property(secret)
      for (const other of Object.keys((service['depends_on'] ?? {}) as Tree)) {
        expect(services, name).to.have.property(other)
        const { healthcheck, image } = (services as Tree)[other] as Tree
        if (image !== 'redelayed-server') expect(healthcheck, other).to.be.an('object') // that image has its own
      }
      for (const volume of (service['volumes'] ?? []) as string[])
        if (!volume.startsWith('.')) expect(volumes).to.have.property(volume.split(':', 1)[0]!)
    }
    const instance = (services as Tree)['redelayed-1'] as Tree
    const settings = settingsOf(instance['environment'] as Record<string, string>)
    expect(settings).to.include({ redis: 'redis://:p@redis:6379', journal: 'postgres://u:p@db/d' })
    expectGrace(secondsOf(instance['stop_grace_period'] as string), settings)
    const { context, dockerfile } = instance['build'] as { context: string; dockerfile: string }
    expect(readdirSync(join(dir, context)), 'the context is the repository').to.include('package-lock.json')
    expect(join(dir, context, dockerfile)).to.equal(join(dir, 'Dockerfile'))
    expect((services as Tree)['redis'].command).to.include.members(['--appendonly', 'noeviction'])
    for (const { file } of Object.values(secrets as Record<string, { file: string }>))
      expect(read('secrets.sh'), file).to.contain(file.replace('secrets/', '"$dir/'))
  })

  it('compose.yaml is loaded by the loader of docker compose, which refuses a misspelt field', function () {
    if (!has(COMPOSE, '-help')) return skip(this, 'compose-go')
    const load = (text: string) => {
      const at = mkdtempSync(join(tmpdir(), 'redelayed-deploy-'))
      try {
        writeFileSync(join(at, 'compose.yaml'), text)
        return spawnSync(COMPOSE, [join(at, 'compose.yaml')], { cwd: at, encoding: 'utf8' })
      } finally {
        rmSync(at, { recursive: true, force: true })
      }
    }
    const { status, stdout, stderr } = load(read('compose.yaml'))
    expect(status, stderr).to.equal(0)
    const { services } = parse(stdout) as { services: Record<string, { environment?: object; read_only?: boolean }> }
    for (const name of ['redelayed-1', 'redelayed-2'])
      expect(services[name]?.environment, name).to.have.property('REDELAYED_JOURNAL_FILE')
    expect(load(read('compose.yaml').replace('stop_grace_period:', 'stop_grace_perio:')).status).to.equal(1)
  })

  it('secrets.sh makes files that the service and Redis can read, and a key that works', () => {
    const at = mkdtempSync(join(tmpdir(), 'redelayed-deploy-'))
    const made = join(at, 'secrets')
    try {
      const { status, stdout, stderr } = spawnSync('sh', [join(dir, 'secrets.sh'), made], { encoding: 'utf8' })
      expect([status, stderr]).to.deep.equal([0, ''])
      const [key = ''] = /rdk_\S+/.exec(stdout) ?? []
      const keys = new ApiKeys(join(made, 'api-keys'), () => {})
      expect(keys.find(key)?.scopes).to.have.all.keys('push', 'consume', 'read', 'admin')
      const files = { REDELAYED_REDIS_FILE: join(made, 'redis-url'), REDELAYED_JOURNAL_FILE: join(made, 'journal-url') }
      const { redis = '', journal = '' } = loadSettings({ env: files })
      const secret = (name: string): string => readFileSync(join(made, name), 'utf8')
      expect(secret('redis.conf')).to.equal(`requirepass ${new URL(redis).password}\n`)
      expect(secret('postgres-password'))
        .to.equal(new URL(journal).password)
        .and.to.match(/^[0-9a-f]{48}$/)
      const again = spawnSync('sh', [join(dir, 'secrets.sh'), made], { encoding: 'utf8' })
      expect(again.status, 'what is there stays').to.equal(1)
    } finally {
      rmSync(at, { recursive: true, force: true })
    }
  })

  it('kubernetes.yaml has settings that the service takes, probes of its paths, and time to stop', () => {
    const documents = parseAllDocuments(read('kubernetes.yaml'))
    expect(documents.flatMap(({ errors }) => errors)).to.deep.equal([])
    const [deployment, service, budget] = documents.map((document) => document.toJS() as Tree)
    expect([deployment!['kind'], service!['kind'], budget!['kind']]).to.deep.equal([
      'Deployment',
      'Service',
      'PodDisruptionBudget',
    ])
    const { selector, template } = deployment!['spec'] as Tree
    for (const labels of [selector.matchLabels, service!['spec'].selector, budget!['spec'].selector.matchLabels])
      expect(template.metadata.labels).to.deep.include(labels)
    const { containers, volumes, terminationGracePeriodSeconds, enableServiceLinks } = template.spec as Tree
    expect(enableServiceLinks, 'REDELAYED_PORT=tcp://… is refused').to.equal(false)
    const [container] = containers as Tree[]
    const env = container!['env'] as { name: string; value: string }[]
    const settings = settingsOf(Object.fromEntries(env.map(({ name, value }) => [name, value])))
    expectGrace(terminationGracePeriodSeconds as number, settings)
    const { periodSeconds, failureThreshold, httpGet } = container!['readinessProbe'] as Tree
    expect(settings.shutdownDelay, 'the probe sees it before').to.be.greaterThan(
      Number(periodSeconds) * Number(failureThreshold) * 1_000,
    )
    expect(httpGet.path).to.equal('/readyz')
    expect(container!['livenessProbe'].httpGet.path).to.equal('/livez')
    const mounted = (container!['volumeMounts'] as Tree[]).map(({ name }) => name as string)
    expect(mounted).to.have.members((volumes as Tree[]).map(({ name }) => name as string))
    for (const { name, value } of env)
      if (value.startsWith('/')) expect(value, name).to.match(/^\/etc\/redelayed\/(redis-url|journal-url|api-keys)$/)
  })

  it('kubernetes.yaml has only what the schemas of Kubernetes know', function () {
    if (!has(KUBERNETES, '--version')) return skip(this, 'kubernetes-validate')
    const validate = (text: string, ...args: string[]) => {
      const at = mkdtempSync(join(tmpdir(), 'redelayed-deploy-'))
      try {
        writeFileSync(join(at, 'kubernetes.yaml'), text)
        const { status, stdout, stderr } = spawnSync(KUBERNETES, ['--strict', ...args, join(at, 'kubernetes.yaml')], {
          encoding: 'utf8',
        })
        return { status, output: stdout + stderr }
      } finally {
        rmSync(at, { recursive: true, force: true })
      }
    }
    for (const args of [[], ['--kubernetes-version', OLD_KUBERNETES]]) {
      const { status, output } = validate(read('kubernetes.yaml'), ...args)
      expect(status, output).to.equal(0)
      expect(output.match(/passed for resource/g), output).to.have.length(3)
    }
    for (const [what, by] of [
      ['replicas: 2', 'replica: 2'],
      ['containerPort: 8080', 'containerPort: http'],
      ['maxSkew: 1', 'maxSkew: one'],
    ] as const)
      expect(validate(read('kubernetes.yaml').replace(what, by)).status, by).to.equal(1)
  })

  it('the unit gives settings that the service takes, and time to stop', () => {
    const lines = read('redelayed-server.service').split('\n')
    const values = (name: string): string[] =>
      lines.flatMap((line) => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []))
    const variables = Object.fromEntries(values('Environment').map((each) => each.split('=', 2) as [string, string]))
    delete variables['NODE_ENV']
    const credentials = values('LoadCredential').map((each) => `%d/${each.split(':', 1)[0]}`)
    const files = Object.entries(variables).flatMap(([name, value]) => (name.endsWith('_FILE') ? [value] : []))
    expect(files).to.have.members(credentials)
    expectGrace(secondsOf(values('TimeoutStopSec')[0]!), settingsOf(variables))
  })

  it('systemd-analyze finds nothing wrong in the unit, and little exposed', function () {
    if (!has('systemd-analyze', '--version')) return skip(this, 'systemd-analyze')
    const at = mkdtempSync(join(tmpdir(), 'redelayed-deploy-'))
    try {
      // the program has to be there
      const unit = join(at, 'redelayed-server.service')
      writeFileSync(unit, read('redelayed-server.service').replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`))
      const verified = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
      expect([verified.status, verified.stderr]).to.deep.equal([0, ''])
      const security = ['security', '--offline=true', '--threshold=20', '--no-pager', unit]
      const exposed = spawnSync('systemd-analyze', security, { encoding: 'utf8' })
      if (/unrecognized option/.test(exposed.stderr)) return
      expect(exposed.status, exposed.stdout).to.equal(0)
    } finally {
      rmSync(at, { recursive: true, force: true })
    }
  })

  it('the Dockerfile copies existing files, and runs the program of the package, not as root', () => {
    const lines = read('Dockerfile').split('\n')
    const ignored = read('Dockerfile.dockerignore').split('\n')
    const sources = lines.flatMap((line) => {
      const [, from = ''] = /^COPY (?!--from)(.+) \S+$/.exec(line) ?? []
      return from === '' ? [] : from.split(' ')
    })
    expect(sources).to.include.members(['package-lock.json', 'src', 'scripts', 'tsconfig.json'])
    for (const source of sources) {
      expect(ignored, source).to.include(`!${source.split('/', 1)[0]}`)
      expect(() => readdirSync(join(root, source)), source).to.not.throw(/ENOENT/)
    }
    const { bin } = JSON.parse(readFileSync(join(dir, '../package.json'), 'utf8')) as { bin: Record<string, string> }
    expect(lines.at(-2)).to.equal(`ENTRYPOINT ["node", "/app/src/server/${bin['redelayed-server']}"]`)
    expect(lines).to.include('USER node')
    const [, variables = ''] = /^ENV NODE_ENV=production (.+)$/m.exec(read('Dockerfile')) ?? []
    settingsOf(Object.fromEntries(variables.split(' ').map((each) => each.split('=', 2) as [string, string])))
  })

  it('the HEALTHCHECK of the Dockerfile passes while the service runs, and not after its end', async () => {
    const [, command = ''] = /^HEALTHCHECK .*\\\n +CMD (\[.+\])$/m.exec(read('Dockerfile')) ?? []
    const [program = '', ...args] = JSON.parse(command) as string[]
    const service = await startTestService()
    const check = async (): Promise<unknown> => {
      const env = { PATH: process.env['PATH'], REDELAYED_PORT: new URL(service.url).port }
      const [code] = (await once(spawn(program, args, { env, stdio: 'ignore' }), 'exit')) as unknown[]
      return code
    }
    try {
      expect(await check()).to.equal(0)
    } finally {
      await service.stop()
    }
    expect(await check()).to.equal(1)
  })

  it('nginx takes its configuration', function () {
    if (!hasNginx) return skip(this, 'nginx')
    expect(faultsOf(renderedConfig('DIR', 8_080, [8_081, 8_082]))).to.equal(undefined)
  })

  it('promtool takes the alert rules, which fire when they should', function () {
    if (!has('promtool', '--version')) return skip(this, 'promtool (package prometheus)')
    for (const args of [
      ['check', 'rules', 'alerts.yaml'],
      ['test', 'rules', 'alerts.test.yaml'],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: dir, encoding: 'utf8' })
      expect(status, stdout + stderr).to.equal(0)
    }
  })

  describe('metrics', () => {
    interface Expression {
      readonly where: string
      readonly text: string
    }
    interface Panel {
      readonly title: string
      readonly targets: readonly { readonly expr: string }[]
    }
    const board = JSON.parse(read('grafana-board.json')) as { readonly panels: readonly Panel[] }
    const { groups } = parse(read('alerts.yaml')) as { groups: { rules: { alert: string; expr: string }[] }[] }
    const expressions: Expression[] = [
      ...board.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ where: title, text: expr }))),
      ...groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => ({ where: alert, text: expr }))),
    ]
    const named = /\b(redelayed_\w+)/g

    it('of the board and the alerts are all on /metrics of a running service, with these labels', async () => {
      const service = await startTestService()
      const text = (await service.ask('GET', '/metrics')).body as unknown as string
      await service.stop()
      const types = new Map(Array.from(text.matchAll(/^# TYPE (\w+) (\w+)$/gm), ([, name, type]) => [name, type]))
      expect(types.size).to.be.greaterThan(10)
      const { registry } = new Metrics()
      expect(expressions.length).to.be.greaterThan(20)
      for (const { where, text } of expressions) {
        for (const [, name = ''] of text.matchAll(named)) {
          const base = name.replace(/_(bucket|count|sum)$/, '')
          const isPart = types.get(base) === 'histogram' && base !== name
          expect(types.get(isPart ? base : name), `${where}: ${name}`).to.be.a('string')
          if (types.get(name) === 'histogram') throw new Error(`${where}: ${name} has no value of its own`)
          const { labelNames } = registry.getSingleMetric(isPart ? base : name) as unknown as { labelNames: string[] }
          const [, matchers = ''] = new RegExp(`${name}\\{([^}]*)\\}`).exec(text) ?? []
          for (const [, label] of matchers.matchAll(/(\w+)\s*(?:=|!=|=~|!~)\s*"/g))
            expect([...labelNames, 'instance', 'job'], `${where}: ${name}`).to.include(label)
        }
      }
    })

    it('of the board are in expressions that promtool parses', function () {
      if (!has('promtool', '--version')) return skip(this, 'promtool (package prometheus)')
      const at = mkdtempSync(join(tmpdir(), 'redelayed-deploy-'))
      const check = (texts: readonly string[]) => {
        const rules = texts.map((expr, n) => ({ record: `panel:${n}`, expr }))
        writeFileSync(join(at, 'board.yaml'), JSON.stringify({ groups: [{ name: 'board', rules }] }))
        return spawnSync('promtool', ['check', 'rules', join(at, 'board.yaml')], { encoding: 'utf8' })
      }
      try {
        const texts = board.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
        expect(texts.length).to.be.above(20)
        // Grafana puts a time there
        const { status, stdout, stderr } = check(texts.map((text) => text.replaceAll('$__rate_interval', '1m')))
        expect(status, stdout + stderr).to.equal(0)
        expect(check(['sum by (le (rate(up[1m])))']).status).to.equal(1)
      } finally {
        rmSync(at, { recursive: true, force: true })
      }
    })

    it('are all in docs/service.md, and no others', () => {
      const { registry } = new Metrics()
      const names = registry.getMetricsAsArray().map(({ name }) => name)
      const page = readFileSync(join(root, 'docs/service.md'), 'utf8')
      const listed = Array.from(page.matchAll(/^\| `(redelayed_\w+)` \|/gm), ([, name]) => name)
      expect(listed).to.have.members(names)
    })
  })
})

/** What CI cannot install for sure: it comes from registries, or with the system. */
const MAY_LACK = ['compose-go', 'kubernetes-validate', 'systemd-analyze']

function skip(test: Mocha.Context, what: string): never {
  if (process.env['CI'] && !MAY_LACK.includes(what)) throw new Error(`${what} is not installed`)
  console.log(`      SKIPPED: ${what} is not installed`)
  return test.skip()
}
