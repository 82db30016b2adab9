/** The node ids in a table of slots; servers that imitate a cluster may have none. */
export function idsOf(table: readonly unknown[]): string[] {
  const nodes = table.flatMap((range) => (range as unknown[]).slice(2))
  return nodes.map((node) => (node as unknown[])[2]).filter((id): id is string => typeof id === 'string' && id !== '')
}

/** The node ids in a reply to `CLUSTER NODES`: the first word of each line. */
export function idsIn(nodes: unknown): string[] {
  return typeof nodes === 'string' ? nodes.split('\n').map((line) => line.slice(0, Math.max(0, line.indexOf(' ')))) : []
}
