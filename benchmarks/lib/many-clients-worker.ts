// One process of the scenario many-clients: holds the queue with several clients and reports how late their transfers are.
import { createClient } from '../../dist/index.js'

const [url = '', name = '', count = '1'] = process.argv.slice(2)
const clients = Array.from({ length: Number(count) }, () => createClient({ url, sweepInterval: 3_600_000 }))
await Promise.all(
  clients.map(
    (client) =>
      new Promise<unknown>((resolve) => {
        client.once('subscribed', resolve)
        client.on('transferred', ({ count: moved, maxLatenessMs }) => {
          for (let i = 0; i < moved; i++) process.send?.(maxLatenessMs)
        })
        client.getDelayedQueue(client.getBlockingQueue(name), { layout: 'compact' })
      }),
  ),
)
process.send?.('ready')
process.once('message', () => {
  void Promise.all(clients.map((client) => client.shutdown())).then(() => process.disconnect())
})
