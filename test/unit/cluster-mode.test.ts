import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { translateError } from '../../src/redis/replies/server-errors.js'
import { refuseOutsideCluster } from '../../src/redis/topology/cluster-mode.js'

type Info = Readonly<Record<string, string>> | null
type Callback = (error: Error | null, info: Info) => void

const DISABLED = 'ERR This instance has cluster support disabled'
const TABLE = undefined

/** Opens a connection to a server with this INFO and this error of CLUSTER SLOTS, which loads its data at first. */
async function open(info: Info, slots: string | undefined) {
  const asked: string[] = []
  let loads = 2
  const redis = {
    options: { host: 'node', port: 7000 },
    status: 'connect',
    _readyCheck(callback: Callback): void {
      if (--loads < 0) callback(null, info)
      else redis._readyCheck(callback)
    },
    cluster(what: string) {
      asked.push(`${what} ${this.status}`)
      return slots === undefined ? Promise.resolve([]) : Promise.reject(new Error(slots))
    },
  }
  refuseOutsideCluster(redis as unknown as Redis)
  const error = await new Promise<Error | null>((resolve) => redis._readyCheck((error) => resolve(error)))
  expect(redis.status).to.equal('connect')
  return { error, asked }
}

describe('servers that are no nodes of a cluster', () => {
  const cases: [what: string, info: Info, slots: string | undefined, isAsked: boolean, isRefused: boolean][] = [
    ['a node', { redis_mode: 'cluster', cluster_enabled: '1' }, DISABLED, false, false],
    ['a node that does not name its mode', { cluster_enabled: '1' }, DISABLED, false, false],
    ['a server that says nothing about clusters', { redis_version: '7.2.0' }, DISABLED, true, true],
    ['a node that says nothing about clusters', { redis_version: '7.2.0' }, TABLE, true, false],
    ['one without a cluster', { redis_mode: 'standalone', cluster_enabled: '0' }, DISABLED, true, true],
    ['a Valkey without a cluster', { server_mode: 'standalone', cluster_enabled: '0' }, DISABLED, true, true],
    ['one that names only its mode', { redis_mode: 'standalone' }, DISABLED, true, true],
    ['a Valkey that names only its mode', { server_mode: 'standalone' }, DISABLED, true, true],
    ['one whose INFO the user may not read', {}, DISABLED, true, true],
    ['one whose INFO is nil', null, DISABLED, true, true],
    ['a node whose INFO is nil', null, TABLE, true, false],
    ['a Dragonfly', { redis_mode: 'standalone' }, 'ERR Cluster is disabled. Use --cluster_mode=yes', true, true],
    ['a proxy in front of a cluster', { redis_mode: 'standalone', cluster_enabled: '0' }, TABLE, true, false],
    ['one that does not know the command', { cluster_enabled: '0' }, "ERR unknown command 'CLUSTER'", true, true],
    ['one that loads its data', { cluster_enabled: '0' }, 'LOADING Redis is loading', true, false],
    ['one whose CLUSTER the user may not call', {}, 'NOPERM no permissions', true, false],
  ]
  for (const [what, info, slots, isAsked, isRefused] of cases) {
    it(`${what} is ${isRefused ? 'refused' : 'used'}${isAsked ? ' after a question' : ''}`, async () => {
      const { error, asked } = await open(info, slots)
      expect(asked).to.deep.equal(isAsked ? ['SLOTS ready'] : [])
      if (!isRefused) expect(error).to.equal(null)
      else {
        const translated = translateError(error)
        expect(translated).to.include({ name: 'ConnectionError', outcome: 'not-applied' })
        expect(translated.message).to.include(`node:7000 leads to a server that is no node of a cluster (${slots})`)
      }
    })
  }
})
