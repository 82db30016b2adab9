import type { Redis } from 'ioredis'

const WRITE_BYTES = 4_096

/**
 * Sends the commands of one turn in few writes, because with many callers the writes cost most; not in a single
 * write, so that the server runs the first commands while later ones are still being encoded.
 */
export function writeTogether({ stream }: Redis): void {
  if (stream === undefined) return
  if (stream.writableCorked === 0) {
    stream.cork()
    process.nextTick(uncork, stream)
  } else if (stream.writableLength > WRITE_BYTES) {
    stream.uncork()
    stream.cork()
  }
}

function uncork(stream: Redis['stream']): void {
  stream.uncork()
}
