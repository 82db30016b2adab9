// The programs in README.md and on the pages of docs, and how each is run. A TypeScript block is a program when it makes a client and declares
// nothing that its reader would have to write. It ends by itself with exit code 0, or its first line says that it runs until SIGTERM, after
// which it ends with exit code 0. None writes to stderr.
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { root } from './ensure-installed.mjs'

const LIMIT_MS = 30_000
const POLL_MS = 20
/** How long a program that runs on has to connect. */
const CONNECTED_MS = 2_000
/** The first line of a program that does not end by itself. */
const RUNS_ON = /^\/\/ runs until SIGTERM/
/** Replaced by that of a Redis; programs for a cluster have another one, and are not run. */
const ADDRESS = 'redis://127.0.0.1:6379'
const IS_PROGRAM = /create(Client|TestKit)\(/
const NEEDS_MORE = /^(export )?declare |from '(?!node:|redelayed|ioredis|prom-client|@opentelemetry)/m
/** They need what one Redis does not have. */
const NOT_RUN = ['docs/durability.md']

/** Says that the program waits for the signal. No file, as one that a run writes again can be empty when another one reads it. */
const PRELOAD = `data:text/javascript,${encodeURIComponent(
  "process.on('newListener', (name) => void (name === 'SIGTERM' && process.connected && process.send('waits')))",
)}`

const dir = join(root, '.cache/snippets')

export interface Snippet {
  /** `README.md:16` */
  readonly name: string
  readonly code: string
  readonly runsOn: boolean
}

export function snippets(): Snippet[] {
  const pages = [
    'README.md',
    ...readdirSync(join(root, 'docs')).flatMap((page) => (page.endsWith('.md') ? [`docs/${page}`] : [])),
  ]
  return pages
    .filter((page) => !NOT_RUN.includes(page))
    .flatMap((page) => {
      const text = readFileSync(join(root, page), 'utf8')
      return Array.from(text.matchAll(/^```ts\n(.*?)^```/gms), ([, code = '']) => code)
        .map((code) => ({ code, name: `${page}:${lineOf(text, code)}`, runsOn: RUNS_ON.test(code) }))
        .filter(({ code }) => IS_PROGRAM.test(code) && code.includes(ADDRESS) && !NEEDS_MORE.test(code))
    })
}

/**
 * Runs one of them on a Redis of its own.
 * @param redis a database of it is empty and belongs to the program
 * @returns what is wrong
 */
export async function runSnippet(
  { name, code, runsOn }: Snippet,
  { url, redis }: { url: string; redis: Redis },
): Promise<string | undefined> {
  mkdirSync(dir, { recursive: true })
  const file = join(dir, `${name.replace(/\W+/g, '-')}.ts`)
  writeFileSync(file, code.replaceAll(ADDRESS, url).replace(/\.listen\(\d+\)/, '.listen(0)'))
  const child = spawn(process.execPath, ['--import', PRELOAD, '--import', 'tsx', file], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  const ended = outcomeOf(child)
  if (runsOn) void endBySignal(child, new URL(url).pathname.slice(1), redis)
  const { code: exitCode, signal, stdout, stderr } = await ended
  rmSync(file)
  const problems = [
    ...(signal === null
      ? []
      : [
          `It was ended by ${signal}; the limit is ${LIMIT_MS} ms.${runsOn ? '' : ' A program that runs on says "// runs until SIGTERM" in its first line.'}`,
        ]),
    ...(signal === null && exitCode !== 0 ? [`It ended with code ${exitCode}.`] : []),
    ...(stderr === '' ? [] : ['It wrote to stderr.']),
  ]
  return problems.length === 0 ? undefined : `${stdout}${stderr}${problems.join('\n')}`
}

/** Sends SIGTERM when the program waits for it and has connected, as far as it does before its first call. */
async function endBySignal(child: ChildProcess, db: string, redis: Redis): Promise<void> {
  const waits = await new Promise((resolve) => {
    child.once('message', () => resolve(true))
    child.once('close', () => resolve(false))
  })
  const isConnected = async () => new RegExp(` db=${db} `).test(String(await redis.client('LIST')))
  const until = performance.now() + CONNECTED_MS
  while (waits && child.exitCode === null && performance.now() < until && !(await isConnected())) await pause(POLL_MS)
  child.kill('SIGTERM')
}

function outcomeOf(child: ChildProcess) {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (bytes: Buffer) => (stdout += bytes.toString()))
  child.stderr?.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
  return new Promise<{ code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }>(
    (resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
    },
  )
}

function lineOf(text: string, code: string): number {
  return text.slice(0, text.indexOf(code)).split('\n').length
}
