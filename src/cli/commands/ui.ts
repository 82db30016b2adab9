import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { NegativeResult, UsageError } from '../failure.js'
import { globalOptions, textOption, type RawOptions } from '../input.js'

const SERVER = 'redelayed-server'
/** The signals that end the page; `SIGHUP` comes when the terminal is closed. */
const ENDINGS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Starts the page of redelayed-server on a Redis that libraries use. The page and its key exist only for this run. */
export async function ui(options: RawOptions): Promise<void> {
  const { url, cluster, json } = globalOptions(options)
  if (json) throw new UsageError('--json: ui shows a page')
  const main = serverMain()
  const dir = await mkdtemp(join(tmpdir(), 'redelayed-ui-'))
  const port = textOption(options, 'port')
  const own = ['--read-only', '--host', '127.0.0.1', '--data-dir', dir]
  const args = [main, ...own, ...(port === undefined ? [] : ['--port', port])]
  // settings of a delay service on this machine do not apply to this page
  const others = Object.entries(process.env).filter(([name]) => name !== 'REDIS_URL' && !/^REDELAYED_/i.test(name))
  // the URL is passed in the environment, because all users of the machine can see arguments
  const env = { ...Object.fromEntries(others), [cluster ? 'REDELAYED_REDIS_CLUSTER' : 'REDELAYED_REDIS']: url }
  const server = spawn(process.execPath, args, { env, stdio: 'inherit' })
  // a terminal sends its signals to the server too; it ends when it has closed its connections
  const stop = (): void => void server.kill('SIGTERM')
  for (const signal of ENDINGS) process.on(signal, stop)
  try {
    const code = await new Promise<number | null>((done, failed) => {
      server.once('error', failed)
      server.once('exit', done)
    })
    if (code !== 0) throw new NegativeResult(`${SERVER} ended with exit code ${code ?? 'none'}`)
  } finally {
    for (const signal of ENDINGS) process.removeListener(signal, stop)
    await rm(dir, { recursive: true, force: true })
  }
}

/** Finds the server where npm has installed it: beside this package, or in the folder of the caller. */
function serverMain(): string {
  for (const from of [resolve(process.argv[1] ?? '.'), join(process.cwd(), 'package.json')]) {
    try {
      const manifest = createRequire(from).resolve(`${SERVER}/package.json`)
      const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: Record<string, string> }
      return join(dirname(manifest), bin[SERVER] ?? '')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
    }
  }
  throw new NegativeResult(`the page is in the package "${SERVER}", which is not installed; run: npm install ${SERVER}`)
}
