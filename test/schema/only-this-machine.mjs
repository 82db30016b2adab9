// Loaded into the service by `npm run test:schema`: endpoints have random URLs, and none of their hosts is to get a request.
import { Socket } from 'node:net'

const { connect } = Object.getOwnPropertyDescriptors(Socket.prototype)
Socket.prototype.connect = function (...args) {
  const [first] = args.flat()
  const { host, path } = typeof first === 'object' && first !== null ? first : { host: args[1] }
  if (path !== undefined || host === undefined || ['127.0.0.1', 'localhost', '::1'].includes(host))
    return connect.value.apply(this, args)
  process.nextTick(() => this.destroy(Object.assign(new Error(`no connection to ${host}`), { code: 'ECONNREFUSED' })))
  return this
}
