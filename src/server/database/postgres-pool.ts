import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { DatabaseError, Pool, types, type PoolClient } from 'pg'
import { CONNECT_MS } from './limits.js'

const INT8 = 20
const IDLE = 'I'

const parserOf = types.getTypeParser as (oid: number, format: 'text') => unknown

/**
 * Connections of PostgreSQL. When a statement had no answer in time, `pg` gives the connection back as if nothing had happened; but the server may
 * answer later, and a late `begin` would make the statements of the next user part of a transaction that never commits. Such a connection is closed.
 */
export function postgresPool(connectionString: string, max: number, statementMs: number): PostgresPool {
  const pool = new Pool({
    connectionString,
    max,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: statementMs,
    keepAlive: true,
    types: {
      // all of ours are below 2^53
      getTypeParser: ((oid: number, format: 'text') =>
        oid === INT8 ? Number : parserOf(oid, format)) as typeof types.getTypeParser,
    },
  })
  pool.on('error', () => undefined) // an idle connection broke: the next query gets another
  return {
    connect: async () => connectionOf(await pool.connect()),
    end: () => pool.end(),
  }
}

function connectionOf(client: PoolClient): PostgresPoolClient {
  let hasAnswered = true
  // the pool listens only while a connection is idle: one that breaks between two statements would end the process
  let broken: Error | undefined
  const onBroken = (error: Error): void => void (broken ??= error)
  client.on('error', onBroken)
  const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
    if (broken !== undefined) throw broken
    try {
      return await client.query(sql, [...parameters])
    } catch (error) {
      hasAnswered &&= error instanceof DatabaseError
      throw error
    }
  }
  return {
    query: query as PostgresPoolClient['query'],
    release: () => {
      client.off('error', onBroken)
      client.release(broken !== undefined || !hasAnswered || client.getTransactionStatus() !== IDLE)
    },
  }
}
