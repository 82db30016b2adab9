import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { DatabaseError, Pool, types, type PoolClient } from 'pg'
import { CONNECT_MS } from './limits.js'

const INT8 = 20
const IDLE = 'I'

const parserOf = types.getTypeParser as (oid: number, format: 'text') => unknown

/**
 * Connections of PostgreSQL. When a statement had no answer in time, `pg` gives the connection back as if nothing had happened; but the
 * server may answer later, and a late `begin` would make the statements of the next user part of a transaction that never commits. Such a
 * connection is closed.
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
  // The pool does not listen while a connection is in use: it can break between two statements of a transaction, or with its first answer.
  const broken = new WeakMap<object, Error>()
  pool.on('connect', (client) => {
    client.on('error', (error) => {
      if (!broken.has(client)) broken.set(client, error)
    })
  })
  return {
    connect: async () => connectionOf(await pool.connect(), broken),
    end: () => pool.end(),
  }
}

function connectionOf(client: PoolClient, broken: WeakMap<object, Error>): PostgresPoolClient {
  let hasAnswered = true
  const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
    try {
      return await client.query(sql, [...parameters])
    } catch (error) {
      hasAnswered &&= error instanceof DatabaseError
      throw broken.get(client) ?? error
    }
  }
  return {
    query: query as PostgresPoolClient['query'],
    release: () => {
      client.release(!hasAnswered || broken.has(client) || client.getTransactionStatus() !== IDLE)
    },
  }
}
