import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { which } from '../redis.js'

/** Of glibc: what addons of Node and the look-up of names load, which no program below is linked with. */
const LOADED = /^(librt|libresolv|libutil|libanl|libnss_(dns|files))\.so/
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'

/**
 * An image of the Node of this machine, for one of Docker's registry that cannot be reached: Node, npm, a shell, the programs of the Dockerfile's
 * RUN lines, their libraries, the users root and node. It shows what the Dockerfile does, not what Docker's image of Node has.
 */
export function importLocalNode(docker: string, image: string): void {
  const from = mkdtempSync(join(tmpdir(), 'redelayed-node-'))
  try {
    for (const folder of ['bin', 'etc', 'root', 'tmp', 'usr/bin', 'usr/lib/node_modules', dirname(CERTIFICATES)])
      mkdirSync(join(from, folder), { recursive: true })
    const programs = [process.execPath, ...['sh', 'env', 'install'].map(found)]
    for (const program of programs) {
      copy(realpathSync(program), join(from, 'usr/bin', basename(program)))
      for (const library of librariesOf(program)) copy(realpathSync(library), join(from, library))
    }
    copy(realpathSync(found('sh')), join(from, 'bin/sh'))
    const glibc = dirname(librariesOf(process.execPath).find((each) => basename(each).startsWith('libc.so')) ?? '/lib')
    for (const name of readdirSync(glibc).filter((each) => LOADED.test(each)))
      copy(realpathSync(join(glibc, name)), join(from, glibc, name))
    cpSync(join(dirname(realpathSync(found('npm'))), '..'), join(from, 'usr/lib/node_modules/npm'), { recursive: true })
    symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(from, 'usr/bin/npm'))
    writeFileSync(join(from, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/tmp:/bin/sh\n')
    writeFileSync(join(from, 'etc/group'), 'root:x:0:\nnode:x:1000:\n')
    // a proxy of this machine can have an authority of its own
    const changes = ['-c', 'CMD ["node"]']
    if (existsSync(CERTIFICATES)) {
      copy(realpathSync(CERTIFICATES), join(from, CERTIFICATES))
      changes.push('-c', `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`)
    }
    const tar = spawnSync('tar', ['-C', from, '--owner=0', '--group=0', '-c', '.'], { maxBuffer: 2 ** 30 })
    const { status, stderr } = spawnSync(docker, ['import', ...changes, '-', image], { input: tar.stdout })
    if (tar.status !== 0 || status !== 0)
      throw new Error(`no image of the local Node: ${tar.stderr.toString()}${stderr.toString()}`)
  } finally {
    rmSync(from, { recursive: true, force: true })
  }
}

function found(program: string): string {
  const path = which(program)
  if (path === undefined) throw new Error(`${program} is not on the PATH`)
  return path
}

function copy(from: string, to: string): void {
  cpSync(from, to, { dereference: true })
}

/** The libraries that a program is linked with, and its loader. */
function librariesOf(program: string): string[] {
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' })
  return [...stdout.matchAll(/(?:^|\s)(\/\S+)/gm)].map(([, path = '']) => path)
}
