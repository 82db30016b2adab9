import { aboutServer, counted, type Finding } from '../finding.js'
import type { ServerState } from '../inspect-server.js'

/** How far a replica may lag in bytes: a moment's traffic. */
export const LAG_BYTES = 1024 * 1024
/** The greatest age of a replica's last answer: replicas answer every second. */
export const LAG_SECONDS = 10

/** Whether a failover would lose many changes. */
export function checkReplication({ address, info }: ServerState): Finding[] {
  if (info['role'] === 'slave') {
    const master = `${info['master_host'] ?? ''}:${info['master_port'] ?? ''}`
    return [aboutServer(address, 'is-replica', 'error', `This server is a replica of ${master}.`, { master })]
  }
  const offset = Number(info['master_repl_offset'])
  return Object.keys(info)
    .filter((line) => /^slave\d+$/.test(line))
    .flatMap((line) => {
      const fields = Object.fromEntries(
        (info[line] ?? '').split(',').map((field) => field.split('=', 2) as [string, string]),
      )
      const replica = `${fields['ip'] ?? ''}:${fields['port'] ?? ''}`
      const behindBytes = offset - Number(fields['offset'])
      const silentSeconds = Number(fields['lag'])
      const isBehind = behindBytes > LAG_BYTES || silentSeconds > LAG_SECONDS
      if (fields['state'] === 'online' && !isBehind) return []
      const figures = { replica, state: fields['state'], behindBytes, silentSeconds }
      const found = `The replica ${replica} (${fields['state'] ?? ''}) is ${counted(behindBytes, 'byte')} behind; its last answer came ${silentSeconds} s ago.`
      return [aboutServer(address, 'replica-lag', 'warning', found, figures)]
    })
}
