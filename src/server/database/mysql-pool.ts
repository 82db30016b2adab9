import type { MysqlPool, MysqlPoolConnection } from 'kysely'
import { createPool, type PoolConnection, type QueryError } from 'mysql2'
import { CONNECT_MS } from './limits.js'

type OnConnection = Parameters<MysqlPool['getConnection']>[0]
type OnResult = (error: unknown, result: never) => void

/**
 * Connections to MySQL or MariaDB with time limits, which `mysql2` lacks, for free connections and for answers. A connection on which a
 * statement had no answer is closed, because its state is unknown.
 */
export function mysqlPool(uri: string, connectionLimit: number, statementMs: number): MysqlPool {
  const pool = createPool({
    uri,
    connectionLimit,
    connectTimeout: CONNECT_MS,
    enableKeepAlive: true,
    charset: 'utf8mb4',
    supportBigNumbers: true,
  })
  return {
    getConnection: (callback: OnConnection) => {
      let timer: NodeJS.Timeout | undefined = setTimeout(() => {
        timer = undefined
        callback(timeout('no connection became free', CONNECT_MS), undefined as never)
      }, CONNECT_MS)
      pool.getConnection((error, connection) => {
        if (timer === undefined) {
          if (!error) connection.release()
          return
        }
        clearTimeout(timer)
        callback(error, error ? (undefined as never) : connectionOf(connection, statementMs))
      })
    },
    end: (callback) => {
      pool.end(callback)
    },
  }
}

function connectionOf(connection: PoolConnection, statementMs: number): MysqlPoolConnection {
  const query = (sql: string, values: unknown[], callback: OnResult): void => {
    let isSettled = false
    const settle = (error: NodeJS.ErrnoException | QueryError | null, result?: unknown): void => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      // an error of the server has a SQL state; without an answer the next statement would wait behind this one
      if (error !== null && !('sqlState' in error && error.sqlState !== undefined)) connection.destroy()
      callback(error, result as never)
    }
    // not the timeout of mysql2, which keeps running after the server has closed the connection
    const timer = setTimeout(() => {
      settle(timeout('the statement had no answer', statementMs))
    }, statementMs)
    connection.query(sql, values, settle)
  }
  return {
    query: query as MysqlPoolConnection['query'],
    release: () => {
      connection.release()
    },
  }
}

function timeout(what: string, ms: number): NodeJS.ErrnoException {
  return Object.assign(new Error(`${what} within ${ms} ms`), { code: 'ETIMEDOUT' })
}
