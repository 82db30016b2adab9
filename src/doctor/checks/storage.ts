import { aboutServer, type Finding } from '../finding.js'
import type { ServerState } from '../inspect-server.js'

/** Whether the server keeps its data: in memory, and on disk. */
export function checkStorage(state: ServerState): Finding[] {
  return [...checkEviction(state), ...checkPersistence(state)]
}

function checkEviction({ address, info, config }: ServerState): Finding[] {
  const policy = info['maxmemory_policy'] ?? config['maxmemory-policy']
  const limit = info['maxmemory'] ?? config['maxmemory']
  if (policy === undefined || policy === 'noeviction') return []
  const figures = { policy, maxmemory: Number(limit), evicted: Number(info['evicted_keys'] ?? 0) }
  const evicted =
    figures.evicted > 0 ? `; ${figures.evicted.toLocaleString('en')} keys were deleted since the start` : ''
  // without a limit Redis deletes nothing; volatile-* keeps keys that do not expire, and by default a queue's do not
  if (limit === '0') {
    return [
      aboutServer(
        address,
        'eviction',
        'info',
        `maxmemory-policy is ${policy}, without a limit now${evicted}.`,
        figures,
      ),
    ]
  }
  const isHarmless = policy.startsWith('volatile-')
  const found = `maxmemory-policy is ${policy}${isHarmless ? ', which keeps keys without an expiry' : ''}${evicted}.`
  return [aboutServer(address, 'eviction', isHarmless ? 'info' : 'error', found, figures)]
}

function checkPersistence({ address, info, config }: ServerState): Finding[] {
  const findings: Finding[] = []
  const isAof = info['aof_enabled']
  const { save, appendfsync } = config
  if (isAof === '0' && save === '') {
    findings.push(
      aboutServer(address, 'persistence-off', 'warning', 'There is neither an append-only file nor snapshots.'),
    )
  } else if (isAof === '0' && save !== undefined) {
    findings.push(aboutServer(address, 'snapshots-only', 'info', `No append-only file; snapshots: ${save}.`, { save }))
  } else if (isAof === '1' && appendfsync === 'no') {
    findings.push(aboutServer(address, 'aof-no-fsync', 'warning', 'appendfsync is no.', { appendfsync }))
  } else if (isAof === '1' && appendfsync !== undefined && appendfsync !== 'always') {
    findings.push(aboutServer(address, 'aof-everysec', 'info', `appendfsync is ${appendfsync}.`, { appendfsync }))
  }
  const failing = ['rdb_last_bgsave_status', 'aof_last_bgrewrite_status', 'aof_last_write_status'].filter(
    (status) => info[status] === 'err',
  )
  if (failing.length > 0) {
    findings.push(aboutServer(address, 'persistence-failing', 'error', `${failing.join(', ')}: err.`, { failing }))
  }
  return findings
}
