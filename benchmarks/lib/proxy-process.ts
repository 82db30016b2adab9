// A slow network in a process of its own, so that it takes no time from the one that is measured: gives its port and ends with its parent.
import { startProxy } from '../../test/support/tcp-proxy.js'

const [targetPort = '', delayMs = '0'] = process.argv.slice(2)
const proxy = await startProxy({ targetPort: Number(targetPort) })
proxy.delay(Number(delayMs))
process.once('disconnect', () => process.exit())
process.send?.(proxy.port)
