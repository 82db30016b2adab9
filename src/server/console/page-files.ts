import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'

/** A file of the page, plain and compressed. */
export interface PageFile {
  readonly type: string
  readonly etag: string
  readonly plain: Buffer
  readonly br?: Buffer
  readonly gzip?: Buffer
}

/** The built page: its document, and its assets by name. */
export interface PageFiles {
  readonly document: PageFile
  readonly assets: ReadonlyMap<string, PageFile>
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
}
const DOCUMENT = 'index.html'
const COMPRESSED = ['.br', '.gz']

/**
 * Reads a folder with `index.html` and `assets` into memory, with the compressed forms beside each file. `undefined` if it was not built.
 */
export function readPageFiles(folder: string): PageFiles | undefined {
  if (!existsSync(join(folder, DOCUMENT))) return undefined
  const dir = join(folder, 'assets')
  const names = existsSync(dir) ? readdirSync(dir).filter((name) => !COMPRESSED.includes(extname(name))) : []
  return {
    document: readFile(join(folder, DOCUMENT)),
    assets: new Map(names.map((name) => [name, readFile(join(dir, name))])),
  }
}

function readFile(path: string): PageFile {
  const plain = readFileSync(path)
  const [br, gzip] = COMPRESSED.map((end) => (existsSync(path + end) ? readFileSync(path + end) : undefined))
  return {
    type: TYPES[extname(path)] ?? 'application/octet-stream',
    etag: createHash('sha256').update(plain).digest('base64url').slice(0, 22),
    plain,
    ...(br && { br }),
    ...(gzip && { gzip }),
  }
}
