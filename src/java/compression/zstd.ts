import zlib from 'node:zlib'
import { UnsupportedOperationError } from '../../errors.js'

/** Another implementation of Zstandard, for a Node without one. */
export interface ZstdImplementation {
  /** Returns one Zstandard frame. */
  compress(bytes: Buffer): Uint8Array
  /** Must not return, nor allocate, more than `maxBytes`. */
  decompress(bytes: Buffer, maxBytes: number): Uint8Array
}

/** Members of Node's zlib since 22.15 and 23.8, which the types of older versions lack. */
interface ZstdOfNode {
  zstdCompressSync(bytes: Buffer): Buffer
  zstdDecompressSync(bytes: Buffer, options: { maxOutputLength: number; params: Record<number, number> }): Buffer
  constants: { ZSTD_d_windowLogMax: number }
}

/** Zstandard's own default of 8 MiB windows is enough for every level that Redisson's codec can use. */
const LEAST_WINDOW_LOG = 23

/** Node's own Zstandard; a Node without it needs the `implementation` option. */
export function zstdOfNode(): ZstdImplementation {
  const node = zlib as unknown as Partial<ZstdOfNode> & Pick<ZstdOfNode, 'constants'>
  const { zstdCompressSync, zstdDecompressSync, constants } = node
  if (zstdCompressSync === undefined || zstdDecompressSync === undefined) {
    throw new UnsupportedOperationError(
      `Node ${process.versions.node} has no Zstandard: use Node 22.15 or later, or give the zstd codec an implementation`,
    )
  }
  return {
    compress: (bytes) => zstdCompressSync(bytes),
    decompress: (bytes, maxBytes) => {
      // the frame decides the memory of the window, whatever its content
      const windowLog = Math.max(LEAST_WINDOW_LOG, Math.ceil(Math.log2(Math.max(maxBytes, 1))))
      const params = { [constants.ZSTD_d_windowLogMax]: Math.min(windowLog, 31) }
      return zstdDecompressSync(bytes, { maxOutputLength: Math.max(maxBytes, 1), params })
    },
  }
}
