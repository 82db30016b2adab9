import { aboutServer, type Finding } from '../finding.js'
import type { ServerState } from '../inspect-server.js'

/** Reports the rights that the connected user lacks, and what the server refused to answer. */
export function checkRights({ address, acl, refusals }: ServerState): Finding[] {
  const findings: Finding[] = []
  if (acl !== undefined && acl.missing.length > 0) {
    const found = `The user ${acl.user} may not use ${acl.missing.join(' ')}.`
    findings.push(aboutServer(address, 'acl-missing', 'error', found, { user: acl.user, commands: acl.missing }))
  }
  for (const { purpose, commands } of acl?.missingFor ?? []) {
    const found = `The user ${acl?.user ?? ''} may not use ${commands.join(' ')}, which is needed for ${purpose}.`
    findings.push(aboutServer(address, 'acl-missing', 'info', found, { user: acl?.user, commands, purpose }))
  }
  for (const [what, why] of refusals.list) {
    findings.push(aboutServer(address, 'not-examined', 'info', `Could not examine ${what}: ${why}.`, { what, why }))
  }
  return findings
}
