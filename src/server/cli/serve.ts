// `redelayed-server [--flags]`: the delay service.
import { readFileSync } from 'node:fs'
import { ConfigError, loadSettings, unknownVariables } from '../config/load-settings.js'
import { helpLines, type ServerSettings } from '../config/server-settings.js'
import type { Service } from '../service/service.js'

const args = process.argv.slice(2)
const { version } = JSON.parse(readFileSync(new URL(import.meta.resolve('redelayed-server/package.json')), 'utf8')) as {
  version: string
}

if (args.includes('--help') || args.includes('-h')) help()
else if (args.includes('--version')) console.log(version)
else await main()

async function main(): Promise<void> {
  try {
    const given = args.filter((arg) => arg !== '--check-config')
    const settings = loadSettings({ args: given, env: process.env, needsFiles: true })
    // not a mistake: Kubernetes sets some for a service of that name
    for (const name of unknownVariables(process.env)) console.error(`${name}: there is no such setting; it is ignored`)
    if (args.includes('--check-config')) {
      console.log('The configuration is fine.')
      return
    }
    // a start mostly reads modules: commands that only check settings need few of them
    const { startService } = await import('../service/service.js')
    const service = await startService(settings, version)
    endWith(service) // before the greeting: who reads it can stop the service
    greet(service, settings)
  } catch (error) {
    console.error(
      error instanceof ConfigError ? mistakesOf(error) : error instanceof Error ? error.message : String(error),
    )
    process.exitCode = error instanceof ConfigError ? 2 : 1
  }
}

/** The mistakes, a line each. */
function mistakesOf({ problems }: ConfigError): string {
  const head = problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`
  return [`the configuration has ${head}:`, ...problems.map((problem) => `  ${problem}`)].join('\n')
}

function greet(service: Service, settings: ServerSettings): void {
  console.log((settings.readOnly ? readOnlyLines(service) : serviceLines(service, settings)).join('\n'))
}

function readOnlyLines({ url, madeKey, keysPath }: Service): string[] {
  return [
    `redelayed-server ${version} shows the queues of this Redis at ${url}/ui, and writes nothing into it`,
    ...keyLines(madeKey, keysPath),
  ]
}

function keyLines(madeKey: string | undefined, keysPath: string): string[] {
  return madeKey === undefined
    ? [`Keys: ${keysPath}; make one more with "redelayed-server key".`]
    : [`Key (it is shown once; its hash is in ${keysPath}):`, `  ${madeKey}`]
}

function serviceLines({ url, madeKey, keysPath, ownRedis, journal }: Service, { dataDir }: ServerSettings): string[] {
  const key = madeKey ?? '<your key>'
  const lines = [`redelayed-server ${version} listens on ${url}`, '']
  if (ownRedis !== undefined) {
    lines.push(`Redis: ${ownRedis.what}. For production set --redis or REDIS_URL.`)
    if (!ownRedis.isDurable)
      lines.push(
        journal === undefined
          ? '*** This emulator forgets all messages when it stops, and is slow. Use it for a look only. ***'
          : '*** This emulator is slow: use it for a look only. What it forgets when it stops, the journal puts back. ***',
      )
  }
  lines.push(
    journal === undefined
      ? 'Journal: none; what Redis loses is lost. Set --journal to have every message in SQL too.'
      : `Journal: ${journal}.`,
    '',
  )
  lines.push(...keyLines(madeKey, keysPath))
  const post = `curl -s -X POST -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json'`
  lines.push(
    '',
    'Try it: push a message that is due in 5 seconds, wait for it, and acknowledge it with its lease.',
    `  ${post} ${url}/v1/topics/orders/messages -d '{"delay":5000,"body":{"order":7}}'`,
    `  ${post} ${url}/v1/topics/orders/receive -d '{"wait":10000}'`,
    `  ${post} ${url}/v1/leases/acknowledge -d '{"leases":["<lease>"]}'`,
    '',
    `The API is described at ${url}/docs, for programs at ${url}/openapi.json.${ownRedis === undefined ? '' : ` The data are in ${dataDir}.`}`,
  )
  return lines
}

/** The first signal shuts the service down gracefully, the second ends it at once. */
function endWith(service: Service): void {
  let since: number | undefined
  const end = (code: number): void => {
    if (since !== undefined) {
      // a terminal and npm both forward a single Ctrl-C
      if (performance.now() - since > 1_000) process.exit(1)
      return
    }
    since = performance.now()
    service.close().then(
      () => process.exit(code),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  }
  process.on('SIGINT', () => end(0))
  process.on('SIGTERM', () => end(0))
  service.failed.catch((error: unknown) => {
    if (since !== undefined) return
    console.error(error instanceof Error ? error.message : error)
    end(1)
  })
}

function help(): void {
  const lines = [
    'redelayed-server [flags]          the delay service',
    'redelayed-server key [flags]      make an API key',
    'redelayed-server journal <action> look after a journal; see "redelayed-server journal --help"',
    '',
    'Each setting is a flag, a variable (--max-batch: REDELAYED_MAX_BATCH) and a line of the file of --config (max-batch: 500).',
    'Settings that can be secret also come from a file: --redis-file, REDELAYED_REDIS_FILE.',
    '',
    ...helpLines(),
    '  --config <path>                    A file with settings, YAML or JSON.',
    '  --check-config                     Say what is wrong with the settings, and end.',
  ]
  console.log(lines.join('\n'))
}
