import type { Server } from 'node:http'
import type { AddressInfo, Server as TcpServer } from 'node:net'

/** Starts a server of the test on a free port of this machine; `ends` gets what stops it. */
export async function listen(server: Server | TcpServer, ends: (() => Promise<void> | void)[]): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(async () => {
    if ('closeAllConnections' in server) server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}
