import type { Emit } from '../events.js'
import type { Settings } from '../options.js'
import type { Sender } from '../store/sender.js'
import type { FineWaits } from '../timing/fine-waits.js'
import { QueueRegistry, type Channels, type QueueAddress } from './queue-registry.js'
import { QueueTransfers, type Takes, type TransferParams, type TransferTarget } from './queue-transfers.js'

export type { TransferTarget } from './queue-transfers.js'

/** The delayed queues that this client transfers: each while it has users. */
export class TransferRegistry {
  readonly #params: Omit<TransferParams, 'onError' | 'retries'>
  readonly #queues: QueueRegistry<QueueTransfers>

  constructor(params: {
    sender: Sender
    channels: Channels
    settings: Settings
    client: string
    emit: Emit
    blocking: Takes
    fineWaits: FineWaits | undefined
  }) {
    this.#params = params
    this.#queues = new QueueRegistry({ ...params, script: 'transfer' })
  }

  get isClosed(): boolean {
    return this.#queues.isClosed
  }

  /** Transfers the queue until the returned function is called; n acquisitions need n releases. `hasBuckets`: with the layout `'wheel'`. */
  acquire(target: TransferTarget, hasBuckets = false): () => Promise<void> {
    const queue = this.#serve(target)
    queue.addOwner(hasBuckets)
    let released: Promise<void> | undefined
    return () => {
      if (released !== undefined) return released
      queue.removeOwner()
      released = queue.isUsed ? Promise.resolve() : this.#queues.stop(queue)
      return released
    }
  }

  /** As `acquire`, for a waiting consumer; after the release the queue is still transferred for a while. */
  consume(target: TransferTarget): () => void {
    const queue = this.#serve(target)
    queue.addConsumer()
    return () => queue.removeConsumer()
  }

  /** This client offered an entry that is due at `due`, by the Redis clock. */
  onOffered(target: TransferTarget, due: number): void {
    this.#queues.find(addressOf(target))?.onOffered(due)
  }

  close(): Promise<void> {
    return this.#queues.close()
  }

  #serve(target: TransferTarget): QueueTransfers {
    const address = addressOf(target)
    const onError = (error: Error): void => this.#queues.report(address, error)
    const { retries } = this.#queues
    return this.#queues.serve(address, () => new QueueTransfers(target, { ...this.#params, onError, retries }))
  }
}

function addressOf({ name, keys }: TransferTarget): QueueAddress {
  return { name, channel: keys.channel }
}
