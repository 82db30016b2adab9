// Loaded into a service with --import: answers each message of its parent with its memory after a collection of all garbage. Needs
// --expose-gc.
process.on('message', () => {
  // twice: what the first frees from the outside is counted by the second
  for (let round = 0; round < 2; round++) globalThis.gc?.()
  process.send?.(process.memoryUsage())
})
process.channel?.unref()
